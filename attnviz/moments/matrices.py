"""A difference of weights as whole numbers: a matrix is turned to its principal directions, and stored in steps.

In the first updates of a run a matrix changes in few directions, and later in more (the directions are those of its
singular value decomposition). So its coordinates along them are stored, and only along those where they are not small
against the step. Rounding to steps of one size is near the best there is (Gish & Pierce 1968).
Letters: M rows, N columns, R directions.
"""

from typing import NamedTuple

import numpy as np

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


def decode(shape: tuple[int, ...], step: float, rank: int, levels: np.ndarray) -> np.ndarray:
    """The difference (float32) from its levels, of which there are as many as `count` says."""
    if rank == AS_IT_IS:
        return levels.reshape(shape) * np.float32(step)
    rows, columns = max(shape), min(shape)
    basis = levels[: rank * columns].reshape(rank, columns)
    along = levels[rank * columns :].reshape(rank, rows).T * np.float32(step)
    tall = along @ _basis(basis, columns)
    return tall if shape[0] >= shape[1] else tall.T


def count(shape: tuple[int, ...], rank: int) -> int:
    """How many levels a tensor has. ValueError for a rank that it cannot have."""
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
