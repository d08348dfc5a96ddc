"""What visitors may open on this server, by its environment. No Streamlit here.

On one's own machine everything. ATTNVIZ_PUBLIC=1 is a server for strangers: no folders of the server, no names of the
Hugging Face hub and no uploads, but those of them that ATTNVIZ_ALLOW names, separated by commas.
"""

import os

PUBLIC, ALLOW = "ATTNVIZ_PUBLIC", "ATTNVIZ_ALLOW"
FOLDERS, HUB, UPLOADS = "folders", "hub", "uploads"
ALL = frozenset({FOLDERS, HUB, UPLOADS})


def is_elsewhere(place: str) -> bool:
    r"""Is this the name of a place on another machine, such as \\server\share? To look whether it is there asks that
    machine, so a link could tell it who reads. Windows takes either slash."""
    return place.strip().replace("\\", "/").startswith("//")


def is_public() -> bool:
    """Is this a server for strangers? Raises ValueError for a setting that is none."""
    public = os.environ.get(PUBLIC, "").strip() or "0"
    if public not in ("0", "1"):
        raise ValueError(f"{PUBLIC} must be 0 or 1; got {public!r:.80}")
    return public == "1"


def allowed() -> frozenset[str]:
    """FOLDERS, HUB and UPLOADS, those that are allowed. Raises ValueError for a setting that is none."""
    if not is_public():
        return ALL
    named = frozenset(word.strip() for word in os.environ.get(ALLOW, "").split(",") if word.strip())
    if unknown := sorted(named - ALL):
        raise ValueError(f"{ALLOW} must list some of {', '.join(sorted(ALL))}; got {unknown[0]!r:.80}")
    return named
