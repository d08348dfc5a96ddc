"""Tables of many sentences: how a number is spread, how two go together, and differences of two means with bootstrap
intervals (Efron & Tibshirani 1993, chapter 13: the percentile interval).

A frame has one row per sentence and one column per number; NaN is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz.arguments import checked

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
    """The mean of y where x is small to large, in at most PARTS parts of about as many sentences.

    Columns low, high : of x in a part. mean : of y. sentences : how many.
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
    """Pearson's r; NaN where one of the two does not vary."""
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
    """The statistic of uniform attention over so many visible tokens, of which one is special; NaN where it depends on
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
    """mean : of a minus b. low, high : the ends of the interval. pairs : how many were compared, None if not paired."""

    mean: float
    low: float
    high: float
    pairs: int | None = None

    @property
    def clear(self) -> bool:
        """Does the interval leave out 0?"""
        return self.low > 0 or self.high < 0


@checked
def paired_bootstrap(a: np.ndarray, b: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Difference:
    """Mean of a - b over pairs, a (N,) and b (N,); pairs with a NaN are left out. Sentences are drawn, as pairs.

    Koehn 2004 does so for scores of translations. ValueError for arrays of other lengths, or without a whole pair.
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
    """Mean of a minus mean of b, of two samples that have no pairs; NaN is left out. ValueError for an empty one."""
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
