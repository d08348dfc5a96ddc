"""How much of each content word of a source the rows of a translation read: the words that no row reads are probably
left untranslated (the idea of coverage: Tu et al. 2016, "Modeling coverage for neural machine translation").
"""

import re
from dataclasses import dataclass

from attnviz import function_words
from attnviz.arguments import checked
from attnviz.trace import Trace

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_IDIOMS = frozenset("front lot kind sort order case spite".split())  # "in front of", "a lot of": one word elsewhere


@dataclass(frozen=True)
class Covered:
    """A content word of the source, and the most that a row gives it, 0 to 1: the sum over its pieces."""

    text: str
    weight: float


@checked
def coverage(trace: Trace, language: str = "en") -> tuple[Covered, ...]:
    """Of each content word of the source: cross-attention of the last layer, mean of its heads, the largest over the
    rows of tokens that are not special. () for a trace without cross-attention or without such rows.

    language : of the source; ValueError for one without a list of function words.
    """
    maps = [attention for attention in trace.maps if attention.kind == "cross"]
    rows = [row for row, token in enumerate(trace.target) if not token.special]
    if not maps or not rows:
        return ()
    weights = max(maps, key=lambda attention: attention.layer).weights.mean(0)[rows]
    result = []
    for match in _WORD.finditer(trace.text):
        word = match.group()
        keys = [
            key
            for key, token in enumerate(trace.source)
            if not token.special and token.start < match.end() and token.end > match.start()
        ]
        if keys and word.lower() not in _IDIOMS and function_words.kind(word, language) == function_words.CONTENT:
            result.append(Covered(word, float(weights[:, keys].sum(1).max())))
    return tuple(result)
