"""Attention as an alignment of words, and its error rate against links set by hand (Och & Ney 2003).

Axes: T target words (rows), S source words (columns); Q, K the pieces they are made of; H heads. A link in a matrix is True.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from attnviz.gold import Pair, Span
from attnviz.select import Grid
from attnviz.trace import Token, Trace

SHIFTS = (-1, 0, 1)
Head = tuple[int | None, int | None]  # layer, head; None for the mean over heads, or over layers too


@dataclass(frozen=True)
class Counts:
    """Links found (A), sure (S), and how many of those found are sure or possible (P); they add up over sentences."""

    found: int
    sure: int
    found_sure: int
    found_possible: int

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.found + other.found,
            self.sure + other.sure,
            self.found_sure + other.found_sure,
            self.found_possible + other.found_possible,
        )

    @property
    def error_rate(self) -> float:
        """1 - (|A∩S| + |A∩P|) / (|A| + |S|), 0 to 1; NaN without any link."""
        return 1 - _share(self.found_sure + self.found_possible, self.found + self.sure)

    @property
    def precision(self) -> float:
        """|A∩P| / |A|; NaN when no link was found."""
        return _share(self.found_possible, self.found)

    @property
    def recall(self) -> float:
        """|A∩S| / |S|; NaN when no link is sure."""
        return _share(self.found_sure, self.sure)

    def to_dict(self) -> dict:
        """The three figures, rounded to 4 digits, None for NaN; and the number of links found."""
        figures = {name: getattr(self, name) for name in ("error_rate", "precision", "recall")}
        return {name: None if np.isnan(value) else round(value, 4) for name, value in figures.items()} | {
            "links": self.found
        }


@dataclass(frozen=True)
class Cells:
    """Links as cells (query, key) of a Grid; every sure one is possible too."""

    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


def count(found: np.ndarray, pair: Pair) -> Counts:
    """Compare an alignment, bool (T, S), with a pair's links."""
    if (wanted := (len(pair.target_words), len(pair.source_words))) != found.shape:
        raise ValueError(f"an alignment of this pair must have shape {wanted}; got {found.shape}")
    links = {(int(source), int(target)) for target, source in np.argwhere(found)}
    return Counts(len(links), len(pair.sure), len(links & pair.sure), len(links & pair.possible))


def argmax(weights: np.ndarray) -> np.ndarray:
    """weights (..., T, S) -> links (..., T, S): each target word with its most attended source word, none in a row of NaN."""
    there = ~np.isnan(weights).any(-1, keepdims=True)
    return (np.arange(weights.shape[-1]) == np.where(there, weights, 0).argmax(-1)[..., None]) & there


def above(threshold: float) -> Callable[[np.ndarray], np.ndarray]:
    """A rule like `argmax`: all links whose weight is at least `threshold`."""
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1; got {threshold}")
    return lambda weights: weights >= threshold


