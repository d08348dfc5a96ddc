"""Text with every character visible, for tokens in pictures, tables and sentences.

Signs: `␣`, `⇥`, `⏎` for white space; `␣` also for a token without characters, which is a word's leading space that was
not typed; `�` for control characters; `◌` below an accent that has no letter; `U+200D` for a token of characters that
print nothing. Beside other characters they are left out.

Marks, for a token in a list: `·ning` continues the word of the token before it · `⁇` after a token unknown to
the vocabulary · `☺₁ ☺₂` pieces that are parts of one character.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar, cast

# Unicode's Default_Ignorable_Code_Point without its letters (Hangul fillers), and the marks of annotations.
IGNORED = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# A word: letters with their accents, and the apostrophes and characters that print nothing within.
_LETTER = "[^\\W\\d_][\u0300-\u036f]*"
WORD = re.compile(f"{_LETTER}(?:[{IGNORED}]*(?:['’][{IGNORED}]*)?{_LETTER})*")
_NOT_PRINTED = re.compile(f"[{IGNORED}]")
RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹½¼¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"  # NFKC would make 102 of 10²
SPACE = "␣"
_SPACES = {" ": SPACE, "\t": "⇥", "\n": "⏎", "\r": "⏎", "\u2028": "⏎", "\u2029": "⏎"}
_JOINERS = "\u200c\u200d"  # emoji and several scripts need them
_SILENT = "\u00ad\u200b\u2060\ufeff"  # print nothing between letters; other format characters could reorder a label
_BLANK = f"{_SILENT}{_JOINERS}\u034f\u115f\u1160\u3164\uffa0\u2800"  # print nothing alone
_SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
Function = TypeVar("Function", bound=Callable)
_KEPT = 256  # answers of each function of tokens
_ISOLATE, _POP = "\u2068", "\u2069"
# What a terminal obeys, what ends a line, and what turns the text after it round; not the isolates of `visible`.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066\u2067\u206a-\u206f\ud800-\udfff]"
)


def of_tokens(function: Function) -> Function:
    """Cache a function of a tuple of tokens, and others, by the tuple itself: a page asks for those of a map many
    times, and to hash and compare its tokens would take longer than most answers."""
    values: dict[tuple, tuple] = {}

    @functools.wraps(function)
    def call(tokens: tuple, *others):
        key = (id(tokens), *others)
        if (value := values.get(key)) is None or value[0] is not tokens:
            if len(values) >= _KEPT:
                values.clear()
            value = values[key] = tokens, function(tokens, *others)
        return value[1]

    return cast(Function, call)


@functools.lru_cache(4096)  # a picture says each of its tokens many times
def visible(text: str) -> str:
    """The text of a token with every character visible; not escaped."""
    if not text:
        return SPACE
    if prints_nothing(text):
        return "".join(_SPACES.get(c, SPACE) if c.isspace() else f"U+{ord(c):04X}" for c in text)
    shown = "".join(map(_visible, text))
    if unicodedata.category(shown[0]).startswith("M"):
        shown = f"◌{shown}"
    right_to_left = any(unicodedata.bidirectional(character) in ("R", "AL") for character in shown)
    return f"{_ISOLATE}{shown}{_POP}" if right_to_left else shown  # keeps the number after it in its place


def shown(tokens: Sequence) -> list[str]:
    """Each token with its marks, as pictures and tables show it; not escaped."""
    return list(_shown(tuple(tokens)))


@of_tokens
def _shown(tokens: tuple) -> tuple[str, ...]:
    return tuple(f"{before}{visible(token.text)}{after}" for token, (before, after) in zip(tokens, marks(tokens)))


@of_tokens
def marks(tokens: tuple) -> tuple[tuple[str, str], ...]:
    """The marks before and after the text of each token. A special token has no marks."""
    result, before = [], None
    for token, part in zip(tokens, _parts(tokens)):
        continues = not token.special and token.word is not None and before is not None and token.word == before.word
        result.append(("·" * continues, "⁇" * (token.unknown and not token.special) + part))
        before = token
    return tuple(result)


def _parts(tokens: Sequence) -> list[str]:
    """For pieces that are bytes of one character, the number of the byte, from 1; "" for all others."""
    spans = [
        None if token.word is None or token.start == token.end else (token.word, token.start, token.end)
        for token in tokens
    ]
    parts: list[str] = []
    for span, run in groupby(spans):
        count = len(list(run))
        several = span is not None and count > 1
        parts += [str(place).translate(_SMALL) if several else "" for place in range(1, count + 1)]
    return parts


@functools.lru_cache(256)  # each model asks for the same text
def plain(text: str) -> str:
    """A text as its words and numbers are looked up: without characters that print nothing, accents on their letters,
    full-width letters, ligatures and signs as usual ones; raised digits and fractions are unchanged."""
    if text.isascii():
        return text
    read = (c if c in RAISED else unicodedata.normalize("NFKC", c) for c in _NOT_PRINTED.sub("", text))
    return unicodedata.normalize("NFC", "".join(read))


def prints_nothing(text: str) -> bool:
    """Does it consist only of blanks and invisible characters? Then `visible` shows signs for them."""
    return all(character.isspace() or _is_blank(character) for character in text)


def escaped(text: str) -> str:
    r"""A text with its control characters as escapes, such as `\u202e`, which would reorder the words after it. Line
    breaks and tabs stay. For names, labels and whole texts; `visible` is for tokens."""
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _is_blank(character: str) -> bool:
    return character in _BLANK or "\ufe00" <= character <= "\ufe0f" or "\U000e0000" <= character <= "\U000e0fff"


def _visible(character: str) -> str:
    if character in _SPACES:
        return " "
    if character in _SILENT:
        return ""
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in _JOINERS
    return "�" if hidden else character
