"""The hover text of each cell of a map: which query looks at which key, and how much.

A sentence for every cell takes ten times the space of the weights. The short form has each phrase once, and for each
cell the number of its phrase. `CellTexts.sentences` makes the sentences of it, and so does plot.js in the browser.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from attnviz.arguments import checked
from attnviz.figures import labels
from attnviz.figures.wording import BLANK, weight_words
from attnviz.select import Grid

_UNSEEN, _BLANK = (" cannot see ", ""), (f": {BLANK}", None)
_MOST = 200_000  # cells up to which each has a sentence; more would weigh tens of MB


class Links(Protocol):
    """Links to lay over a map, as cells (query, key): `alignment.Cells`."""

    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class CellTexts:
    """A sentence for each cell of a map of Q queries and K keys.

    queries, keys : as they are named in a sentence, escaped. phrases : pairs of the text between query and key and
    the text after the key (None: the key is not named). which : (Q, K) uint16, the index of each cell's pair in
    `phrases`.
    """

    queries: list[str]
    keys: list[str]
    phrases: list[tuple[str, str | None]]
    which: np.ndarray

    @functools.cached_property
    def sentences(self) -> list[list[str]]:
        """The sentence of each cell, written out."""
        return [
            [
                f"{query}{between}" if after is None else f"{query}{between}{key}{after}"
                for key, (between, after) in zip(self.keys, (self.phrases[i] for i in row), strict=True)
            ]
            for query, row in zip(self.queries, self.which.tolist(), strict=True)
        ]

    def short(self) -> dict:
        """The short form, for the browser."""
        return dict(
            queries=self.queries, keys=self.keys, phrases=[list(pair) for pair in self.phrases], which=self.which
        )


@checked
def cell_texts(grid: Grid, links: Links | None = None) -> CellTexts | None:
    """The sentences of the weights of a Grid; None for a map so large that it has none.

    links : `alignment.Cells`; a cell that is a link says so. ValueError when a link is not a cell of the map.
    """
    return of_values(grid.masked, grid, weight_words, link_words(grid, links))


def of_values(
    values: np.ndarray, grid, words: Callable[[float], str], added: dict[tuple[int, int], str] | None = None
) -> CellTexts | None:
    """The same for any values [queries, keys]; words(value) writes the number. added : (query, key) -> text added to
    its cell.

    Gaps have a text too, so that they can be clicked like other cells.
    """
    if values.size > _MOST:
        return None
    phrases: dict[tuple[str, str | None], int] = {}
    which = np.empty(values.shape, dtype=np.uint16)
    for i, (numbers, visible) in enumerate(zip(values.tolist(), grid.visible.tolist(), strict=True)):
        pairs = [_phrase(number, seen, words) for number, seen in zip(numbers, visible, strict=True)]
        which[i] = [phrases.setdefault(pair, len(phrases)) for pair in pairs]
    listed = list(phrases)
    for (query, key), text in (added or {}).items():
        between, after = listed[which[query, key]]
        pair = (f"{between}{text}", None) if after is None else (between, f"{after}{text}")
        which[query, key] = phrases.setdefault(pair, len(phrases))
        listed = list(phrases)
    return CellTexts(placed(grid.queries), placed(grid.keys), listed, which)


def link_words(grid: Grid, links: Links | None) -> dict[tuple[int, int], str]:
    """(query, key) of each link -> the text added to its cell. ValueError when a link is not a cell of the map."""
    if links is None:
        return {}
    rows, columns = grid.weights.shape
    for query, key in sorted(links.possible | links.sure):
        if not (0 <= query < rows and 0 <= key < columns):
            raise ValueError(f"links must be cells of the map, {rows} by {columns}; got ({query}, {key})")
    return {
        cell: f", a {'sure' if cell in links.sure else 'possible'} link" for cell in sorted(links.possible | links.sure)
    }


def _phrase(number: float, seen: bool, words: Callable[[float], str]) -> tuple[str, str | None]:
    if not seen:
        return _UNSEEN
    return _BLANK if math.isnan(number) else (" looks at ", f": {words(number)}")


def placed(tokens: Sequence) -> list[str]:
    """Tokens as they are named in a sentence, escaped, with their places from 1: `‘the’ (3)`. One can occur twice."""
    return [f"{labels.escape(name)} ({place})" for place, name in enumerate(labels.named(tokens), start=1)]
