"""How far two maps of the same tokens disagree, step by step."""

from dataclasses import dataclass

import numpy as np

from attnviz.heads import jensen_shannon
from attnviz.select import Grid, difference


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Two maps step by step; NaN for a step whose row is blank in either.

    distances : (Q,) Jensen–Shannon distance of the two rows, base 2: 0 for equal rows, 1 for rows that share no key.
    same_argmax : (Q,) 1.0 where both rows have their largest weight on the same key, else 0.0.
    """

    distances: np.ndarray
    same_argmax: np.ndarray

    @property
    def mean_distance(self) -> float:
        """Over the steps that both maps have; NaN if there are none."""
        return _mean(self.distances)

    @property
    def share_same(self) -> float:
        """The share of steps with the same argmax, 0 to 1; NaN if there are none."""
        return _mean(self.same_argmax)

    @property
    def largest(self) -> int | None:
        """The step (from 0) at which the maps disagree most; None if there are none."""
        return int(np.nanargmax(self.distances)) if np.isfinite(self.distances).any() else None


def between(a: Grid, b: Grid) -> Disagreement:
    """The disagreement of two maps. ValueError unless queries and keys are the same (see `select.difference`)."""
    difference(a, b)
    there = np.isfinite(a.weights).all(1) & np.isfinite(b.weights).all(1)
    first, second = (np.where(there[:, None], grid.weights, 1 / grid.weights.shape[1]) for grid in (a, b))
    distances = np.where(there, jensen_shannon(first, second), np.nan)
    same = np.where(there, first.argmax(1) == second.argmax(1), np.nan)
    return Disagreement(distances, same)


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
