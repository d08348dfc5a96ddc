"""Patterns of attention heads, and the score of a head for each: the share of its weight that fits the pattern.

    score = mean over queries q of sum_k min(a_qk, u_qk)          0 to 1

u (Q, K) is the ceiling of a pattern, the largest weight that counts in each cell. Most patterns have u = 1 on the keys
that they describe and 0 elsewhere, so the score is the weight on those keys. The broad pattern has u = 1 / n on all n
visible keys, so the score is the overlap with uniform attention. Hidden cells have u = 0.

Queries with one visible key are left out, and so are queries for which the pattern has no visible key. The score is NaN
if no query remains.

The patterns are those of Clark et al. 2019, sec. 3, Kovaleva et al. 2019, sec. 4.1 and Voita et al. 2019, sec. 5;
`same` is the duplicate-token head of Wang et al. 2022, sec. 3. Q queries, K keys, H heads.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attnviz.arguments import checked
from attnviz.trace import AttentionMap, Token, Trace

REACH = 2  # keys on either side that count as local


class Layout(NamedTuple):
    """What a pattern may use of a map: its tokens and which keys are visible, never its weights.

    queries : the tokens at the rows' positions. In a decoder map these are the inputs, which are the keys of the map,
        and not the outputs, which name its rows.
    place : (Q,) the key at the position of each query. In cross-attention, the key on the diagonal, floor((q + 1/2) K /
        Q).
    sink : the last key is a sink (see `AttentionMap`). It fits no pattern, so it is not visible here.
    """

    kind: str
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    visible: np.ndarray
    place: np.ndarray
    sink: bool = False

    @property
    def offset(self) -> np.ndarray:
        """k - place(q), (Q, K): the distance in keys from the query's own place; negative before it."""
        away = np.arange(len(self.keys)) - self.place[:, None]
        if self.sink:
            away[:, -1] = 0  # it has no place
        return away


@checked
def layout(trace: Trace, attention: AttentionMap) -> Layout:
    """The layout of a map of this trace."""
    keys, rows = trace.keys(attention), len(trace.queries(attention))
    queries = keys if attention.kind == "decoder" else trace.queries(attention)
    place = (2 * np.arange(rows) + 1) * (len(keys) - attention.sink) // (2 * rows)
    visible = trace.visible(attention)
    if attention.sink:
        visible[:, -1] = False
    return Layout(attention.kind, queries, keys, visible, place, attention.sink)


@dataclass(frozen=True)
class Pattern:
    """name : its column in a table. formula : u in LaTeX. words : u in words. cells : Layout -> u (Q, K)."""

    name: str
    title: str
    formula: str
    words: str
    cells: Callable[[Layout], np.ndarray]


def _same(view: Layout) -> np.ndarray:
    queries, keys = (
        np.array([None if token.special else token.piece or token.text for token in tokens], dtype=object)
        for tokens in (view.queries, view.keys)
    )
    equal = (queries[:, None] == keys) & (keys != None)  # noqa: E711  special tokens have no text
    return equal if view.kind == "cross" else equal & (view.offset != 0)


def _separator(view: Layout) -> np.ndarray:
    return np.array([view.visible[:, k] * (token.special and k > 0) for k, token in enumerate(view.keys)]).T


PATTERNS: Mapping[str, Pattern] = {
    pattern.name: pattern
    for pattern in (
        Pattern(
            "current",
            "Current token",
            r"u_{qk} = [k = p_q]",
            "the query's own position p; in cross-attention the key on the diagonal",
            lambda view: view.offset == 0,
        ),
        Pattern(
            "previous",
            "Previous token",
            r"u_{qk} = [k = p_q - 1]",
            "the position before the query's own",
            lambda view: view.offset == -1,
        ),
        Pattern(
            "next",
            "Next token",
            r"u_{qk} = [k = p_q + 1]",
            "the position after the query's own",
            lambda view: view.offset == 1,
        ),
        Pattern(
            "local",
            "Local window",
            rf"u_{{qk}} = [\,|k - p_q| \le {REACH}\,]",
            f"the query's own position and {REACH} on either side",
            lambda view: np.abs(view.offset) <= REACH,
        ),
        Pattern(
            "first",
            "First token",
            r"u_{qk} = [k = 0]",
            "the first key, whatever it is",
            lambda view: np.broadcast_to(np.arange(len(view.keys)) == 0, view.visible.shape),
        ),
        Pattern(
            "separator",
            "Separator",
            r"u_{qk} = [k > 0,\ k \text{ special}]",
            "special tokens other than the first key, such as <eos> or [SEP]",
            _separator,
        ),
        Pattern(
            "same",
            "Same token",
            r"u_{qk} = [k \ne p_q,\ w_k = w_q]",
            "other keys with the query's own text w; in cross-attention any key with that text",
            _same,
        ),
        Pattern(
            "broad",
            "Broad",
            r"u_{qk} = 1 / n_q",
            "every key that the query sees, n of them, equally",
            lambda view: 1 / view.visible.sum(-1, keepdims=True),
        ),
    )
}


@checked
def linked(name: str, title: str, links: Iterable[tuple[int, int]]) -> Pattern:
    """A pattern from your own annotation, such as syntax. links : (query word, key word), numbered as in `Token.word`.

    >>> linked("subject", "Verb to its subject", {(3, 2)})
    """
    chosen = frozenset(links)

    def cells(view: Layout) -> np.ndarray:
        return np.array([[(query.word, key.word) in chosen for key in view.keys] for query in view.queries])

    return Pattern(
        name, title, r"u_{qk} = [(q, k) \text{ is annotated}]", "the keys that an annotation links to the query", cells
    )


@checked
def ceiling(pattern: Pattern, view: Layout) -> np.ndarray:
    """u (Q, K) float32; 0 in hidden cells and in the rows of queries with one visible key."""
    choice = view.visible.sum(-1, keepdims=True) > 1
    return (pattern.cells(view) * view.visible * choice).astype(np.float32)


@checked
def score(weights: np.ndarray, ceiling: np.ndarray) -> float:
    """The score of weights (Q, K) for a ceiling (Q, K), 0 to 1.

    NaN if the ceiling is 0 everywhere; ValueError for shapes.
    """
    weights, ceiling = np.asarray(weights), np.asarray(ceiling)
    if weights.shape != ceiling.shape:
        raise ValueError(f"weights must have the shape of the ceiling, {ceiling.shape}; got {weights.shape}")
    rows = ceiling.any(-1).sum()
    return min(1.0, float(np.minimum(weights, ceiling).sum()) / rows) if rows else np.nan


@checked
def chance(trace: Trace, kind: str = "encoder", patterns: Iterable[Pattern] = PATTERNS.values()) -> dict[str, float]:
    """The score of uniform attention for each pattern, the baseline for a head's score. It is high for short texts."""
    view = layout(trace, trace.map(kind))
    uniform = view.visible / view.visible.sum(-1, keepdims=True)
    return {pattern.name: score(uniform, ceiling(pattern, view)) for pattern in patterns}
