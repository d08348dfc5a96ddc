"""Text as a person types it, and the text that the tokenizer then reads: the same characters for what reads the same.

- Characters that print nothing, such as soft hyphens and zero-width joiners, are left out. They do not divide a word.
- A fraction is read as its numbers: “½” as “1/2”, and “1½” as “1 1/2”. A ligature is read as its letters.
- A symbol that is typed as several code points, such as an emoji with its skin colour, is read as the first of them.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from tokenizers import Regex, pre_tokenizers

from attnviz.trace.visible import IGNORED

_FRACTIONS, _SLASH = "\u00bc-\u00be\u2150-\u215f\u2189", "\u2044"  # the slash stands between their numbers
_LETTERS = re.compile("[\ufb00-\ufb06\u2116\u2122]")  # several Latin letters in one character
_SYMBOL_PARTS = "\u20d0-\u20ff\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff"  # flags, colours of skin, keys
_ODD = re.compile(f"[{IGNORED}{_FRACTIONS}{_SLASH}{_SYMBOL_PARTS}]|{_LETTERS.pattern}")
_IGNORED = re.compile(f"[{IGNORED}]")
_CHARACTERS = pre_tokenizers.Split(Regex(r"\X"), behavior="isolated")  # what a reader takes for one character


class Typed(NamedTuple):
    """text : what is read. starts, ends : where each of its characters begins and ends in the text as typed.

    starts has one place more, the end of the typed text.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def typed(text: str) -> Typed:
    """A text, and the text that is read for it."""
    if not _ODD.search(text):
        return Typed(text, range(len(text) + 1), range(1, len(text) + 1))
    read, starts, ends = "", [], []
    for _, (start, end) in _CHARACTERS.pre_tokenize_str(text):
        for place, character, after in _read(text, start, end, read[-1:]):
            read += character
            starts += [place] * len(character)
            ends += [after] * len(character)
    return Typed(read, [*starts, len(text)], ends)


def _read(text: str, start: int, end: int, before: str) -> list[tuple[int, str, int]]:
    """One character of a reader, as start, what is read, and end. before : the last character that was read."""
    seen = [place for place in range(start, end) if not _IGNORED.match(text[place])]
    if len(seen) > 1 and unicodedata.category(text[seen[0]]).startswith("S"):
        seen = seen[:1]
    if len(seen) == 1:
        return [(start, _plain(text[seen[0]], before), end)]
    return [(place, _plain(text[place], before), place + 1) for place in seen]


def _plain(character: str, before: str) -> str:
    """The numbers of a fraction, apart from a number before them; the letters that one character stands for."""
    if _LETTERS.match(character):
        return unicodedata.normalize("NFKC", character)
    parts = unicodedata.normalize("NFKC", character)
    if _SLASH not in parts:
        return character
    apart = character != _SLASH and before.isdecimal()
    return " " * apart + parts.replace(_SLASH, "/")
