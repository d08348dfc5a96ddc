"""Moments of one run as differences to predictions: from the trained model backwards, each as coarse as is near enough.

The untrained model is at hand. The last moment is coded first, and then the others as pictures of a film are: the
middle one, the middle of each half, and so on. Each is predicted tensor by tensor, by least squares, from its
nearest neighbours that are coded already and from the last moment, as they will be restored: so errors do not add up.
Only the difference is stored (matrices.py).
"""

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from attnviz.moments import matrices

Weights = dict[str, np.ndarray]  # float32
Near = Callable[[int, Weights], bool]  # is a moment of that number, as restored, near enough to what was kept?
# Steps to try, the coarsest first, as parts of the root mean square by which a matrix has changed since the
# untrained model.
STEPS = (3.5, 2.9, 2.4, 2.0, 1.7, 1.4, 1.2, 1.0, 0.85, 0.7, 0.6, 0.5, 0.42, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)


class Tensor(NamedTuple):
    """mix : factors on the ways from the untrained tensor to each that predicts it. coded : the difference to that."""

    mix: list[float]
    coded: matrices.Coded


Entry = dict[str, Tensor]  # a moment, by the names of its tensors


def encode(first: Weights, moments: Sequence[Weights], near: Near) -> list[Entry]:
    """The moments in the order of `order`. first : the untrained model. near : the coarsest of STEPS
    for which it is true is taken, and the finest if there is none; a finer step is taken to be nearer.

    ValueError unless every moment has the tensors of `first`.
    """
    entries, restored = [], {}
    for number in order(len(moments)):
        _check(first, moments[number])
        neighbours = [restored[at] for at in _neighbours(number, restored, len(moments))]
        attempts = _Attempts(first, neighbours, moments[number])
        step = attempts.coarsest(lambda weights: near(number, weights))
        entries.append(attempts.entry(step))
        restored[number] = attempts.restored(step)
    return entries


def decode(first: Weights, entries: Sequence[Entry]) -> Iterator[tuple[int, Weights]]:
    """The number of each moment and its weights, in the order of `order`."""
    restored: dict[int, Weights] = {}
    for number, entry in zip(order(len(entries)), entries):
        neighbours = [restored[at] for at in _neighbours(number, restored, len(entries))]
        restored[number] = _decoded(first, neighbours, entry)
        yield number, restored[number]


def order(count: int) -> list[int]:
    """The numbers from 0 to count - 1: the last, the middle of the others, the middle of each part beside it, and so
    on."""
    numbers, parts = [count - 1][:count], [(0, count - 1)]
    for low, high in parts:  # grows meanwhile
        if low < high:
            middle = (low + high) // 2
            numbers.append(middle)
            parts += [(low, middle), (middle + 1, high)]
    return numbers


def predictors(count: int) -> list[int]:
    """How many restored moments predict each, in the order of `order`."""
    numbers = order(count)
    return [len(_neighbours(number, numbers[:place], count)) for place, number in enumerate(numbers)]


def _neighbours(number: int, coded: Sequence[int], count: int) -> list[int]:
    """The numbers of what predicts a moment, besides the untrained model: the last, and the nearest coded on either
    side."""
    before, after = [at for at in coded if at < number], [at for at in coded if number < at < count - 1]
    last = [count - 1] if number < count - 1 else []
    return [*last, *([max(before)] if before else []), *([min(after)] if after else [])]


def _check(first: Weights, moment: Weights) -> None:
    if {name: value.shape for name, value in moment.items()} != {name: value.shape for name, value in first.items()}:
        raise ValueError("every moment must have the tensors of the untrained model")


class _Attempts:
    """One moment with its prediction, to be coded with one step or another."""

    def __init__(self, first: Weights, neighbours: Sequence[Weights], moment: Weights):
        self._first, self._neighbours = first, neighbours
        self._tensors = {}
        for name, start in first.items():
            others = [weights[name] for weights in neighbours]
            mix = _mix(start, others, moment[name])
            way = float(np.sqrt(np.mean((moment[name] - start) ** 2))) + 1e-12
            difference = matrices.Difference(moment[name] - _predicted(start, others, mix))
            self._tensors[name] = mix, way, difference

    def coarsest(self, near: Callable[[Weights], bool]) -> float:
        """Of STEPS; the finest when none is near enough."""
        place = bisect.bisect_left(STEPS, True, hi=len(STEPS) - 1, key=lambda step: near(self.restored(step)))
        return STEPS[place]

    def entry(self, step: float) -> Entry:
        """The moment in steps of that part of each matrix's way."""
        tensors = self._tensors.items()
        return {name: Tensor(mix, difference.coded(step * way)) for name, (mix, way, difference) in tensors}

    def restored(self, step: float) -> Weights:
        return _decoded(self._first, self._neighbours, self.entry(step))


def _decoded(first: Weights, neighbours: Sequence[Weights], entry: Entry) -> Weights:
    restored = {}
    for name, start in first.items():
        predicted = _predicted(start, [weights[name] for weights in neighbours], entry[name].mix)
        restored[name] = predicted + matrices.decode(start.shape, *entry[name].coded)
    return restored


def _mix(first: np.ndarray, others: Sequence[np.ndarray], moment: np.ndarray) -> list[float]:
    """The factors on the ways from `first` to the others that lead nearest to this moment."""
    if not others:
        return []
    ways = np.stack([(other - first).ravel() for other in others]).astype(np.float64)
    square = ways @ ways.T
    square += 1e-9 * np.eye(len(others)) * (1 + np.trace(square))
    factors = np.linalg.solve(square, ways @ (moment - first).ravel().astype(np.float64))
    return [float(np.float32(factor)) for factor in factors]


def _predicted(first: np.ndarray, others: Sequence[np.ndarray], mix: Sequence[float]) -> np.ndarray:
    return first + sum(np.float32(factor) * (other - first) for factor, other in zip(mix, others, strict=True))
