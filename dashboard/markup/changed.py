"""Two texts with the words that differ marked, as HTML. Every text is escaped here."""

import re
from difflib import SequenceMatcher

from dashboard.markup.text import escape

_SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")  # kana and Chinese characters: words have no spaces between


def marked(before: str, after: str, language: str) -> tuple[str, str]:
    """The two texts, HTML: words of the first that are gone, and words of the second that are new, in `<mark>`.

    Texts without spaces between words are compared character by character.
    """
    old, new = _units(before), _units(after)
    left, right = [], []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left.append(_mark("".join(old[a:b]), kind != "equal"))
        right.append(_mark("".join(new[c:d]), kind != "equal"))
    return tuple(f'<span lang="{escape(language)}" dir="auto">{"".join(parts)}</span>' for parts in (left, right))


def _units(text: str) -> list[str]:
    """Words, signs and the spaces between them; or characters."""
    return list(text) if _SPACELESS.search(text) else re.findall(r"\s+|\w+|[^\w\s]", text)


def _mark(text: str, differs: bool) -> str:
    if not differs or not text.strip():
        return escape(text)
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}<mark>{escape(text.strip())}</mark>{after}"
