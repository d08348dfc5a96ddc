"""Marks over cells, each kind as one SVG path for any number of cells; x to the right, y downwards. A cell is 1 wide,
with its place in the middle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

_STRIPES = 48  # diagonals hatched at most: more would be grey


def hatched(hidden: np.ndarray) -> str:
    """Diagonal stripes through the cells (Q, K) that are True; neighbours share their stripes."""
    rows, columns = hidden.shape
    every, parts = -(-(rows + columns - 1) // (2 * _STRIPES)), []
    for diagonal in range(0, rows + columns - 1, every):
        y = np.arange(max(0, diagonal - columns + 1), min(rows, diagonal + 1))
        ends = np.flatnonzero(np.diff(np.pad(hidden[y, diagonal - y], 1).astype(np.int8)))
        for first, after in zip(y[0] + ends[::2], y[0] + ends[1::2]):
            parts.append(f"M{diagonal - first + 0.5},{first - 0.5}L{diagonal - after + 0.5},{after - 0.5}")
    return "".join(parts)


def crossed(cells: Iterable[tuple[int, int]]) -> str:
    """A frame around each cell (y, x), and a cross in it."""
    return "".join(
        f"M{x - 0.48},{y - 0.48}H{x + 0.48}V{y + 0.48}H{x - 0.48}Z"
        f"L{x + 0.48},{y + 0.48}M{x + 0.48},{y - 0.48}L{x - 0.48},{y + 0.48}"
        for y, x in cells
    )


def squares(cells: Iterable[tuple[int, int]]) -> str:
    """A square in each cell (y, x), a little within it."""
    return "".join(
        f"M{x - 0.42:.2f},{y - 0.42:.2f}H{x + 0.42:.2f}V{y + 0.42:.2f}H{x - 0.42:.2f}Z" for y, x in sorted(cells)
    )


def dashes(cells: Iterable[tuple[int, int]]) -> str:
    """A dash in the middle of each cell (y, x)."""
    return "".join(f"M{x - 0.2:.2f},{y}H{x + 0.2:.2f}" for y, x in sorted(cells))


def places(windows: Sequence[tuple[float, float]], columns: int) -> str:
    """A diamond at the predicted place (centre, reach) of each row, and a bracket at each end of its window that is on
    the map, which has cells from -0.5 to `columns` - 0.5."""
    parts = []
    for y, (centre, reach) in enumerate(windows):
        if -0.5 <= centre <= columns - 0.5:
            parts.append(
                f"M{centre - 0.14:.2f},{y}L{centre:.2f},{y - 0.3}L{centre + 0.14:.2f},{y}L{centre:.2f},{y + 0.3}Z"
            )
        for end, inwards in ((centre - reach, 0.22), (centre + reach, -0.22)):
            if -0.5 < end < columns - 0.5:
                parts.append(f"M{end + inwards:.2f},{y - 0.42}H{end:.2f}V{y + 0.42}H{end + inwards:.2f}")
    return "".join(parts)
