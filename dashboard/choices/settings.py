"""The operator's settings, from the environment: what visitors may open, and the limits. No Streamlit here.

On one's own machine visitors may open everything. ATTNVIZ_PUBLIC=1 is a server for strangers: no folders of the server,
no names of the Hugging Face hub and no uploads, except those listed in ATTNVIZ_ALLOW, separated by commas.
"""

import os
import re
from typing import NamedTuple

from attnviz import mechanisms
from attnviz.models import checkpoint_files
from attnviz.models.names import HUGGING_FACE, HuggingFaceName, without_prefix

PUBLIC, ALLOW = "ATTNVIZ_PUBLIC", "ATTNVIZ_ALLOW"
FOLDERS, HUB, UPLOADS = "folders", "hub", "uploads"
OPENABLE = frozenset({FOLDERS, HUB, UPLOADS})
LARGEST = 100_000
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*)(:[0-9]{1,5})?")
_NAME = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_.-]+")


class Setting(NamedTuple):
    """own, public : the defaults on one's own machine and on a server for strangers."""

    own: int
    public: int


FRAMES = "ATTNVIZ_FRAMES"
SENTENCES, UPLOAD = "ATTNVIZ_SENTENCES", "ATTNVIZ_UPLOAD_MB"
HOSTS, ANY, CHECKPOINTS = "ATTNVIZ_HOSTS", "*", checkpoint_files.SETTING
BESIDE = "ATTNVIZ_BESIDE"
CACHE, VISITOR, MEMORY = "ATTNVIZ_CACHE_MB", "ATTNVIZ_VISITOR_MB", "ATTNVIZ_MEMORY_MB"
TRAIN, LESSONS, IDLE = "ATTNVIZ_TRAIN", "ATTNVIZ_LESSONS", "ATTNVIZ_IDLE_S"
SETTINGS = {
    TRAIN: Setting(2, 1),  # trainings at once; 0 switches the page off
    IDLE: Setting(0, 0),  # seconds without a request after which the process of the models ends; 0 for never
    SENTENCES: Setting(2000, 500),  # of a run on the page of many sentences
    UPLOAD: Setting(10, 10),  # MB of a file of sentences or of pairs
    CACHE: Setting(256, 256),  # MB of the cache of traces, which all visitors share
    VISITOR: Setting(1024, 64),  # MB that what one visitor looks at may take
    MEMORY: Setting(4096, 512),  # MB that what all visitors look at may take
}


def is_elsewhere(place: str) -> bool:
    r"""Is this a path on another machine, such as \\server\share? Checking whether it exists would contact that
    machine, so a link could reveal its reader. Windows accepts either slash."""
    return place.strip().replace("\\", "/").startswith("//")


def is_public() -> bool:
    """Is this a server for strangers? ValueError if the setting is neither 0 nor 1."""
    public = os.environ.get(PUBLIC, "").strip() or "0"
    if public not in ("0", "1"):
        raise ValueError(f"{PUBLIC} must be 0 or 1; got {public!r:.80}")
    return public == "1"


def allowed() -> frozenset[str]:
    """Those of FOLDERS, HUB and UPLOADS that are allowed. ValueError for an unknown word in the setting."""
    if not is_public():
        return OPENABLE
    named = frozenset(word.strip() for word in os.environ.get(ALLOW, "").split(",") if word.strip())
    if unknown := sorted(named - OPENABLE):
        raise ValueError(f"{ALLOW} must list some of {', '.join(sorted(OPENABLE))}; got {unknown[0]!r:.80}")
    return named


def value(name: str) -> int:
    """The value of one of SETTINGS. ValueError if it is no whole number, or out of range."""
    text = os.environ.get(name, "").strip()
    if not text:
        return SETTINGS[name].public if is_public() else SETTINGS[name].own
    least = 0 if name in (TRAIN, IDLE) else 1
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= LARGEST):
        raise ValueError(f"{name} must be a whole number from {least} to {LARGEST:,}; got {text!r:.80}")
    return int(text)


def bytes_of(name: str) -> int:
    """The value in bytes of one of SETTINGS that is in MB."""
    return value(name) * 2**20


def hosts() -> list[str]:
    """The names of this server that visitors type, in lower case, or ANY. ValueError for an invalid name."""
    given = (name.strip().rstrip(".") for name in os.environ.get(HOSTS, "").lower().split(","))
    names = [name for name in given if name]
    for name in names:
        if name != ANY and not _NAME.fullmatch(name):
            raise ValueError(
                f"{HOSTS} must list names such as attention.example.org, without https:// and without a port; "
                f"got {name!r:.80}"
            )
    return names


def frames() -> list[str]:
    """The origins whose pages may frame this one, in lower case. ValueError for an invalid origin."""
    given = (origin.strip() for origin in os.environ.get(FRAMES, "").lower().split(","))
    origins = [origin for origin in given if origin]
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"{FRAMES} must list origins such as https://moodle.example.org, without a path; got {origin!r:.80}"
            )
    return origins


def beside() -> dict[str, list[str]]:
    """Pair -> the models of the transformers library shown beside its own, from BESIDE: PAIR=PLACE, several separated
    by commas. ValueError for an invalid entry."""
    models: dict[str, list[str]] = {}
    for entry in filter(None, (entry.strip() for entry in os.environ.get(BESIDE, "").split(","))):
        pair, _, place = (part.strip() for part in entry.partition("="))
        if not pair or not without_prefix(place):
            raise ValueError(
                f"{BESIDE} must list entries such as en-fr={HUGGING_FACE}FOLDER-OR-NAME; got {entry!r:.200}"
            )
        models.setdefault(pair, []).append(str(HuggingFaceName(without_prefix(place))))
    return models


def check() -> None:
    """Check all settings when the server starts. ValueError for an invalid one."""
    allowed()
    mechanisms.check()
    hosts()
    frames()
    beside()
    for name in SETTINGS:
        value(name)
    for folder in filter(None, os.environ.get(CHECKPOINTS, "").split(os.pathsep)):
        if not os.path.isdir(folder):
            raise ValueError(f"{CHECKPOINTS} must be a folder; there is no folder {folder!r:.200}")
    lessons = os.environ.get(LESSONS, "").strip()
    if lessons and not os.path.isdir(lessons):
        raise ValueError(f"{LESSONS} must be a folder; there is no folder {lessons!r:.200}")
