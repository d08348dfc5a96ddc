"""Heads compared: a table of their statistics and pattern scores, and the distance between two heads or two maps.

A statistic of a head is the mean over its steps. Axes: H heads, Q queries, K keys. Layers and heads count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz import patterns, select, stats
from attnviz.arguments import checked, listed
from attnviz.patterns import PATTERNS, Layout, Pattern
from attnviz.select import Grid
from attnviz.stats import means
from attnviz.trace import AttentionMap, Token, Trace

COLUMNS = (*stats.STATISTICS, "special_mass", "distance")


class Head(NamedTuple):
    """One head of a model, counted from 0.

    >>> str(heads.Head("encoder", 0, 3)), heads.Head("encoder", 0, 3).title
    ('encoder 0.3', 'layer 1, head 4')
    """

    kind: str
    layer: int
    head: int

    def __str__(self):
        return f"{self.kind} {self.layer}.{self.head}"

    @property
    def title(self) -> str:
        """The head in words, counted from 1: `layer 1, head 4`."""
        return select.map_title(self.layer, self.head)


@checked
def table(
    trace: Trace,
    kind: str | None = None,
    only: Iterable[str] | None = None,
    *,
    scored: Iterable[Pattern] = PATTERNS.values(),
    threshold: float = 0.1,
) -> pd.DataFrame:
    """One row per head: model, kind, layer, head, the mean over its steps of every statistic of `stats`, and

    special_mass   the weight on special keys
    distance       sum_k a_qk |k - p_q|, in keys from the query's own place p (Vig & Belinkov 2019, eq. 3;
                   `patterns.Layout`)

    and its score for every pattern.

    kind : only heads of this kind. only : only these columns, which takes less time; ValueError for an unknown one.
    scored : the patterns (see `patterns`).

    >>> heads.table(two_heads, only=["previous"]).previous.tolist()  # head 1 looks at the token before
    [0.0, 1.0]
    """
    by_name = {pattern.name: pattern for pattern in scored}
    columns = (*COLUMNS, *by_name)
    names = columns if only is None else tuple(only)
    if unknown := [name for name in names if name not in columns]:
        raise ValueError(f"columns must be among {', '.join(columns)}; got {listed(unknown)}")
    wanted = [by_name[name] for name in names if name in by_name]
    parts = [
        _part(trace, attention, names, wanted, threshold) for attention in trace.maps if kind in (None, attention.kind)
    ]
    columns = ["model", "kind", "layer", "head", *names]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


@checked
def most_like(frame: pd.DataFrame, pattern: str, count: int = 5) -> pd.DataFrame:
    """The `count` rows of a `table` with the highest values in one column, a pattern's score for instance, highest
    first.

    >>> heads.most_like(heads.table(two_heads), "previous", 1)["head"].tolist()
    [1]
    """
    if pattern not in frame:
        raise ValueError(f"the table must have the column {pattern:.80}; got {', '.join(frame)}")
    return frame[frame[pattern].notna()].sort_values(pattern, ascending=False, kind="stable").head(count)


@checked
def jensen_shannon(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The Jensen-Shannon distance between distributions (..., K) -> (...): 0 if they are equal, 1 if they share no key.

    sqrt(H((a + b) / 2) - (H(a) + H(b)) / 2) with entropies H in bits (Endres & Schindelin 2003). A row of NaN gives
    NaN.

    >>> heads.jensen_shannon(np.array([[0.5, 0.5], [1, 0]]), np.array([[0.5, 0.5], [0, 1]])).tolist()
    [0.0, 1.0]
    """
    a, b = (rows / rows.sum(-1, keepdims=True, dtype=np.float64) for rows in (np.asarray(a), np.asarray(b)))
    divergence = _bits((a + b) / 2) - (_bits(a) + _bits(b)) / 2
    return np.sqrt(np.clip(divergence, 0, 1))


@checked
def distances(trace: Trace, heads: Sequence[Head]) -> pd.DataFrame:
    """The mean over the queries of the Jensen-Shannon distance between every two heads, 0 to 1.

    A square table with the heads as labels of its rows and columns. ValueError unless the trace has all heads and they
    are of one kind, so that they share queries and keys.

    >>> heads.distances(two_heads, [heads.Head("decoder", 0, 0), heads.Head("decoder", 0, 1)]).round(2).values.tolist()
    [[0.0, 0.67], [0.67, 0.0]]
    """
    if len({head.kind for head in heads}) != 1:
        raise ValueError(f"heads must be of one kind to be compared; got {', '.join(map(str, heads)) or 'none'}")
    weights = [weights_of(trace, head) for head in heads]
    matrix = np.zeros((len(heads), len(heads)))
    for i, j in zip(*np.triu_indices(len(heads), 1)):
        matrix[i, j] = matrix[j, i] = jensen_shannon(weights[i], weights[j]).mean()
    labels = [str(head) for head in heads]
    return pd.DataFrame(matrix, labels, labels)


