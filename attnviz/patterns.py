"""Patterns of attention heads, and the score of a head for each: the share of its weight that fits the pattern.

    score = mean over queries q of sum_k min(a_qk, u_qk)          0 to 1

u (Q, K) is the ceiling of a pattern, the largest weight that counts in each cell. Most patterns have u = 1 on the keys
that they describe and 0 elsewhere, so the score is the weight on those keys. The broad pattern has u = 1 / n on all n
visible keys, so the score is the overlap with uniform attention. Hidden cells have u = 0.

Queries with one visible key are left out, and so are queries for which the pattern has no visible key. The score is NaN
if no query remains.

The patterns are those of Clark et al. 2019, sec. 3, Kovaleva et al. 2019, sec. 4.1 and Voita et al. 2019, sec. 5;
`same` is the duplicate-token head of Wang et al. 2022, sec. 3, `induction` that of Olsson et al. 2022. Q queries, K
keys, H heads.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attnviz.arguments import checked, shown, within
from attnviz.trace import AttentionMap, Token, Trace

_WORDS = (
    "stone door milk seven under green horse paper quick river chair apple window sleep north bread yellow never "
    "silver garden mouse letter summer cloud"
).split()
REACH = 2  # keys on either side that count as local


class Layout(NamedTuple):
    """What a pattern may use of a map: its tokens and which keys are visible, never its weights.

    queries : the tokens at the rows' positions. In a decoder map these are the inputs, which are the keys of the map,
        and not the outputs, which name its rows.
    place : (Q,) the key at the position of each query. In cross-attention, the key on the diagonal, floor((q + 1/2) K /
        Q).
    sink : the last key is a sink (see `AttentionMap`). It fits no pattern, so it is not visible here.

    >>> patterns.layout(trace, trace.map()).place.tolist()
    [0, 1, 2, 3, 4, 5]
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
    """The layout of a map of this trace.

    >>> patterns.layout(trace, trace.map()).offset[1].tolist()
    [-1, 0, 1, 2, 3, 4]
    """
    keys, rows = trace.keys(attention), len(trace.queries(attention))
    queries = keys if attention.kind == "decoder" else trace.queries(attention)
    place = (2 * np.arange(rows) + 1) * (len(keys) - attention.sink) // (2 * rows)
    visible = trace.visible(attention)
    if attention.sink:
        visible[:, -1] = False
    return Layout(attention.kind, queries, keys, visible, place, attention.sink)


@dataclass(frozen=True)
class Pattern:
    """name : its column in a table. formula : u in LaTeX. words : u in words. cells : Layout -> u (Q, K).

    >>> patterns.PATTERNS["previous"].words
    "the position before the query's own"
    """

    name: str
    title: str
    formula: str
    words: str
    cells: Callable[[Layout], np.ndarray]


def _same(view: Layout) -> np.ndarray:
    equal = _equal(view)
    return equal if view.kind == "cross" else equal & (view.offset != 0)


def _after_the_same(view: Layout) -> np.ndarray:
    if view.kind == "cross":
        return np.zeros(view.visible.shape, dtype=bool)
    return np.pad(_same(view)[:, :-1], ((0, 0), (1, 0)))


