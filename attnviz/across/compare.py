"""Differences of two means with bootstrap intervals (Efron & Tibshirani 1993, chapter 13: the percentile interval)."""

from dataclasses import dataclass

import numpy as np

from attnviz.arguments import checked

RESAMPLES = 2000
LEVEL = 0.95
_BLOCK = 200  # resamples at a time: memory does not grow with their number


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
    chance = np.random.default_rng(seed)
    first, second = (_means(values, chance, resamples) for values in samples)
    return Difference(float(samples[0].mean() - samples[1].mean()), *_interval(first - second))


def _means(values: np.ndarray, chance: np.random.Generator, resamples: int) -> np.ndarray:
    """The mean of each resample, (resamples,)."""
    parts = []
    for start in range(0, resamples, _BLOCK):
        count = min(_BLOCK, resamples - start)
        parts.append(values[chance.integers(0, len(values), (count, len(values)))].mean(axis=1))
    return np.concatenate(parts)


def _interval(means: np.ndarray) -> tuple[float, float]:
    outside = (1 - LEVEL) / 2
    return tuple(float(end) for end in np.quantile(means, [outside, 1 - outside]))