@checked
def nearest(trace: Trace, head: Head) -> pd.DataFrame:
    """The other heads of the same kind, sorted by their distance (see `distances`) from one head, the nearest first.

    Columns: model, kind, layer, head, jensen_shannon. ValueError if the trace has no such head.

    >>> heads.nearest(two_heads, heads.Head("decoder", 0, 1))[["head", "jensen_shannon"]].round(2).values.tolist()
    [[0.0, 0.67]]
    """
    own = weights_of(trace, head)
    rows = [
        (trace.model, *other, float(jensen_shannon(own, attention.weights[other.head]).mean()))
        for attention in trace.maps
        if attention.kind == head.kind
        for other in (Head(head.kind, attention.layer, i) for i in range(len(attention.weights)))
        if other != head
    ]
    frame = pd.DataFrame(rows, columns=["model", "kind", "layer", "head", "jensen_shannon"])
    return frame.sort_values("jensen_shannon", kind="stable", ignore_index=True)


@checked
def weights_of(trace: Trace, head: Head) -> np.ndarray:
    """The weights (Q, K) of one head. ValueError if the trace does not have it.

    >>> heads.weights_of(trace, heads.Head("cross", 0, 0)).shape
    (6, 6)
    """
    attention = trace.map(head.kind, head.layer)
    if not 0 <= head.head < len(attention.weights):
        raise ValueError(f"head must be one of 0 to {len(attention.weights) - 1} of {attention.name}; got {head.head}")
    return attention.weights[head.head]


