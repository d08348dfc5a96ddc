"""What a page waits for, and reasons why it has nothing to draw, as sentences. No Streamlit here."""

import re
from typing import Protocol

from dashboard.choices import settings
from dashboard.choices.options import LIMIT

# The folders at the beginning of an absolute path, of Unix or Windows; no address such as https://example.org/page.
_FOLDERS = re.compile(r"""(?<![\w.\\/-])(?:[A-Za-z]:[\\/]|[\\/](?![\\/]))(?:[^\s\\/'"‘’“”,;:]+[\\/])*(?=[^\s\\/])""")


class Wanted(Protocol):
    """The requests that must be finished before a page can be drawn (`dashboard.session.traces.Requested`)."""

    def done(self, seconds: float) -> bool:
        """Wait at most this many seconds -> has it arrived?"""

    def state(self) -> str:
        """The state of the request (`attnviz.service.Service.state_of`)."""

    def release(self) -> None:
        """Give up the request."""


class SceneError(ValueError):
    """Nothing can be drawn; the message says why and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(without_places(message))


class Waiting(SceneError):
    """Nothing is wrong: the page waits for something to be typed or chosen."""


def check_text(text: str, examples: bool = True, most: int = LIMIT) -> None:
    """Raises Waiting if there is no sentence, SceneError if it is too long.

    examples : does the page offer examples? most : characters (`options.limit`).
    """
    if not text.strip():
        raise Waiting(f"There is no sentence yet. Type one{', or click an example' if examples else ' above'}.")
    if len(text) > most:
        raise SceneError(
            f"The sentence has {len(text):,} characters; the limit is {most:,}. Shorten it, or show one sentence at a "
            "time."
        )


def sentence(text: str) -> str:
    """The message of an error of the library, as a sentence of the page."""
    text = without_places(text)
    return f"{text[0].upper()}{text[1:]}." if text else "Unknown problem."


def without_places(text: str) -> str:
    """On a server for strangers: the text with file paths reduced to file names."""
    if not settings.is_public():
        return text
    return _FOLDERS.sub(lambda match: "" if match.start() else "the server's ", text)
