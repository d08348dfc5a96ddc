"""Where the sentences of the page "Many sentences" come from, its numbers, and its limits. No Streamlit here."""

import os

from attnviz.across import VALUES
from attnviz.figures.titles import statistic_title
from dashboard.choices import allowed

LINKED, PASTED, UPLOADED, NAMED, NONE = "linked", "pasted", "uploaded", "named", "none"
SOURCES = {
    LINKED: "Sentences of this project",
    PASTED: "Pasted",
    UPLOADED: "An uploaded file",
    NAMED: "A file on this machine",
    NONE: "No other sentences",
}
NUMBERS = {name: statistic_title(name) for name in VALUES} | {
    "source_tokens": "Length of the sentence (tokens)",
    "target_tokens": "Length of the text written (tokens)",
    "log_prob": "Log-probability (nats)",
}
ORDERS = {"number": "as given", "largest": "largest first", "smallest": "smallest first"}
SENTENCES, UPLOAD = "ATTNVIZ_SENTENCES", "ATTNVIZ_UPLOAD_MB"  # settings: at most so many sentences, megabytes of a file
IN_ADDRESS = 2000  # characters of pasted sentences that an address can hold


def sources() -> list[str]:
    """Where sentences may come from on this server."""
    here = allowed.allowed()
    brought = [PASTED] + [UPLOADED] * (allowed.UPLOADS in here) + [NAMED] * (allowed.FOLDERS in here)
    return [LINKED, *brought]


def most_sentences() -> int:
    """Of a run. 2,000, or 500 on a server for strangers, unless ATTNVIZ_SENTENCES says otherwise."""
    return _setting(SENTENCES, 2000 if allowed.allowed() == allowed.ALL else 500)


def most_megabytes() -> int:
    """Of a file that is uploaded: 10 unless ATTNVIZ_UPLOAD_MB says otherwise."""
    return _setting(UPLOAD, 10)


def _setting(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise ValueError(f"{name} must be a whole number from 1 to 100,000; got {text!r:.80}")
    return int(text)


def words(value: str) -> str:
    """What the page and its address call a choice. KeyError for anything else."""
    return (SOURCES | NUMBERS | ORDERS)[value]
