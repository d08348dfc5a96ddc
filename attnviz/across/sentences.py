"""One sentence's values, how it is read in order, and which sentences are unlike the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from attnviz import alignment, stats
from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.gold import LinkedPair
from attnviz.trace import Token, Trace

VALUES = tuple(name for name in stats.STATISTICS if name != "argmax") + ("special_mass",)
_MAD = 1.4826  # times the median absolute deviation is the standard deviation of normal values
LOOKS = ("order_swaps", "coverage")


@checked
def sentence(columns: Mapping, kind: str = "cross") -> dict[str, float]:
    """The mean of each of VALUES over all steps and heads of a kind; NaN where there is none.

    columns : `kind` and VALUES, one entry per step of a head, as `stats.steps` and `TraceStatistics.columns` have them.
    """
    rows = np.asarray(columns["kind"]) == kind
    means = {}
    for name in VALUES:
        values = np.asarray(columns[name], dtype=float)[rows]
        values = values[~np.isnan(values)]
        means[name] = float(values.mean()) if len(values) else float("nan")
    return means


@checked
def sharpness(trace: Trace, kind: str = "cross") -> float | None:
    """The mean normalised entropy over all steps and heads of a kind, as `sentence` has it: 0 is sharp, 1 is uniform.

    None for a trace without such attention, and where every step sees a single key.
    """
    maps = [attention for attention in trace.maps if attention.kind == kind]
    values = [
        stats.measure(attention.weights, trace.visible(attention), 0.1)["normalised_entropy"].ravel()
        for attention in maps
    ]
    numbers = np.concatenate([*values, np.empty(0)])
    numbers = numbers[~np.isnan(numbers)]
    return float(numbers.mean()) if len(numbers) else None


@checked
def outliers(values: pd.Series, limit: float = 3.5) -> pd.Series:
    """Robust z-scores of those beyond `limit`, the farthest first; empty where most values are equal.

    0.6745 (x - median) / MAD, with MAD the median absolute deviation, and 3.5: Iglewicz & Hoaglin 1993.
    """
    values = values.dropna()
    spread = _MAD * (values - values.median()).abs().median()
    if not spread > 0:
        return values.iloc[:0]
    scores = (values - values.median()) / spread
    beyond = scores[scores.abs() > limit]
    return beyond.reindex(beyond.abs().sort_values(ascending=False, kind="stable").index)


@checked
def share_above(value: float, quantiles: np.ndarray) -> float:
    """The share of values, 0 to 1, that are above `value`, from their quantiles at equal steps from 0 to 1."""
    return float(1 - np.interp(value, quantiles, np.linspace(0, 1, len(quantiles))))


@checked
def looks(columns: Mapping, source: Sequence[Token]) -> dict[str, float]:
    """LOOKS of one sentence, each the mean over the heads of its cross-attention; NaN without any.

    order_swaps : of the steps that look most at a token of the source, how many look further to the front than such a
        step before them. 0 for a translation in the order of the source.
    coverage : the share of the source's tokens at which at least one step looks most, 0 to 1.
    Special tokens such as <eos> are no tokens of the source here.
    columns : `kind`, `layer`, `head`, `step` and `argmax`, one entry per step of a head, as in
        `TraceStatistics.columns`.
    """
    rows = np.asarray(columns["kind"]) == "cross"
    words = np.array([not token.special for token in source])
    heads = np.asarray(columns["layer"])[rows], np.asarray(columns["head"])[rows]
    argmax = np.asarray(columns["argmax"])[rows].astype(int)
    swaps, shares = [], []
    for layer, head in dict.fromkeys(zip(*(part.tolist() for part in heads))):
        places = argmax[(heads[0] == layer) & (heads[1] == head)]
        places = places[words[places]]
        swaps.append(int((np.diff(places) < 0).sum()))
        shares.append(len(set(places.tolist())) / max(words.sum(), 1))
    if not swaps or not words.any():
        return dict.fromkeys(LOOKS, float("nan"))
    return {"order_swaps": float(np.mean(swaps)), "coverage": float(np.mean(shares))}


@checked
def alignment_error(trace: Trace, pair: LinkedPair) -> float:
    """The alignment error rate of one sentence against links set by hand (Och & Ney 2003), 0 to 1; of several heads,
    that of their mean. NaN without cross-attention. ValueError unless the trace is of the pair's texts."""
    weights = alignment.on_words(trace, pair)
    if not weights:
        return float("nan")
    mean = weights.get((None, None), next(iter(weights.values())))
    return alignment.count(alignment.argmax(mean), pair).error_rate
