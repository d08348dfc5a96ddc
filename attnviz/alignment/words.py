"""From attention between pieces to attention between words, and from links between words to cells of a map."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.arguments import checked
from attnviz.gold import LinkedPair, Span
from attnviz.select import Grid
from attnviz.trace import Token, Trace

HeadOrMean = tuple[int | None, int | None]  # layer, head; None for the mean over heads, or over layers too


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
    layers = {m.layer: _shifted(m.weights, shift) for m in trace.maps if m.kind == "cross"}
    heads = {(layer, head): weights for layer, stack in layers.items() for head, weights in enumerate(stack)}
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
    """Weights (H, Q, K) between tokens -> (H, T, S) between words, which are the (start, end) of each in its text.

    Weights are summed over the tokens of a key word and averaged over those of a query word; the weight on a token that
    lies in several key words is divided among them by characters. Weight on no word, such as that on special tokens, is
    left out, and each row is divided by its remaining sum: NaN if nothing remains, or the word has no token.
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


def _shifted(weights: np.ndarray, shift: int) -> np.ndarray:
    """weights (H, Q, K) with row t + shift in place of row t; NaN where that row does not exist."""
    rows = np.arange(weights.shape[1]) + shift
    there = (rows >= 0) & (rows < len(rows))
    return np.where(there[:, None], weights[:, np.where(there, rows, 0)].astype(np.float64), np.nan)


def _normalised(queries: np.ndarray, weights: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """queries (Q, T) bool, weights (Q, K), keys (K, S) shares -> (T, S), each row divided by its sum."""
    there = queries & ~np.isnan(weights[:, :1])  # pieces that have a row
    sums = there.T @ np.nan_to_num(weights) @ keys
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: the word has no piece, or no weight remains
        return sums / sums.sum(1, keepdims=True)
