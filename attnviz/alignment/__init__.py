"""Attention as an alignment of words, and its error rate against links set by hand (Och & Ney 2003).

Axes: T target words (rows), S source words (columns); Q, K their pieces; H heads. A matrix of links is bool: True is a
link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz import arguments, function_words
from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.gold import LinkedPair, Span
from attnviz.select import Grid, shifted_rows
from attnviz.trace import Token, Trace
from attnviz.trace.visible import WORD, plain

HeadOrMean = tuple[int | None, int | None]  # layer, head; None for the mean over heads, or over layers too
SHIFTS = (-1, 0, 1)  # rows by which `report` moves the weights
_IDIOMS = frozenset("front lot kind sort order case spite".split())  # "in front of", "a lot of": one word elsewhere


@dataclass(frozen=True)
class Cells:
    """Links as cells (query, key) of a Grid. Every sure cell is possible too."""

    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


@checked
def on_words(trace: Trace, pair: LinkedPair, shift: int = 0) -> dict[HeadOrMean, np.ndarray]:
    """Cross-attention between the pair's words: weights (T, S), float64, of each (layer, head).

    With several heads or layers, their means too: (layer, None) over the heads of a layer, (None, None) over all.
    Weights are SUMMED over the pieces of a source word and AVERAGED over the pieces of a target word. Special tokens
    are left out, and each row is divided by its remaining sum. The weight on a piece that lies in several source words
    is divided among them by characters. A row is NaN if its word has no piece, or if no weight remains.

    shift : read target piece t from row t + shift. 1 is the row after the one that produced it (Chen et al. 2020).
    Empty for a model without attention. ValueError unless the trace is of the pair's texts, at the level of pieces.
    """
    if (trace.text, trace.translation) != (pair.source, pair.target) or trace.level != "pieces":
        raise ValueError(
            f"the trace must be of the pieces of {pair.source!r:.80} and, forced, {pair.target!r:.80}; "
            f"got the {trace.level} of {trace.text!r:.80} and {trace.translation!r:.80}"
        )
    layers = {m.layer: shifted_rows(m.weights, shift) for m in trace.maps if m.kind == "cross"}
    heads: dict[tuple[int | None, int | None], np.ndarray] = {}
    heads |= {(layer, head): weights for layer, stack in layers.items() for head, weights in enumerate(stack)}
    if len(heads) > 1:
        heads |= {(layer, None): stack.mean(0) for layer, stack in layers.items()}
        heads[None, None] = np.concatenate(list(layers.values())).mean(0)
    sides = trace.target, trace.source, pair.target_words, pair.source_words
    return dict(zip(heads, between_words(np.array(list(heads.values())), *sides))) if heads else {}


@checked
def between_words(
    weights: np.ndarray,
    queries: Sequence[Token],
    keys: Sequence[Token],
    query_words: Sequence[Span],
    key_words: Sequence[Span],
) -> np.ndarray:
    """Weights (H, Q, K) between tokens -> (H, T, S) between words. A word is its (start, end) in its text.

    Weights are summed over the tokens of a key word and averaged over those of a query word; the weight on a token that
    lies in several key words is divided among them by characters. Weight outside all words, such as that on special
    tokens, is left out, and each row is divided by its remaining sum: NaN if nothing remains, or the word has no token.
    """
    shares = _covered(keys, key_words)  # (K, S)
    shares = shares / np.maximum(shares.sum(1, keepdims=True), 1)
    rows = _covered(queries, query_words) > 0  # (Q, T)
    return np.array([_normalised(rows, head, shares) for head in weights])


@checked
def cells(grid: Grid, pair: LinkedPair) -> Cells:
    """The cells of a cross-attention grid, of pieces or words, whose tokens belong to linked words.

    Raises ValueError when the grid is of another kind, or of other texts.
    """
    if grid.kind != "cross":
        raise ValueError(f"links join a target and a source, so the map must be of kind cross; got {grid.kind}")
    for text, tokens in ((pair.target, grid.queries), (pair.source, grid.keys)):
        for token in tokens:
            if not token.special and text[token.start : token.end] != token.text:
                raise ValueError(f"the map must be of {text!r:.80}; got {token.text!r:.80} at {token.start}")
    queries, keys = _covered(grid.queries, pair.target_words) > 0, _covered(grid.keys, pair.source_words) > 0

    def touched(links):
        matrix = np.zeros((len(pair.target_words), len(pair.source_words)))
        for source, target in links:
            matrix[target, source] = 1
        return frozenset(map(tuple, np.argwhere(queries @ matrix @ keys.T).tolist()))

    return Cells(touched(pair.sure), touched(pair.possible))


def _covered(tokens: Sequence[Token], words: Sequence[Span]) -> np.ndarray:
    """(tokens, words): the number of characters that each token shares with each word.

    A blank piece counts as the piece after it, if both belong to the same word.
    """
    spans = [(token.start, token.end) for token in tokens]
    for i in reversed(range(len(tokens) - 1)):
        if not tokens[i].special and not tokens[i].text.strip() and tokens[i].word == tokens[i + 1].word:
            spans[i] = spans[i + 1]
    first, last = np.array(spans).reshape(-1, 2).T[..., None]
    start, end = np.array(words).T
    return np.clip(np.minimum(last, end) - np.maximum(first, start), 0, None)


def _normalised(queries: np.ndarray, weights: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """queries (Q, T) bool, weights (Q, K), keys (K, S) shares -> (T, S), each row divided by its sum."""
    has_row = queries & ~np.isnan(weights[:, :1])  # pieces that have a row
    sums = has_row.T @ np.nan_to_num(weights) @ keys
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: the word has no piece, or no weight remains
        return sums / sums.sum(1, keepdims=True)


@dataclass(frozen=True)
class Counts:
    """Numbers of links: predicted (A), sure (S), predicted and sure, predicted and possible (P).

    Sums over sentences with +.
    """

    predicted: int
    sure: int
    predicted_sure: int
    predicted_possible: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.predicted + other.predicted,
            self.sure + other.sure,
            self.predicted_sure + other.predicted_sure,
            self.predicted_possible + other.predicted_possible,
        )

    @property
    def error_rate(self) -> float:
        """1 - (|A∩S| + |A∩P|) / (|A| + |S|), 0 to 1; NaN without any link."""
        return 1 - _share(self.predicted_sure + self.predicted_possible, self.predicted + self.sure)

    @property
    def precision(self) -> float:
        """|A∩P| / |A|; NaN when no link was predicted."""
        return _share(self.predicted_possible, self.predicted)

    @property
    def recall(self) -> float:
        """|A∩S| / |S|; NaN when no link is sure."""
        return _share(self.predicted_sure, self.sure)

    def to_dict(self) -> dict:
        """The three rates, rounded to 4 digits (None for NaN), and the number of predicted links."""
        rates = {name: getattr(self, name) for name in ("error_rate", "precision", "recall")}
        return {name: None if np.isnan(value) else round(value, 4) for name, value in rates.items()} | {
            "links": self.predicted
        }


@checked
def count(predicted: np.ndarray, pair: LinkedPair) -> Counts:
    """Compare predicted links, bool (T, S), with the links of a pair. ValueError for another shape."""
    predicted = np.asarray(predicted)
    if (wanted := (len(pair.target_words), len(pair.source_words))) != predicted.shape:
        raise ValueError(f"an alignment of this pair must have shape {wanted}; got {predicted.shape}")
    links = {(int(source), int(target)) for target, source in np.argwhere(predicted)}
    return Counts(len(links), len(pair.sure), len(links & pair.sure), len(links & pair.possible))


@checked
def argmax(weights: np.ndarray) -> np.ndarray:
    """weights (..., T, S) -> links (..., T, S): each target word is linked to its most attended source word.

    A row of NaN has no link.
    """
    weights = np.asarray(weights)
    has_weights = ~np.isnan(weights).any(-1, keepdims=True)
    return (np.arange(weights.shape[-1]) == np.where(has_weights, weights, 0).argmax(-1)[..., None]) & has_weights


@checked
def above(threshold: float) -> Callable[[np.ndarray], np.ndarray]:
    """A rule like `argmax`: every weight of at least `threshold` is a link. ValueError unless 0 < threshold <= 1."""
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1; got {threshold}")
    return lambda weights: weights >= threshold


@checked
def diagonal(targets: int, sources: int) -> np.ndarray:
    """Links (T, S) without a model, as a baseline: target word j with source word floor((j + 1/2) S / T)."""
    return np.arange(sources) == ((2 * np.arange(targets) + 1) * sources // (2 * targets))[:, None]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


@checked
def measure(
    traces: Sequence[Trace], pairs: Sequence[LinkedPair], rule: Callable = argmax, shift: int = 0
) -> pd.DataFrame:
    """The error rate over all pairs, one row for each head and each mean of heads (see `on_words`).

    Columns: layer and head (NA for a mean), error_rate, precision, recall, links. No rows for a model without
    attention.
    """
    rows = [
        {"layer": layer, "head": head, **_total(counts).to_dict()}
        for (layer, head), counts in _counted(traces, pairs, rule, shift).items()
    ]
    return pd.DataFrame(rows, columns=["layer", "head", "error_rate", "precision", "recall", "links"]).astype(
        {"layer": "Int64", "head": "Int64"}
    )


@checked
def best_head(
    traces: Sequence[Trace], pairs: Sequence[LinkedPair], rule: Callable = argmax, shift: int = 0
) -> tuple[Counts, list[HeadOrMean]]:
    """The counts of the best head, chosen on other sentences than those scored.

    The even sentences are scored with the head that is best on the odd ones, and the reverse. Returns the counts over
    all pairs and the heads chosen for the even and the odd sentences. ValueError for a model without attention, and for
    a model of several heads with fewer than two pairs.
    """
    heads = {head: counts for head, counts in _counted(traces, pairs, rule, shift).items() if None not in head}
    if not heads:
        raise ValueError("there must be attention to measure; got none")
    if len(heads) > 1 and len(pairs) < 2:
        raise ValueError(
            f"the best of {len(heads)} heads is chosen on other sentences than those scored, so at least two linked "
            f"pairs are needed; got {len(pairs)}"
        )
    total, chosen = Counts(0, 0, 0, 0), []
    for scored in (0, 1):
        rates = {head: _total(counts[1 - scored :: 2]).error_rate for head, counts in heads.items()}
        best = min(heads, key=lambda head: (np.isnan(rates[head]), rates[head]))  # a head without a rate comes last
        total, chosen = total + _total(heads[best][scored::2]), [*chosen, best]
    return total, chosen


@checked
def report(translator, pairs: Sequence[LinkedPair], rule: Callable = argmax, shift: int = 0) -> dict | None:
    """The alignment section of a card, by forced decoding of the pairs' targets. None without pairs or attention.

    translator : any object with `trace(source, target) -> Trace`. If it also has `traces`, as models do, all pairs are
    traced in one call, which is much faster.

    pairs, sure, possible    the numbers of pairs, sure links and possible links
    heads, means             the rates of every head, and of the mean of heads by layer and over all layers
    best_head                the rates of the best head (see `best_head`), and which heads were chosen
    shifted                  the same for the other row shifts among -1, 0, 1 (see `on_words`)
    diagonal                 the rates of the diagonal, which needs no model
    """
    if not callable(getattr(translator, "trace", None)) or hasattr(translator, "shape"):  # matrices have a trace, too
        raise ValueError(f"translator must be a model that traces; got {arguments.shown(translator)}")
    if shift not in SHIFTS:
        raise ValueError(f"shift must be -1, 0 or 1; got {arguments.shown(shift)}")
    traces = _forced(translator, pairs)
    frame = measure(traces, pairs, rule, shift)
    if frame.empty:
        return None
    records = [
        {key: None if pd.isna(value) else value for key, value in row.items()} for row in frame.to_dict("records")
    ]
    best = {rows: best_head(traces, pairs, rule, rows) for rows in SHIFTS}
    shifted = {
        rows: counts.to_dict() | {"chosen": [list(head) for head in chosen]} for rows, (counts, chosen) in best.items()
    }
    baseline = _total([count(diagonal(len(pair.target_words), len(pair.source_words)), pair) for pair in pairs])
    return {
        "pairs": len(pairs),
        "sure": sum(len(pair.sure) for pair in pairs),
        "possible": sum(len(pair.possible) for pair in pairs),
        "best_head": shifted[shift],
        "diagonal": baseline.to_dict(),
        "shifted": {str(other): shifted[other] for other in SHIFTS if other != shift},
        "heads": [row for row in records if row["head"] is not None],
        "means": [row for row in records if row["head"] is None],
    }


def _forced(translator, pairs: Sequence[LinkedPair]) -> list[Trace]:
    """The trace of each pair. Raises ValueError naming the first pair that cannot be read."""
    traces = []
    for pair, result in zip(pairs, results(translator, pairs), strict=True):
        if isinstance(result, ValueError):
            raise ValueError(f"the pair {pair.source[:60]!r}, {pair.target[:60]!r}: {result}")
        traces.append(result)
    return traces


def results(translator, pairs: Sequence[LinkedPair]) -> Iterable[Trace | ValueError]:
    """The forced trace of each pair, or why it has none. translator : as in `report`."""
    if callable(getattr(translator, "traces", None)):
        return translator.traces([pair.source for pair in pairs], [pair.target for pair in pairs])
    return (_trace_or_error(translator, pair) for pair in pairs)


def _trace_or_error(translator, pair: LinkedPair) -> Trace | ValueError:
    try:
        return translator.trace(pair.source, pair.target)
    except ValueError as error:
        return error


def _counted(traces, pairs, rule, shift) -> dict[HeadOrMean, list[Counts]]:
    """The counts of every pair, for every head and every mean."""
    if len(traces) != len(pairs):
        raise ValueError(f"there must be one trace for each pair; got {len(traces)} traces and {len(pairs)} pairs")
    counted: dict[HeadOrMean, list[Counts]] = {}
    for trace, pair in zip(traces, pairs):
        for head, weights in on_words(trace, pair, shift).items():
            counted.setdefault(head, []).append(count(rule(weights), pair))
    return counted


def _total(counts: Iterable[Counts]) -> Counts:
    return sum(counts, Counts(0, 0, 0, 0))


@dataclass(frozen=True)
class Covered:
    """A content word of the source, and the largest weight (0 to 1) that a row gives it, summed over its pieces."""

    text: str
    weight: float


@checked
def coverage(trace: Trace, language: str = "en") -> tuple[Covered, ...]:
    """For each content word of the source: the largest weight that a row of a non-special token gives it, in the last
    layer's cross-attention averaged over heads. () for a trace without cross-attention or without such rows.

    language : of the source; ValueError for one without a list of function words.
    """
    maps = [attention for attention in trace.maps if attention.kind == "cross"]
    rows = [row for row, token in enumerate(trace.target) if not token.special]
    if not maps or not rows:
        return ()
    function_words.words(language)  # raises
    weights = max(maps, key=lambda attention: attention.layer).weights.mean(0)[rows]
    places = [(key, token.start, token.end) for key, token in enumerate(trace.source) if not token.special]
    words: list[str] = []
    pieces: list[int] = []
    firsts: list[int] = []  # where the pieces of each word begin
    for match in WORD.finditer(trace.text):
        word, (begin, stop) = plain(match.group()), match.span()
        if word.lower() in _IDIOMS or not function_words.is_content(word, language):
            continue
        if keys := [key for key, start, end in places if start < stop and end > begin]:
            words.append(word)
            firsts.append(len(pieces))
            pieces += keys
    if not words:
        return ()
    return tuple(map(Covered, words, np.add.reduceat(weights[:, pieces], firsts, axis=1).max(0).tolist()))
