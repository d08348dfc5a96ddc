"""Statistics across sentences: the values of a sentence, outliers, distributions, correlations, and differences of two
means with bootstrap intervals (Efron & Tibshirani 1993, chapter 13: the percentile interval).

A sentence's value is the mean of a statistic over the steps and heads of one kind of attention. A frame has one row per
sentence and one column per number; NaN is left out. Letters: N sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz import alignment, stats
from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.gold import LinkedPair
from attnviz.trace import Token, Trace

__all__ = [
    "LOOKS",
    "VALUES",
    "Difference",
    "alignment_error",
    "bootstrap",
    "looks",
    "outliers",
    "paired_bootstrap",
    "sentence",
    "share_above",
    "sharpness",
]


VALUES = tuple(name for name in stats.STATISTICS if name != "argmax") + ("special_mass",)
_MAD = 1.4826  # times the median absolute deviation is the standard deviation of normal values
LOOKS = ("order_swaps", "coverage")


@checked
def sentence(columns: Mapping, kind: str = "cross") -> dict[str, float]:
    """The mean of each of VALUES over all steps and heads of a kind; NaN where there are no values.

    columns : `kind` and VALUES, one entry per step of a head, as `stats.steps` and `TraceStatistics.columns` have them.

    >>> round(across.sentence(dict(stats.steps(trace)))["max_weight"], 2)
    0.61
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

    >>> round(across.sharpness(trace), 2)
    0.6
    """
    maps = [attention for attention in trace.maps if attention.kind == kind]
    values = [stats.normalised_entropy(attention.weights, trace.visible(attention)).ravel() for attention in maps]
    numbers = np.concatenate([*values, np.empty(0)])
    numbers = numbers[~np.isnan(numbers)]
    return float(numbers.mean()) if len(numbers) else None


@checked
def outliers(values: pd.Series, limit: float = 3.5) -> pd.Series:
    """Robust z-scores of the values beyond `limit`, the farthest first; empty where most values are equal.

    0.6745 (x - median) / MAD, with MAD the median absolute deviation, and 3.5: Iglewicz & Hoaglin 1993.

    >>> across.outliers(pd.Series([1, 2, 3, 4, 100])).index.tolist()
    [4]
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
    """The share of values (0 to 1) above `value`, interpolated from quantiles at equal steps from 0 to 1.

    >>> across.share_above(0.75, quantiles=np.array([0, 0.5, 1]))
    0.25
    """
    return float(1 - np.interp(value, quantiles, np.linspace(0, 1, len(quantiles))))


@checked
def looks(columns: Mapping, source: Sequence[Token]) -> dict[str, float]:
    """LOOKS of one sentence, each the mean over the heads of its cross-attention; NaN without any.

    order_swaps : the number of steps whose most attended source token lies before that of the previous such step. 0 for
        a translation in the order of the source.
    coverage : the share of the source's tokens at which at least one step looks most, 0 to 1.
    Special tokens such as <eos> do not count as source tokens.
    columns : `kind`, `layer`, `head`, `step` and `argmax`, one entry per step of a head, as in
        `TraceStatistics.columns`.

    >>> across.looks(dict(stats.steps(trace)), trace.source)
    {'order_swaps': 1.0, 'coverage': 1.0}
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
    """The alignment error rate of one sentence against links set by hand (Och & Ney 2003), 0 to 1; with several heads,
    that of their mean. NaN without cross-attention. ValueError unless the trace is of the pair's texts.

    >>> pair = attnviz.gold.shipped("en-fr")[0]
    >>> round(across.alignment_error(model.trace(pair.source, pair.target), pair), 2)
    0.11
    """
    weights = alignment.on_words(trace, pair)
    if not weights:
        return float("nan")
    mean = weights.get((None, None), next(iter(weights.values())))
    return alignment.count(alignment.argmax(mean), pair).error_rate


SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
PARTS = 5
RESAMPLES = 2000
LEVEL = 0.95
_BLOCK = 200  # resamples at a time: memory does not grow with their number


def spread(values: pd.Series) -> dict[str, float]:
    """count, mean, std (of the population) and the quantiles at SHARES; NaN without a number."""
    numbers = values.dropna().to_numpy(dtype=float)
    if not len(numbers):
        return {"count": 0, "mean": np.nan, "std": np.nan} | dict.fromkeys(map(str, SHARES), np.nan)
    quantiles = dict(zip(map(str, SHARES), np.quantile(numbers, SHARES)))
    return {"count": len(numbers), "mean": numbers.mean(), "std": numbers.std()} | quantiles


def by_size(x: pd.Series, y: pd.Series) -> pd.DataFrame:
    """The mean of y in at most PARTS intervals of x that hold about equally many sentences.

    Columns low, high : the ends of an interval of x. mean : of y. sentences : their number.
    """
    both = pd.DataFrame({"x": x, "y": y}).dropna()
    if both.empty:
        return pd.DataFrame(columns=["low", "high", "mean", "sentences"])
    edges = np.unique(np.quantile(both["x"], np.linspace(0, 1, PARTS + 1)))
    part = np.searchsorted(edges[1:-1], both["x"], side="right")
    groups = both.groupby(part)
    table = groups["x"].agg(["min", "max"]).rename(columns={"min": "low", "max": "high"})
    return table.assign(mean=groups["y"].mean(), sentences=groups.size()).reset_index(drop=True)


def correlation(x: pd.Series, y: pd.Series) -> float:
    """Pearson's r; NaN where x or y is constant."""
    both = pd.DataFrame({"x": x, "y": y}).dropna()
    if len(both) < 2 or both["x"].nunique() < 2 or both["y"].nunique() < 2:
        return float("nan")
    return float(np.corrcoef(both["x"], both["y"])[0, 1])


