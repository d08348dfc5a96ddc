"""The numbers that whoever runs the server may set, by its environment. No Streamlit here."""

import os
from typing import NamedTuple

from dashboard.choices import allowed

LARGEST = 100_000


class Setting(NamedTuple):
    """own, public : without a setting, on one's own machine and on a server for strangers."""

    own: int
    public: int


SENTENCES, UPLOAD = "ATTNVIZ_SENTENCES", "ATTNVIZ_UPLOAD_MB"
CACHE, VISITOR, MEMORY = "ATTNVIZ_CACHE_MB", "ATTNVIZ_VISITOR_MB", "ATTNVIZ_MEMORY_MB"
SETTINGS = {
    SENTENCES: Setting(2000, 500),  # of a run on the page of many sentences
    UPLOAD: Setting(10, 10),  # MB of a file of sentences
    CACHE: Setting(256, 256),  # MB of the cache of traces, which all visitors share
    VISITOR: Setting(1024, 64),  # MB that what one visitor looks at may take
    MEMORY: Setting(4096, 512),  # MB that what all visitors look at may take
}


def of(name: str) -> int:
    """The value of one of SETTINGS. Raises ValueError for one that is none."""
    text = os.environ.get(name, "").strip()
    if not text:
        return SETTINGS[name].own if allowed.allowed() == allowed.ALL else SETTINGS[name].public
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= LARGEST):
        raise ValueError(f"{name} must be a whole number from 1 to {LARGEST:,}; got {text!r:.80}")
    return int(text)


def bytes_of(name: str) -> int:
    """One of SETTINGS that is in MB, in bytes."""
    return of(name) * 2**20


def check() -> None:
    """Raises ValueError for a setting that is none, so that a server with one does not start."""
    allowed.allowed()
    for name in SETTINGS:
        of(name)
