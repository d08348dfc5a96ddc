"""Tokens as text that plotly draws without losing, merging or cutting tokens.

Plotly reads every text as pseudo-HTML (`<s>` is struck through, `<eos>` is not shown), so labels are escaped; this is
the only place that does so. Italics mark special tokens, `…` a cut label; the other marks, and the signs for invisible
characters, are in attnviz/trace/visible.py.
"""

from __future__ import annotations

import functools
import html
import math
import unicodedata
from collections.abc import Sequence
from itertools import accumulate

from attnviz.trace.visible import escaped, marks, of_tokens, shown
from attnviz.trace.visible import visible as plain

_JOINERS = "\u200c\u200d"
_ISOLATE, _POP = "\u2068", "\u2069"
_BREAK = "<br>"


def named(tokens: Sequence) -> list[str]:
    """Each token for a sentence, with its marks: `‘noir’`, `‘·ning’`; specials go without quotes. Not escaped."""
    return list(_named(tuple(tokens)))


@of_tokens
def _named(tokens: tuple) -> tuple[str, ...]:
    return tuple(name if token.special else f"‘{name}’" for token, name in zip(tokens, shown(tokens)))


def quoted(tokens: Sequence, place: int) -> str:
    """One of these tokens for a sentence, with the marks that it has among the others. Not escaped."""
    return _named(tuple(tokens))[place]


@functools.lru_cache(4096)  # a picture says each of its tokens many times
def escape(text: str) -> str:
    """Escape for plotly's pseudo-HTML, which has no `&quot;`. `$` is escaped too, because MathJax in a notebook would
    read a formula."""
    return html.escape(escaped(text), quote=False).replace("$", "&#36;")


@functools.lru_cache(4096)
def cut(text: str, limit: int = 12) -> str:
    """Text with invisible characters shown by signs, cut after `limit` columns. Not escaped."""
    if sum(map(_columns, text)) <= limit:
        return text
    used, characters = 0, []
    for character in text:
        used += _columns(character)
        if used > limit - 1:
            break
        characters.append(character)
    closing = _POP if text.endswith(_POP) else ""
    return "".join(characters).rstrip(_JOINERS) + "…" + closing


def ticks(tokens: Sequence, limit: int = 12, lines: int = 1) -> list[str]:
    """One escaped label for each token, wrapped after `limit` columns of text and cut after `lines` lines."""
    return list(_ticks(tuple(tokens), limit, lines))


@of_tokens
def _ticks(tokens: tuple, limit: int, lines: int) -> tuple[str, ...]:
    return tuple(_tick(token, *around, limit, lines) for token, around in zip(tokens, marks(tokens)))


def thin(count: int, room: int, keep: int | None = None) -> list[int]:
    """The positions of 0..count-1 to label when only `room` labels fit: evenly spaced, and always `keep`."""
    every = max(1, math.ceil(count / room))
    if keep is None:
        return list(range(0, count, every))
    return sorted({keep, *(i for i in range(0, count, every) if abs(i - keep) >= every)})


def width(label: str) -> int:
    """Columns of text a label takes: 2 for wide (CJK, emoji) characters, 0 for combining marks; tags do not count."""
    lines = label.replace("<i>", "").replace("</i>", "").split(_BREAK)
    return max(columns(html.unescape(line)) for line in lines)


@functools.lru_cache(4096)
def columns(text: str) -> int:
    """Columns that plain text takes: 2 for wide (CJK, emoji) characters, 0 for combining marks."""
    return sum(map(_columns, text))


def _tick(token, before: str, after: str, limit: int, lines: int) -> str:
    text = _BREAK.join(map(escape, _wrapped(plain(token.text), limit, lines)))
    return f"<i>{text}</i>" if token.special else f"{before}{text}{after}"


def _wrapped(text: str, limit: int, lines: int) -> list[str]:
    """The text in lines of `limit` columns, the last one cut; every line of a right-to-left text has its own direction
    isolate."""
    if lines == 1 or sum(map(_columns, text)) <= limit:
        return [cut(text, limit)]
    isolated = text.endswith(_POP)
    bare = text[1:-1] if isolated else text
    columns = list(accumulate(map(_columns, bare)))
    end = next((i for i, used in enumerate(columns) if used > limit), len(bare))
    first, rest = ((f"{_ISOLATE}{part}{_POP}" if isolated else part) for part in (bare[:end], bare[end:]))
    return [first, *_wrapped(rest, limit, lines - 1)]


@functools.lru_cache(4096)
def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
