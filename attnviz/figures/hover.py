"""What the pointer reads in each cell of a map: who looks at whom, and how much.

A sentence a cell weighs ten times the weights themselves. In short they are what is said, each wording once, and which
wording a cell has; `sentences` writes them out, and so does plot.js of the dashboard, in the browser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from attnviz.figures import labels
from attnviz.figures.wording import BLANK

_UNSEEN, _BLANK = (" cannot see ", ""), (f": {BLANK}", None)


def short(values: np.ndarray, grid, words: Callable[[float], str]) -> dict:
    """values [queries, keys] -> queries and keys, quoted and escaped; said : pairs of what is between the two and what is
    after the key, None when the key is not named; which [queries, keys] : the place of each cell's pair in `said`.

    words(value) says the number. Gaps speak too, and so take a click as other cells do.
    """
    said, which = {}, np.empty(values.shape, dtype=np.uint16)
    for row, (numbers, visible) in enumerate(zip(values.tolist(), grid.visible.tolist(), strict=True)):
        found = [_pair(number, seen, words) for number, seen in zip(numbers, visible, strict=True)]
        which[row] = [said.setdefault(pair, len(said)) for pair in found]
    return dict(queries=spoken(grid.queries), keys=spoken(grid.keys), said=[list(pair) for pair in said], which=which)


def _pair(number: float, seen: bool, words: Callable[[float], str]) -> tuple[str, str | None]:
    if not seen:
        return _UNSEEN
    return _BLANK if math.isnan(number) else (" looks at ", f": {words(number)}")


def add(cells: dict, query: int, key: int, text: str) -> None:
    """Let a cell of `short` say more."""
    between, after = cells["said"][cells["which"][query, key]]
    more = [f"{between}{text}", None] if after is None else [between, f"{after}{text}"]
    if more not in cells["said"]:
        cells["said"].append(more)
    cells["which"][query, key] = cells["said"].index(more)


def sentences(cells: dict) -> list[list[str]]:
    """The sentence of each cell, written out."""
    return [
        [
            f"{query}{between}" if after is None else f"{query}{between}{key}{after}"
            for key, (between, after) in zip(cells["keys"], (cells["said"][i] for i in row), strict=True)
        ]
        for query, row in zip(cells["queries"], cells["which"].tolist(), strict=True)
    ]


def spoken(tokens: Sequence) -> list[str]:
    """Tokens as they are named in a sentence."""
    return [labels.escape(labels.quoted(token)) for token in tokens]
