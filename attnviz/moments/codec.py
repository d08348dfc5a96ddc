"""Moments of one run, coded as differences from predictions, starting from the trained model, with the coarsest steps
that are accurate enough.

The untrained model is known. The last moment is coded first, then the others like frames of a video: the middle one,
the middle of each half, and so on. A moment is predicted tensor by tensor, by least squares, from its nearest
neighbours that are already coded and from the last moment, all in their restored form, so that errors do not add up.
Only the difference is stored, as whole numbers: a matrix is rotated to the directions of its singular value
decomposition, and rounded to steps. In the first updates of a run a matrix changes in few directions, and later in
more.

So only coordinates along directions where they are not small against the step are stored. Uniform rounding is near the
optimum (Gish & Pierce 1968). Letters: M rows, N columns, R directions.
"""

import bisect
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

Weights = dict[str, np.ndarray]  # float32
Near = Callable[[int, Weights], bool]  # is a moment of that number, as restored, near enough to what was kept?
# Steps to try, the coarsest first, as parts of the root mean square by which a matrix has changed since the
# untrained model.
STEPS = (3.5, 2.9, 2.4, 2.0, 1.7, 1.4, 1.2, 1.0, 0.85, 0.7, 0.6, 0.5, 0.42, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)
SMALL = 20_000  # numbers; a tensor of fewer is stored as it is with fine steps, which costs next to nothing
FINE = 0.05  # of the root mean square of the differences of a small tensor
LEAST = 0.45  # of the step: a direction along which the root mean square is below it is left out
BASIS = 0.1  # steps of a direction's entries, of their root mean square
FULL = 0.8  # of all directions; with more of them the matrix is stored as it is
AS_IT_IS = -1  # stands for the number of directions of a tensor that is stored as it is


class Coded(NamedTuple):
    """step : the size of a step. rank : directions, or AS_IT_IS. levels : whole numbers (int16), one after another."""

    step: float
    rank: int
    levels: np.ndarray


class Difference:
    """A difference of weights (float32, of any shape), to be coded with one step or another."""

    def __init__(self, values: np.ndarray):
        self.values = values
        self.turned = values.ndim == 2 and values.size >= SMALL
        if self.turned:
            self._tall = values if values.shape[0] >= values.shape[1] else values.T  # (M, N), M >= N
            _, sizes, self._directions = np.linalg.svd(self._tall, full_matrices=False)
            self._sizes = sizes / len(self._tall) ** 0.5  # root mean squares

    def coded(self, step: float) -> Coded:
        """step : of a matrix; a small tensor has its own."""
        columns = min(self.values.shape)
        rank = int((self._sizes > LEAST * step).sum()) if self.turned else 0
        if not self.turned or rank > FULL * columns:
            own = FINE * (float(np.sqrt(np.mean(self.values**2))) + 1e-12)
            step = own if self.values.size < SMALL else step
            return Coded(step, AS_IT_IS, _rounded(self.values, step).ravel())
        basis = _rounded(self._directions[:rank], _basis_step(columns))
        along = self._tall @ np.linalg.pinv(_basis(basis, columns))  # (M, R), the best for the rounded directions
        return Coded(step, rank, np.concatenate([basis.ravel(), _rounded(along.T, step).ravel()]))


def decode_difference(shape: tuple[int, ...], step: float, rank: int, levels: np.ndarray) -> np.ndarray:
    """The difference (float32) from its levels; their number is `count_levels`."""
    if rank == AS_IT_IS:
        return levels.reshape(shape) * np.float32(step)
    rows, columns = max(shape), min(shape)
    basis = levels[: rank * columns].reshape(rank, columns)
    along = levels[rank * columns :].reshape(rank, rows).T * np.float32(step)
    tall = along @ _basis(basis, columns)
    return tall if shape[0] >= shape[1] else tall.T


def count_levels(shape: tuple[int, ...], rank: int) -> int:
    """The number of levels of a tensor. ValueError for an impossible rank."""
    if rank == AS_IT_IS:
        return int(np.prod(shape))
    if len(shape) != 2 or not 0 <= rank <= min(shape):
        raise ValueError(f"a tensor of shape {shape} has no {rank} directions")
    return rank * sum(shape)


def _basis_step(columns: int) -> float:
    return BASIS / columns**0.5


def _basis(levels: np.ndarray, columns: int) -> np.ndarray:
    return levels * np.float32(_basis_step(columns))


def _rounded(values: np.ndarray, step: float) -> np.ndarray:
    return np.clip(np.rint(values / step), -(2**15), 2**15 - 1).astype(np.int16)


class Tensor(NamedTuple):
    """mix : factors of the differences between the predicting tensors and the untrained one. coded : the difference
    from the prediction."""

    mix: list[float]
    coded: Coded


Entry = dict[str, Tensor]  # a moment, by the names of its tensors


def encode(first: Weights, moments: Sequence[Weights], near: Near) -> list[Entry]:
    """The moments in the order of `order`. first : the untrained model. near : the coarsest of STEPS for which it is
    true is used, or the finest if there is none; a finer step is assumed to be nearer.

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
    """The number of restored moments that predict each moment, in the order of `order`."""
    numbers = order(count)
    return [len(_neighbours(number, numbers[:place], count)) for place, number in enumerate(numbers)]


def _neighbours(number: int, coded: Collection[int], count: int) -> list[int]:
    """The numbers of the moments that predict a moment, besides the untrained model: the last, and the nearest coded
    one on either side."""
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
            difference = Difference(moment[name] - _predicted(start, others, mix))
            self._tensors[name] = mix, way, difference

    def coarsest(self, near: Callable[[Weights], bool]) -> float:
        """Of STEPS; the finest when none is near enough."""
        place = bisect.bisect_left(STEPS, True, hi=len(STEPS) - 1, key=lambda step: near(self.restored(step)))
        return STEPS[place]

    def entry(self, step: float) -> Entry:
        """The moment coded with steps of that size, relative to the change of each matrix."""
        tensors = self._tensors.items()
        return {name: Tensor(mix, difference.coded(step * way)) for name, (mix, way, difference) in tensors}

    def restored(self, step: float) -> Weights:
        return _decoded(self._first, self._neighbours, self.entry(step))


def _decoded(first: Weights, neighbours: Sequence[Weights], entry: Entry) -> Weights:
    restored = {}
    for name, start in first.items():
        predicted = _predicted(start, [weights[name] for weights in neighbours], entry[name].mix)
        restored[name] = predicted + decode_difference(start.shape, *entry[name].coded)
    return restored


def _mix(first: np.ndarray, others: Sequence[np.ndarray], moment: np.ndarray) -> list[float]:
    """The factors of the differences from `first` to the others whose sum is nearest to this moment (least squares)."""
    if not others:
        return []
    ways = np.stack([(other - first).ravel() for other in others]).astype(np.float64)
    square = ways @ ways.T
    square += 1e-9 * np.eye(len(others)) * (1 + np.trace(square))
    factors = np.linalg.solve(square, ways @ (moment - first).ravel().astype(np.float64))
    return [float(np.float32(factor)) for factor in factors]


def _predicted(first: np.ndarray, others: Sequence[np.ndarray], mix: Sequence[float]) -> np.ndarray:
    return first + sum(np.float32(factor) * (other - first) for factor, other in zip(mix, others, strict=True))
