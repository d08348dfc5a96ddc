"""Pictures of attention in plain sentences: for screen readers, captions and the text beside a chart; and the hover
text of each cell of a map: which query looks at which key, and how much.

A sentence for every cell takes ten times the space of the weights. The short form has each phrase once, and for each
cell the number of its phrase. `CellTexts.sentences` expands it, as plot.js does in the browser.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from attnviz.arguments import checked
from attnviz.figures import labels
from attnviz.patterns import PATTERNS
from attnviz.select import Grid

BLANK = "all its weight is on special tokens, which are hidden"
TITLES = {
    "entropy_nats": "Entropy (nats)",
    "entropy_bits": "Entropy (bits)",
    "normalised_entropy": "Normalised entropy",
    "max_weight": "Maximum weight",
    "effective_threshold": "Weights above threshold",
    "effective_entropy": "Effective positions",
    "effective_inverse": "Effective positions, 1/Σα²",
    "gini": "Gini coefficient",
    "expected_position": "Expected position",
    "special_mass": "Weight on special tokens",
    "removed_mass": "Weight on hidden tokens",
    "distance": "Distance (tokens)",
    "change": "Change in log-probability (nats)",
    "jensen_shannon": "Jensen–Shannon distance",
}


@checked
def describe(grid: Grid, step: int | None = None) -> str:
    """The size of the map, its strongest weight, and the row of `step` if one is chosen. Plain text, not escaped.

    >>> figures.describe(select.select(trace))
    '6 target tokens by 6 source tokens; strongest: ‘noir’ looks at ‘black’, 0.80.'
    """
    rows, columns = (
        f"{len(tokens)} {side} token{'s' if len(tokens) != 1 else ''}"
        for tokens, side in zip((grid.queries, grid.keys), grid.sides, strict=True)
    )
    text = f"{rows} by {columns}"
    if (best := strongest(grid)) is not None:
        query, key = divmod(best, len(grid.keys))
        text += f"; strongest: {labels.quoted(grid.queries, query)} looks at {labels.quoted(grid.keys, key)}, "
        text += f"{grid.weights[query, key]:.2f}"
    return f"{text}." if step is None else f"{text}. {row_sentence(grid, step)}"


def row_name(grid) -> str:
    """The noun for a row of the map: "step" if it produces a target token, else "row"."""
    return "step" if grid.sides[0] == "target" else "row"


def row_sentence(grid, step: int) -> str:
    """A sentence on where one query looks."""
    return row_sentences(grid, [step])[0]


# The sentence of `row_sentences`, which the browser fills in too (plot.js). hidden : at the end, or nothing.
ROW_WORDS = {
    "blank": f"{{row}}, {{query}}: {BLANK}.",
    "looks": "{row}, {query}: looks at {keys}.{hidden}",
    "key": "{key} {weight}",
    "none": "no token with 0.005 or more",
    "hidden": " {weight} of its weight was on special tokens, which are hidden.",
}


class RowLook(NamedTuple):
    """Where a query looks, in whole hundredths. keys : those that its sentence names, each with its weight; None for a
    row without weights. hidden : on hidden special tokens; 0 if that is below 0.005."""

    keys: list[tuple[int, int]] | None
    hidden: int


def row_looks(grid, steps: Sequence[int]) -> list[RowLook]:
    """Of each of these queries, with its three strongest keys in order."""
    weights = np.nan_to_num(grid.masked[steps], nan=-1).astype(float)
    order = np.argsort(-weights, axis=-1, kind="stable")[:, :3]
    largest = np.take_along_axis(weights, order, -1)
    hidden = grid.removed[steps].astype(float)
    hidden = np.where(hidden >= 0.005, hidden, 0)
    parts = (part.tolist() for part in (order, largest, _hundredths(largest), _hundredths(hidden)))
    return [
        RowLook([(key, near) for key, weight, near in zip(keys, exact, nears) if weight >= 0.005], removed)
        if exact and exact[0] >= 0
        else RowLook(None, 0)
        for keys, exact, nears, removed in zip(*parts, strict=True)
    ]


def _hundredths(weights: np.ndarray) -> np.ndarray:
    """Whole hundredths, rounded as `.2f` rounds the weights: the product is exact, because they were float32."""
    return np.rint(weights * 100).astype(int)


def row_sentences(grid, steps: Sequence[int]) -> list[str]:
    """A sentence on where each of these queries looks, with its three strongest keys in order."""
    queries, names, words = labels.named(grid.queries), labels.named(grid.keys), ROW_WORDS
    sentences = []
    for step, (keys, hidden) in zip(steps, row_looks(grid, steps), strict=True):
        parts = [words["key"].format(key=names[key], weight=f"{near / 100:.2f}") for key, near in keys or ()]
        end = words["hidden"].format(weight=f"{hidden / 100:.2f}") if hidden else ""
        row = f"{row_name(grid).capitalize()} {step + 1}"
        form = words["blank" if keys is None else "looks"]
        sentences.append(form.format(row=row, query=queries[step], keys=", ".join(parts) or words["none"], hidden=end))
    return sentences


def links_sentence(grid, links) -> str:
    """Which cells are outlined as links (`alignment.Cells`), sure ones first, as query with key."""
    parts, (queries, keys) = [], map(labels.named, (grid.queries, grid.keys))
    for name, look, cells in (("Sure", "solid", links.sure), ("Possible", "dashed", links.possible - links.sure)):
        listed = [f"{queries[query]} with {keys[key]}" for query, key in sorted(cells)]
        if listed:
            parts.append(f"{name} links, in {look} outline: {', '.join(listed)}.")
    return " ".join(parts) or "No links."


def windows_sentence(windows: Sequence[tuple[float, float]]) -> str:
    """The predicted places of local attention, (centre, reach) of each row, counted from 1."""
    places = ", ".join(f"{centre + 1:.1f}" for centre, _ in windows)
    return f"Predicted places, row by row, with {windows[0][1]:g} tokens to either side: {places}."


def strongest(grid, step: int | None = None) -> int | None:
    """Flat position of the largest visible weight in the map, or in the row of `step`; None if there is none."""
    place = slice(None) if step is None else step
    weights = grid.masked[place]
    return int(np.nanargmax(weights)) if np.isfinite(weights).any() else None


def exact_texts(grid, first: tuple[int, int]) -> list[list[str]]:
    """The hover text of each cell of a part of a map: both tokens with their numbers, and the weight to six digits.
    first : the numbers of its first row and column in the whole map, from 0."""
    names = (labels.shown(grid.queries), labels.shown(grid.keys))
    rows, columns = (
        [f"{start + place} {labels.escape(text)}" for place, text in enumerate(side, 1)]
        for start, side in zip(first, names)
    )
    return [
        [
            f"{row}: {f'looks at {column} {weight:.6f}' if weight == weight else f'cannot see {column}'}"
            for column, weight in zip(columns, weights)
        ]
        for row, weights in zip(rows, grid.masked.tolist())
    ]


def weight_words(weight: float) -> str:
    """A weight to two digits; never `0.00` for a positive weight."""
    return "under 0.01" if 0 < weight < 0.005 else f"{weight:.2f}"


def difference_words(value: float, first: str, second: str) -> str:
    """A difference of two weights: in which of the two maps the weight is larger, and by how much."""
    if abs(value) < 0.005:
        return f"the same in {first} and {second}"
    more, less = (first, second) if value > 0 else (second, first)
    return f"{abs(value):.2f} more in {more} than in {less}"


def lines_words(grids: Sequence, least: float) -> str:
    """Which weights have lines in `token_lines`, and how to read the picture."""
    if not any((np.nan_to_num(grid.masked) >= least).any() for grid in grids):
        return f"No weight reaches {least:g}, so there are no lines: attention is spread almost evenly"
    return (
        f"Lines show weights of at least {least:g}. Point at a token on the left for its row, on the right for its "
        "column"
    )


def listed(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`; "" for none."""
    *first, last = list(names) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def signed(value: float, digits: int = 3) -> str:
    """A number with its typographic sign: `+0.170`, `−0.170`, and `0.000` if it rounds to 0."""
    near = round(value, digits)
    return number(near, f"+.{digits}f") if near else f"{0:.{digits}f}"