def differences(a: pd.DataFrame, b: pd.DataFrame, names: list[str], paired: bool) -> pd.DataFrame:
    """Mean of a minus mean of b for each column, with a 95% bootstrap interval; columns without a number are left out.

    paired : rows with the same index are pairs; else the two are independent samples.
    Columns statistic, a, b (means), difference, low, high, pairs (None if not paired).
    """
    rows = []
    for name in names:
        first, second = a[name], b[name]
        if paired:
            both = pd.concat([first, second], axis=1, join="inner").dropna()
            first, second = both.iloc[:, 0], both.iloc[:, 1]
        first, second = first.dropna(), second.dropna()
        if first.empty or second.empty:
            continue
        compare = paired_bootstrap if paired else bootstrap
        difference = compare(first.to_numpy(), second.to_numpy())
        means = {"statistic": name, "a": first.mean(), "b": second.mean(), "difference": difference.mean}
        rows.append(means | {"low": difference.low, "high": difference.high, "pairs": difference.pairs})
    return pd.DataFrame(rows, columns=["statistic", "a", "b", "difference", "low", "high", "pairs"])


def uniform(statistic: str, tokens: np.ndarray) -> np.ndarray:
    """The statistic of uniform attention over this number of visible tokens, one of them special; NaN if it depends on
    more."""
    tokens = np.asarray(tokens, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        formulas = {
            "entropy_nats": np.log(tokens),
            "entropy_bits": np.log2(tokens),
            "normalised_entropy": np.where(tokens > 1, 1.0, np.nan),
            "max_weight": 1 / tokens,
            "effective_threshold": np.where(1 / tokens > 0.1, tokens, 0.0),
            "effective_entropy": tokens,
            "effective_inverse": tokens,
            "gini": np.zeros_like(tokens),
            "expected_position": (tokens - 1) / 2,
            "special_mass": 1 / tokens,
        }
    return formulas.get(statistic, np.full_like(tokens, np.nan))


@dataclass(frozen=True)
class Difference:
    """mean : of a minus b. low, high : the ends of the interval. pairs : how many were compared, None if not paired.

    >>> across.bootstrap(np.array([3, 4, 5]), np.array([0, 1, 2])).clear
    True
    """

    mean: float
    low: float
    high: float
    pairs: int | None = None

    @property
    def clear(self) -> bool:
        """Does the interval exclude 0?"""
        return self.low > 0 or self.high < 0


@checked
def paired_bootstrap(a: np.ndarray, b: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Difference:
    """Mean of a - b over pairs, a (N,) and b (N,); pairs with a NaN are left out. Resamples sentences as pairs, as
    Koehn 2004 does for translation scores.

    ValueError for unequal lengths, or without a complete pair.

    >>> across.paired_bootstrap(np.array([1, 5, 9]), np.array([0, 4, 8]))
    Difference(mean=1.0, low=1.0, high=1.0, pairs=3)
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"a and b must have the same length; got shapes {a.shape} and {b.shape}")
    apart = (a - b)[~np.isnan(a - b)]
    if not len(apart):
        raise ValueError("a and b must have at least one pair without NaN; got none")
    means = _means(apart, np.random.default_rng(seed), resamples)
    return Difference(float(apart.mean()), *_interval(means), len(apart))


@checked
def bootstrap(a: np.ndarray, b: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Difference:
    """Mean of a minus mean of b, of two unpaired samples; NaN is left out. ValueError if a sample is empty.

    >>> across.bootstrap(np.array([3, 4, 5]), np.array([0, 1, 2])).mean
    3.0
    """
    samples = []
    for name, values in (("a", a), ("b", b)):
        values = np.asarray(values, dtype=float)
        samples.append(values[~np.isnan(values)])
        if not len(samples[-1]):
            raise ValueError(f"{name} must have at least one value that is not NaN; got none")
    generator = np.random.default_rng(seed)
    first, second = (_means(values, generator, resamples) for values in samples)
    return Difference(float(samples[0].mean() - samples[1].mean()), *_interval(first - second))


def _means(values: np.ndarray, generator: np.random.Generator, resamples: int) -> np.ndarray:
    """The mean of each resample, (resamples,)."""
    parts = []
    for start in range(0, resamples, _BLOCK):
        count = min(_BLOCK, resamples - start)
        parts.append(values[generator.integers(0, len(values), (count, len(values)))].mean(axis=1))
    return np.concatenate(parts)


def _interval(means: np.ndarray) -> tuple[float, float]:
    outside = (1 - LEVEL) / 2
    low, high = np.quantile(means, [outside, 1 - outside])
    return float(low), float(high)
