"""A guess at where a step looks, compared with the rows of models, in numbers and in words. A guess assigns points to
the keys of a map.

Divided by their sum, they are shares that sum to 1 like a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.figures.wording import listed
from attnviz.select import Grid

_SAME = 0.005  # difference of two overlaps that reads the same with two digits


@dataclass(frozen=True)
class Overlap:
    """A guess beside a row of K keys; each number is from 0 to 1.

    covered : the weight of the row on the keys that were guessed. overlap : sum_k min(guess_k, weight_k), which is 1
    minus the total variation distance; 1 for a guess equal to the row. even : the overlap of a guess that gives every
    visible key the same share; a good guess is above it.
    """

    covered: float
    overlap: float
    even: float


def shares(points: Sequence[float] | np.ndarray) -> np.ndarray:
    """(K,) points of a guess, none negative -> (K,) shares that sum to 1. ValueError if all points are 0."""
    dealt = np.asarray(points, dtype=float)
    if dealt.ndim != 1 or not np.isfinite(dealt).all() or (dealt < 0).any():
        raise ValueError("points must be one finite number per key, 0 or more")
    if not dealt.sum():
        raise ValueError("points must not all be 0: guess at least one key")
    return dealt / dealt.sum()


def compare(grid: Grid, step: int, points: Sequence[float] | np.ndarray) -> Overlap:
    """A guess beside row `step` (from 0) of a map. points : (K,), one number per key.

    ValueError if the number of points is not that of the keys, or the row does not exist or is blank.
    """
    if not 0 <= step < len(grid.queries):
        raise ValueError(f"step must be one of 0 to {len(grid.queries) - 1}; got {step}")
    guessed, row = shares(points), grid.weights[step].astype(float)
    if guessed.shape != row.shape:
        raise ValueError(f"points must be one number for each of {len(row)} keys; got {len(guessed)}")
    if not np.isfinite(row).all():
        raise ValueError(f"row {step + 1} has no weights to guess")
    seen = grid.visible[step]
    overlaps = [float(np.minimum(shared, row).sum()) for shared in (guessed, seen / seen.sum())]
    return Overlap(float(row[guessed > 0].sum()), *overlaps)


def mean(overlaps: Sequence[Overlap]) -> Overlap:
    """The score over several steps: the mean of each number. ValueError without a step."""
    if not overlaps:
        raise ValueError("overlaps must hold at least one step")
    numbers = np.mean([[seen.covered, seen.overlap, seen.even] for seen in overlaps], axis=0)
    return Overlap(*numbers.tolist())


def sentence(overlaps: Mapping[str, Overlap], unit: str = "word") -> str:
    """A guess beside the rows of models, in plain words. overlaps : title of a model -> what `compare` returned.

    unit : the noun for a key of these texts.
    """
    if not overlaps:
        raise ValueError("overlaps must hold at least one model")
    looks = [f"{title} has {seen.covered:.0%} of its weight on your {unit}s" for title, seen in overlaps.items()]
    most = max(seen.overlap for seen in overlaps.values())
    like = [title for title, seen in overlaps.items() if most - seen.overlap < _SAME]
    if len(overlaps) == 1:
        return f"{looks[0]}; your guess and its row overlap by {most:.0%}."
    equally = " equally" if len(like) > 1 else ""
    return f"{'; '.join(looks)}. Your guess resembles {listed(like)} most{equally}: they overlap by {most:.0%}."
