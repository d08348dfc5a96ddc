"""The numbers that whoever runs the server may set, by its environment. No Streamlit here."""

import os
import re
from typing import NamedTuple

from attnviz import mechanisms
from attnviz.models import checkpoint_files
from dashboard.choices import allowed

LARGEST = 100_000
_NAME = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_.-]+")


class Setting(NamedTuple):
    """own, public : without a setting, on one's own machine and on a server for strangers."""

    own: int
    public: int


SENTENCES, UPLOAD = "ATTNVIZ_SENTENCES", "ATTNVIZ_UPLOAD_MB"
HOSTS, ANY, CHECKPOINTS = "ATTNVIZ_HOSTS", "*", checkpoint_files.SETTING
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
        return SETTINGS[name].public if allowed.is_public() else SETTINGS[name].own
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= LARGEST):
        raise ValueError(f"{name} must be a whole number from 1 to {LARGEST:,}; got {text!r:.80}")
    return int(text)


def bytes_of(name: str) -> int:
    """One of SETTINGS that is in MB, in bytes."""
    return of(name) * 2**20


def hosts() -> list[str]:
    """The names of this server that visitors type, in lower case, or ANY. Raises ValueError for what is no name."""
    given = (name.strip().rstrip(".") for name in os.environ.get(HOSTS, "").lower().split(","))
    names = [name for name in given if name]
    for name in names:
        if name != ANY and not _NAME.fullmatch(name):
            raise ValueError(
                f"{HOSTS} must list names such as attention.example.org, without https:// and without a port; "
                f"got {name!r:.80}"
            )
    return names


def check() -> None:
    """Raises ValueError for a setting that is none, so that a server with one does not start."""
    allowed.allowed()
    mechanisms.check()
    hosts()
    for name in SETTINGS:
        of(name)
    for folder in filter(None, os.environ.get(CHECKPOINTS, "").split(os.pathsep)):
        if not os.path.isdir(folder):
            raise ValueError(f"{CHECKPOINTS} must be a folder; there is no folder {folder!r:.200}")