@checked
def search(trace: Trace, text: str, kind: str | None = None) -> pd.DataFrame:
    """The heads in which a token stands out: those that give it most weight as a key, and where they look when it is
    the query.

    text : a token, whole or without capitals; all its places are searched. kind : only heads of this kind.

    One row for each head, place and way, the largest weight first: model, kind, layer, head, way (`gets` of the token
    as a key, `gives` as a query), place (of the token, from 0), other (the place of the query that gives it most, or of
    the key that it gives most), token, other_token, weight, and mean: over the queries that see the key, or NaN.
    ValueError where no map has the token.

    >>> heads.search(trace, "dog")[["way", "other_token"]].values.tolist()
    [['gets', 'chien']]
    """
    rows = []
    for attention in trace.maps:
        if kind in (None, attention.kind):
            rows += _search_map(trace, attention, text.strip().casefold())
    if not rows:
        raise ValueError(f"text must be a token of the trace; got {text!r:.80}")
    columns = ["model", "kind", "layer", "head", "way", "place", "other", "token", "other_token", "weight", "mean"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


@checked
def search_all(traces: Iterable[Trace], text: str, kind: str | None = None) -> pd.DataFrame:
    """`search` in many traces: the heads that on average give a token most weight, or that look most at one key from
    it. A word is searched as a whole; in a trace that has no such word, as a piece.

    One row for each model, head and way, the largest weight first: model, kind, layer, head, way, sentences and places
    that have the token, weight (the mean over its places), other_token (the most frequent one), share (of the places
    with it), and example: the number of the trace with the largest weight, from 0 in the order given. ValueError where
    no trace has the token.

    >>> heads.search_all([first, second], "man")[["other_token", "example"]].values.tolist()
    [['homme', 1]]
    """
    parts = []
    for number, trace in enumerate(traces):
        for shown in (select.words(trace), trace) if trace.level == "pieces" else (trace,):
            with suppress(ValueError):
                parts.append(search(shown, text, kind).assign(trace=number))
                break
    if not parts:
        raise ValueError(f"text must be a token of one of the traces; got {text!r:.80}")
    frame = pd.concat(parts, ignore_index=True)
    by = ["model", "kind", "layer", "head", "way"]
    groups = frame.groupby(by, sort=False)
    result = groups.agg(sentences=("trace", "nunique"), places=("weight", "size"), weight=("weight", "mean"))
    most = groups["other_token"].agg(lambda tokens: tokens.value_counts().index[0])
    share = groups["other_token"].agg(lambda tokens: float(tokens.value_counts(normalize=True).iloc[0]))
    example = frame.loc[groups["weight"].idxmax()].set_index(by)["trace"]
    result = result.assign(other_token=most, share=share, example=example).reset_index()
    return result.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def _search_map(trace: Trace, attention: AttentionMap, text: str) -> list[tuple]:
    """The rows of `search` of one map."""
    queries, keys, seen = trace.queries(attention), trace.keys(attention), trace.visible(attention)
    rows = []
    for head, weights in enumerate(attention.weights):
        name = (trace.model, attention.kind, attention.layer, head)
        for place in _places(keys, text):
            query = int(weights[:, place].argmax())
            others = weights[seen[:, place], place]
            mean = float(others.mean(dtype=np.float64)) if len(others) else float("nan")
            row = ("gets", place, query, keys[place].text, queries[query].text, float(weights[query, place]), mean)
            rows.append((*name, *row))
        for place in _places(queries, text):
            key = int(weights[place].argmax())
            row = ("gives", place, key, queries[place].text, keys[key].text, float(weights[place, key]), float("nan"))
            rows.append((*name, *row))
    return rows


def _places(tokens: Sequence[Token], text: str) -> list[int]:
    """Where a text is a token: as typed, else in small letters without white space."""
    return [place for place, token in enumerate(tokens) if token.text.strip().casefold() == text]


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Two maps step by step; NaN for a step whose row is blank in either.

    distances : (Q,) Jensen–Shannon distance of the two rows, base 2: 0 for equal rows, 1 for rows that share no key.
    same_argmax : (Q,) 1.0 where both rows have their largest weight on the same key, else 0.0.

    >>> heads.disagreement(select.select(trace), select.select(trace)).share_same
    1.0
    """

    distances: np.ndarray
    same_argmax: np.ndarray

    @property
    def mean_distance(self) -> float:
        """The mean distance over the steps that both maps have; NaN if there are none."""
        return _mean_of_steps(self.distances)

    @property
    def share_same(self) -> float:
        """The share (0 to 1) of steps that look most at the same key; NaN if there are no steps."""
        return _mean_of_steps(self.same_argmax)

    @property
    def largest(self) -> int | None:
        """The step (from 0) at which the maps disagree most; None if there are none."""
        return int(np.nanargmax(self.distances)) if np.isfinite(self.distances).any() else None


@checked
def disagreement(a: Grid, b: Grid) -> Disagreement:
    """The disagreement of two maps. ValueError unless they have the same queries and keys (see `select.difference`).

    >>> heads.disagreement(select.select(two_heads, head=0), select.select(two_heads, head=1)).distances.tolist()
    [0.0, 1.0, 1.0]
    """
    select.difference(a, b)
    in_both = np.isfinite(a.weights).all(1) & np.isfinite(b.weights).all(1)
    first, second = (np.where(in_both[:, None], grid.weights, 1 / grid.weights.shape[1]) for grid in (a, b))
    distances = np.where(in_both, jensen_shannon(first, second), np.nan)
    same = np.where(in_both, first.argmax(1) == second.argmax(1), np.nan)
    return Disagreement(distances, same)


def _part(trace: Trace, attention: AttentionMap, names, wanted, threshold: float) -> pd.DataFrame:
    """The rows of one map's heads."""
    view = patterns.layout(trace, attention)
    columns = (
        means(attention.weights, trace.visible(attention), threshold) if set(names) & set(stats.STATISTICS) else {}
    )
    columns |= {pattern.name: _scores(attention.weights, pattern, view) for pattern in wanted}
    if "special_mass" in names:
        special = [token.special for token in view.keys]
        columns["special_mass"] = attention.weights[..., special].sum((1, 2), dtype=np.float64) / len(view.queries)
    if "distance" in names:
        away = np.abs(view.offset).astype(np.float32)
        columns["distance"] = np.einsum("hqk,qk->h", attention.weights, away) / len(view.queries)
    return pd.DataFrame(
        {
            "model": trace.model,
            "kind": attention.kind,
            "layer": attention.layer,
            "head": np.arange(len(attention.weights)),
            **columns,
        }
    )


def _scores(weights: np.ndarray, pattern: Pattern, view: Layout) -> np.ndarray:
    ceiling = patterns.ceiling(pattern, view)
    return np.array([patterns.score(head, ceiling) for head in weights])


def _bits(rows: np.ndarray) -> np.ndarray:
    return -(rows * np.log2(np.where(rows > 0, rows, 1))).sum(-1)


def _mean_of_steps(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


@checked
def strongest(weights: np.ndarray, visible: np.ndarray, count: int = 20) -> pd.DataFrame:
    """The largest weights of one map, the largest first: columns query, key, weight. Rows that see a single key are
    left out, because their weight is always 1.

    weights, visible (Q, K).

    >>> heads.strongest(trace.map().weights[0], trace.visible(trace.map()), 1)[["query", "key"]].values.tolist()
    [[2, 1]]
    """
    if weights.shape != visible.shape or weights.ndim != 2:
        raise ValueError(f"weights and visible must have one shape (Q, K); got {weights.shape} and {visible.shape}")
    open_cells = np.where(visible & (visible.sum(-1) > 1)[:, None], weights, -1).ravel()
    most = min(count, int((open_cells >= 0).sum()))
    places = np.argpartition(-open_cells, most - 1)[:most] if most else np.empty(0, dtype=int)
    places = places[np.argsort(-open_cells[places], kind="stable")]
    queries, keys = np.divmod(places, weights.shape[1])
    return pd.DataFrame({"query": queries, "key": keys, "weight": open_cells[places]})