def number(value: float, form: str) -> str:
    """A number in the format `form`, with a minus sign and not a hyphen: `−0.17`. Never `−0.00`."""
    text = format(value, form)
    return (text if float(text) else format(0.0, form)).replace("-", "−")


def statistic_title(name: str, threshold: float = 0.1) -> str:
    """The title of a statistic or of a pattern's score. threshold : the threshold passed to `stats`."""
    if name in PATTERNS:
        return PATTERNS[name].title
    return f"Weights above {threshold:g}" if name == "effective_threshold" else TITLES.get(name, name)


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

    >>> figures.cell_texts(select.select(trace)).sentences[1][2]
    '‘chien’ (2) looks at ‘dog’ (3): 0.73'
    """
    return of_values(_as_written(grid.masked), grid, weight_words, link_words(grid, links))


def _as_written(weights: np.ndarray) -> np.ndarray:
    """For each weight one with the same `weight_words`, of at most a hundred: most weights of a map differ."""
    exact = weights.astype(float)
    return np.where((exact > 0) & (exact < 0.005), 0.001, np.rint(exact * 100) / 100)


def of_values(
    values: np.ndarray, grid, words: Callable[[float], str], added: dict[tuple[int, int], str] | None = None
) -> CellTexts | None:
    """`cell_texts` for any values [queries, keys]; words(value) formats the number. added : (query, key) -> text added
    to its cell.

    Gaps have a text too, so that they can be clicked like other cells.
    """
    if values.size > _MOST:
        return None
    phrases: dict[tuple[str, str | None], int] = {}
    numbers, places = np.unique(np.where(grid.visible, values, np.inf), return_inverse=True)
    numbered = [phrases.setdefault(_phrase(number, words), len(phrases)) for number in numbers.tolist()]
    which = np.array(numbered, dtype=np.uint16)[places.reshape(values.shape)]
    for (query, key), text in (added or {}).items():
        between, after = list(phrases)[which[query, key]]
        pair = (f"{between}{text}", None) if after is None else (between, f"{after}{text}")
        which[query, key] = phrases.setdefault(pair, len(phrases))
    return CellTexts(placed(grid.queries), placed(grid.keys), list(phrases), which)


def link_words(grid: Grid, links: Links | None) -> dict[tuple[int, int], str]:
    """(query, key) of each link -> the text added to its cell. ValueError when a link is not a cell of the map."""
    if links is None:
        return {}
    (rows, columns), cells = grid.weights.shape, sorted(links.possible | links.sure)
    for query, key in cells:
        if not (0 <= query < rows and 0 <= key < columns):
            raise ValueError(f"links must be cells of the map, {rows} by {columns}; got ({query}, {key})")
    return {cell: f", a {'sure' if cell in links.sure else 'possible'} link" for cell in cells}


def _phrase(number: float, words: Callable[[float], str]) -> tuple[str, str | None]:
    """number : infinite where the query cannot see the key."""
    if number == math.inf:
        return _UNSEEN
    return _BLANK if math.isnan(number) else (" looks at ", f": {words(number)}")


def placed(tokens: Sequence) -> list[str]:
    """Tokens as they are named in a sentence, escaped, with their places from 1: `‘the’ (3)`. One can occur twice."""
    return [f"{labels.escape(name)} ({place})" for place, name in enumerate(labels.named(tokens), start=1)]