def _equal(view: Layout) -> np.ndarray:
    """(Q, K): does the key have the same text as the query? False for special tokens."""
    queries, keys = (
        np.array([None if token.special else token.piece or token.text for token in tokens], dtype=object)
        for tokens in (view.queries, view.keys)
    )
    return (queries[:, None] == keys) & (keys != None)  # noqa: E711  special tokens have no text


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
            "induction",
            "Induction",
            r"u_{qk} = [k - 1 \ne p_q,\ w_{k-1} = w_q]",
            "the token after another occurrence of the query's own text w; it has no meaning in cross-attention",
            _after_the_same,
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

    >>> adjective = patterns.linked("adjective", "The adjective to its translation", {(2, 1)})  # noir, black
    >>> heads.table(trace, scored=[adjective]).adjective.round(2).tolist()
    [0.8]
    """
    chosen = frozenset(links)

    def cells(view: Layout) -> np.ndarray:
        return np.array([[(query.word, key.word) in chosen for key in view.keys] for query in view.queries])

    return Pattern(
        name, title, r"u_{qk} = [(q, k) \text{ is annotated}]", "the keys that an annotation links to the query", cells
    )


@checked
def ceiling(pattern: Pattern, view: Layout) -> np.ndarray:
    """u (Q, K) float32; 0 in hidden cells and in the rows of queries with one visible key.

    >>> patterns.ceiling(patterns.PATTERNS["previous"], patterns.layout(trace, trace.map()))[2].tolist()
    [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """
    choice = view.visible.sum(-1, keepdims=True) > 1
    return (pattern.cells(view) * view.visible * choice).astype(np.float32)


@checked
def score(weights: np.ndarray, ceiling: np.ndarray) -> float:
    """The score of weights (Q, K) for a ceiling (Q, K), 0 to 1.

    NaN if the ceiling is 0 everywhere; ValueError for shapes.

    >>> float(patterns.score(np.array([[0.75, 0.25], [0, 1]]), np.array([[1, 0], [1, 0]])))
    0.375
    """
    weights, ceiling = np.asarray(weights), np.asarray(ceiling)
    if weights.shape != ceiling.shape:
        raise ValueError(f"weights must have the shape of the ceiling, {ceiling.shape}; got {weights.shape}")
    rows = ceiling.any(-1).sum()
    return min(1.0, float(np.minimum(weights, ceiling).sum()) / rows) if rows else np.nan


class Example(NamedTuple):
    """A cell in which a head follows a pattern. query, key : from 0. weight : of the key.

    >>> patterns.examples(np.array([[0.75, 0.25], [0, 1]]), np.eye(2))[0]
    Example(query=1, key=1, weight=1.0)
    """

    query: int
    key: int
    weight: float


@checked
def examples(weights: np.ndarray, ceiling: np.ndarray, count: int = 5) -> list[Example]:
    """The cells of a pattern with the largest weights, at most one of each query, the largest first.

    weights (Q, K), ceiling (Q, K) of `ceiling`: a cell is ranked by the part of its weight below the ceiling; cells
    without weight are left out. ValueError for other shapes.

    >>> [example.query for example in patterns.examples(np.array([[0.75, 0.25], [0, 1]]), np.eye(2))]
    [1, 0]
    """
    if np.shape(weights) != np.shape(ceiling):
        raise ValueError(f"weights must have the shape of the ceiling, {np.shape(ceiling)}; got {np.shape(weights)}")
    counted = np.minimum(weights, ceiling)
    keys = counted.argmax(-1)
    best = counted[np.arange(len(keys)), keys]
    order = [int(query) for query in np.argsort(-best, kind="stable") if best[query] > 0]
    return [Example(query, int(keys[query]), float(weights[query, keys[query]])) for query in order[:count]]


@checked
def repeated(count: int = 12, seed: int = 1) -> str:
    """A text that shows induction: `count` words in a random order, twice. Only the first copy allows predicting their
    order (Olsson et al. 2022, “random tokens repeated”). ValueError unless count is from 2 to 24.

    >>> patterns.repeated(3)
    'door letter paper door letter paper'
    """
    within("count", count, 2, len(_WORDS))
    if seed < 0:
        raise ValueError(f"seed must be at least 0; got {shown(seed)}")
    words = np.random.default_rng(seed).permutation(_WORDS)[:count].tolist()
    return " ".join(words * 2)


@checked
def chance(trace: Trace, kind: str = "encoder", patterns: Iterable[Pattern] = PATTERNS.values()) -> dict[str, float]:
    """The score of uniform attention for each pattern, the baseline for a head's score. It is high for short texts.

    >>> f"{patterns.chance(trace, 'cross')['current']:.2f}"
    '0.17'
    """
    view = layout(trace, trace.map(kind))
    uniform = view.visible / view.visible.sum(-1, keepdims=True)
    return {pattern.name: score(uniform, ceiling(pattern, view)) for pattern in patterns}