def diagonal(targets: int, sources: int) -> np.ndarray:
    """Links (T, S) that cost nothing: target word j with the source word where its middle falls, floor((j + 1/2) S / T)."""
    return np.arange(sources) == ((2 * np.arange(targets) + 1) * sources // (2 * targets))[:, None]


def on_words(trace: Trace, pair: Pair, shift: int = 0) -> dict[Head, np.ndarray]:
    """Cross-attention between the pair's words: weights (T, S) of each (layer, head), in float64.

    With more than one head or layer also their means: (layer, None) of its heads, (None, None) of all. Weights are SUMMED
    over the pieces of a source word and AVERAGED over those of a target word, special tokens are left out and the rest of
    each row is divided by its sum. A piece that lies in several source words is shared out by characters. A word with no
    piece, or with nothing left of its row, has a row of NaN.

    shift : read target piece t from row t + shift; 1 is the row after the one that produced it (Chen et al. 2020).
    Raises ValueError unless the trace is of the pair's texts, at the level of pieces. Empty for a model without attention.
    """
    if (trace.text, trace.translation) != (pair.source, pair.target) or trace.level != "pieces":
        raise ValueError(
            f"the trace must be of the pieces of {pair.source!r} and, forced, {pair.target!r}; "
            f"got the {trace.level} of {trace.text!r} and {trace.translation!r}"
        )
    keys = _covered(trace.source, pair.source_words)  # (K, S)
    keys = keys / np.maximum(keys.sum(1, keepdims=True), 1)
    queries = _covered(trace.target, pair.target_words) > 0  # (Q, T)
    layers = {m.layer: _shifted(m.weights, shift) for m in trace.maps if m.kind == "cross"}
    found = {(layer, head): weights for layer, heads in layers.items() for head, weights in enumerate(heads)}
    if len(found) > 1:
        found |= {(layer, None): heads.mean(0) for layer, heads in layers.items()}
        found[None, None] = np.concatenate(list(layers.values())).mean(0)
    return {head: _normalised(queries, weights, keys) for head, weights in found.items()}


def cells(grid: Grid, pair: Pair) -> Cells:
    """The links of a pair on a grid of cross-attention, of pieces or words: those cells that touch a linked pair of words.

    Raises ValueError when the grid is of another kind, or of other texts.
    """
    if grid.kind != "cross":
        raise ValueError(f"links join a target and a source, so the map must be of kind cross; got {grid.kind}")
    for text, tokens in ((pair.target, grid.queries), (pair.source, grid.keys)):
        for token in tokens:
            if not token.special and text[token.start : token.end] != token.text:
                raise ValueError(f"the map must be of {text!r}; got {token.text!r} at {token.start}")
    queries, keys = _covered(grid.queries, pair.target_words) > 0, _covered(grid.keys, pair.source_words) > 0

    def touched(links):
        matrix = np.zeros((len(pair.target_words), len(pair.source_words)))
        for source, target in links:
            matrix[target, source] = 1
        return frozenset(map(tuple, np.argwhere(queries @ matrix @ keys.T).tolist()))

    return Cells(touched(pair.sure), touched(pair.possible))


def measure(traces: Sequence[Trace], pairs: Sequence[Pair], rule: Callable = argmax, shift: int = 0) -> pd.DataFrame:
    """One row for each layer and head and each of their means (see `on_words`): the error rate over all pairs.

    Columns layer, head (NA for a mean), error_rate, precision, recall, links. No rows for a model without attention.
    """
    rows = [
        {"layer": layer, "head": head, **_total(counts).to_dict()}
        for (layer, head), counts in _counted(traces, pairs, rule, shift).items()
    ]
    return pd.DataFrame(rows, columns=["layer", "head", "error_rate", "precision", "recall", "links"]).astype(
        {"layer": "Int64", "head": "Int64"}
    )


def best_head(
    traces: Sequence[Trace], pairs: Sequence[Pair], rule: Callable = argmax, shift: int = 0
) -> tuple[Counts, list[Head]]:
    """The error of the best head, chosen on other sentences than those scored: on the odd ones for the even, and the reverse.

    Returns the counts over all pairs, and the heads chosen for the even and the odd ones. ValueError for a model without
    attention, and for one of several heads with fewer than two pairs; a head that is alone needs no choosing.
    """
    heads = {head: counts for head, counts in _counted(traces, pairs, rule, shift).items() if None not in head}
    if not heads:
        raise ValueError("there must be attention to measure; got none")
    if len(heads) > 1 and len(pairs) < 2:
        raise ValueError(
            f"of {len(heads)} heads the best is chosen on other sentences than those scored, so there must be two "
            f"linked pairs or more; got {len(pairs)}"
        )
    total, chosen = Counts(0, 0, 0, 0), []
    for scored in (0, 1):
        rates = {head: _total(counts[1 - scored :: 2]).error_rate for head, counts in heads.items()}
        best = min(heads, key=lambda head: (np.isnan(rates[head]), rates[head]))  # no rate at all is not the best one
        total, chosen = total + _total(heads[best][scored::2]), [*chosen, best]
    return total, chosen


def report(translator, pairs: Sequence[Pair], rule: Callable = argmax) -> dict | None:
    """What a card says of alignment: forced decoding of the pairs' targets. None without pairs or attention.

    translator : anything with `trace(source, target) -> Trace`.
    pairs, sure, possible    how many there are
    heads, means             the figures of every layer and head, and of the mean of heads, by layer and over all layers
    best_head                of the head chosen on other sentences (see `best_head`), and which were chosen
    shifted                  the same with rows shifted by one step, -1 and 1
    diagonal                 of the diagonal, which looks at nothing
    """
    traces = [_forced(translator, pair) for pair in pairs]
    frame = measure(traces, pairs, rule)
    if frame.empty:
        return None
    records = [
        {key: None if pd.isna(value) else value for key, value in row.items()} for row in frame.to_dict("records")
    ]
    best = {shift: best_head(traces, pairs, rule, shift) for shift in SHIFTS}
    found = {
        shift: counts.to_dict() | {"chosen": [list(head) for head in chosen]}
        for shift, (counts, chosen) in best.items()
    }
    plain = _total([count(diagonal(len(pair.target_words), len(pair.source_words)), pair) for pair in pairs])
    return {
        "pairs": len(pairs),
        "sure": sum(len(pair.sure) for pair in pairs),
        "possible": sum(len(pair.possible) for pair in pairs),
        "best_head": found[0],
        "diagonal": plain.to_dict(),
        "shifted": {str(shift): found[shift] for shift in SHIFTS if shift},
        "heads": [row for row in records if row["head"] is not None],
        "means": [row for row in records if row["head"] is None],
    }


def _forced(translator, pair: Pair) -> Trace:
    try:
        return translator.trace(pair.source, pair.target)
    except ValueError as error:
        raise ValueError(f"the pair {pair.source[:60]!r}, {pair.target[:60]!r}: {error}") from None


def _counted(traces, pairs, rule, shift) -> dict[Head, list[Counts]]:
    """The counts of every pair, for every head and mean."""
    if len(traces) != len(pairs):
        raise ValueError(f"there must be one trace for each pair; got {len(traces)} traces and {len(pairs)} pairs")
    counted: dict[Head, list[Counts]] = {}
    for trace, pair in zip(traces, pairs):
        for head, weights in on_words(trace, pair, shift).items():
            counted.setdefault(head, []).append(count(rule(weights), pair))
    return counted


def _total(counts: Iterable[Counts]) -> Counts:
    return sum(counts, Counts(0, 0, 0, 0))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _covered(tokens: Sequence[Token], words: Sequence[Span]) -> np.ndarray:
    """(tokens, words): characters that each token has in each word. A piece of blank stands with the piece that it leads."""
    spans = [(token.start, token.end) for token in tokens]
    for i in reversed(range(len(tokens) - 1)):
        if not tokens[i].special and not tokens[i].text.strip() and tokens[i].word == tokens[i + 1].word:
            spans[i] = spans[i + 1]
    first, last = np.array(spans).reshape(-1, 2).T[..., None]
    start, end = np.array(words).T
    return np.clip(np.minimum(last, end) - np.maximum(first, start), 0, None)


def _shifted(weights: np.ndarray, shift: int) -> np.ndarray:
    """weights (H, Q, K) with row t + shift in the place of row t, NaN where there is none."""
    rows = np.arange(weights.shape[1]) + shift
    there = (rows >= 0) & (rows < len(rows))
    return np.where(there[:, None], weights[:, np.where(there, rows, 0)].astype(np.float64), np.nan)


def _normalised(queries: np.ndarray, weights: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """queries (Q, T) bool, weights (Q, K), keys (K, S) shares -> (T, S), each row divided by its sum."""
    there = queries & ~np.isnan(weights[:, :1])  # pieces with a row
    sums = there.T @ np.nan_to_num(weights) @ keys
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: nothing to look with, or nothing looked at
        return sums / sums.sum(1, keepdims=True)
