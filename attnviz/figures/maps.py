"""One attention map as a picture: rows are queries from top to bottom, columns keys with their tokens along the top.

Axes hold positions, tokens sit in `ticktext`, so repeated tokens never merge and a click gives (key, query) as (x, y).
Cells that a query cannot see are hatched gaps, rows without weights gaps. Steps are counted from 0 in data, from 1 in
words. The token axes of all pictures are defined here; their labels never overlap.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from attnviz.arguments import checked
from attnviz.figures import labels, wording
from attnviz.figures.chart import Chart
from attnviz.figures.theme import NAMES_AXIS, build, grid_axis, layout, map_cells, note, palette, scale_bar
from attnviz.figures.wording import CellTexts, Links, describe, difference_words, links_sentence, windows_sentence
from attnviz.select import Grid

COLUMN = 310  # px of the narrowest column we design for: three beside each other on a screen of 1366 px
_CELL = 24  # px a row, up to 20 rows; later rows get less and the picture grows slowly
_LINE = 1.26  # height of a line of text, as a share of its size: Source Sans; most fonts take less
_RIGHT = 56  # px of the widest right margin
_FULL = 60  # columns of text of a label where there is room
DASHED = -0.05  # differences below this carry a dash: in grey the two ends of the scale look the same
_TOP, _SCALE = 86, 34  # px above the cells for tokens; below them for the colour scale
_STRIPES = 48  # diagonals hatched at most: more would be grey


@checked
def heatmap(
    grid: Grid,
    step: int | None = None,
    title: str | None = None,
    *,
    dark: bool = False,
    scale: bool = True,
    links: Links | None = None,
    windows: Sequence[tuple[float, float]] = (),
    texts: CellTexts | None = None,
    written: bool = True,
    room: int = COLUMN,
    first: tuple[int, int] | None = None,
) -> Chart:
    """Weights [queries, keys] of a Grid on a fixed scale from 0 to 1; the row of `step` is outlined.

    links : `alignment.Cells` to lay over it: sure links as solid squares, those that are only possible as dashed ones.
    windows : of local attention, (centre, reach) in keys from 0 for each row: a diamond, brackets at the ends.
    texts : the hover texts, from `cell_texts(grid, links)`; made here unless given.
    written : False puts the short form of `texts` into `layout.meta["cells"]`, for a page that expands it. room : px of
    the narrowest page column for the map; column names that would overlap there are left out. first : of a part of a
    larger map, the numbers of its first row and column, from 0: the hover texts then have the numbers in the whole map,
    and exact weights. ValueError if `step` is no row, a link no cell, or there is not one window per row.

    >>> figures.heatmap(select.select(trace))  # .show() opens it
    Chart('6 target tokens by 6 source tokens; strongest: ‘noir’ looks at ‘black’, 0.80.')
    """
    check_step(grid, step)
    texts = None if first else texts or wording.cell_texts(grid, links)
    bar = scale_bar([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"]) if scale else {}
    frame = _frame(grid, step, title, dark, scale, describe(grid, step), room)
    _lay_over(frame, grid, links, windows, dark)
    if texts is not None and not written:
        frame["meta"]["cells"] = texts.short()
    if scale:
        frame["meta"]["axes"] = {"colour": "attention weight"}
    hover = dict(hovertext=wording.exact_texts(grid, first), hoverinfo="text") if first else _hover(texts, written)
    return build([_cells(grid.masked, (0, 1), palette(dark).sequential, bar, hover)], frame)


@checked
def difference(
    values: np.ndarray, grid: Grid, names: tuple[str, str] = ("a", "b"), title: str | None = None, *, dark: bool = False
) -> Chart:
    """values [queries, keys] = weights of names[0] - weights of names[1]; the scale is -1..1 around 0.

    Cells below DASHED carry a dash, so that a grey print shows the same. `grid` gives the tokens (either of the two:
    they are the same). ValueError if the shapes differ.

    >>> a, b = select.select(two_heads, head=0), select.select(two_heads, head=1)
    >>> figures.difference(select.difference(a, b), a, ("itself", "before")).layout.meta["axes"]["colour"]
    'attention weight of itself minus that of before'
    """
    values = np.asarray(values, dtype=np.float32)
    if values.shape != grid.weights.shape:
        raise ValueError(f"values must have the grid's shape {grid.weights.shape}; got {values.shape}")
    values = np.where(grid.visible, values, np.nan)
    first, second = (labels.escape(labels.plain(name)) for name in names)
    bar = scale_bar([-1, -0.5, 0, 0.5, 1], ["−1", f"◂ {second} (–)", "0", f"{first} ▸", "1"])
    texts = wording.of_values(values, grid, lambda value: difference_words(value, first, second))
    summary = f"Weights of {names[0]} minus weights of {names[1]}, {values.shape[0]} rows by {values.shape[1]} columns."
    if np.isfinite(values).any():
        row, column = map(int, np.unravel_index(np.nanargmax(np.abs(values)), values.shape))
        query, key = labels.quoted(grid.queries, row), labels.quoted(grid.keys, column)
        summary += f" Largest: {query} looks at {key}, {difference_words(float(values[row, column]), *names)}."
    dashed = below(values)
    if dashed:
        summary += f" A dash marks what is more in {names[1]}."
    frame = _frame(grid, None, title, dark, True, summary)
    frame["meta"]["axes"] = {"colour": f"attention weight of {names[0]} minus that of {names[1]}"}
    if dashed:
        frame["shapes"] = frame.get("shapes", []) + _outlined("more in the second", dashes(dashed), dark)
    return build([_cells(values, (-1, 1), palette(dark).diverging, bar, _hover(texts, True))], frame)


def below(values: np.ndarray) -> list[tuple[int, int]]:
    """The cells (query, key) of a difference that carry a dash. values : NaN where hidden."""
    return [(query, key) for query, key in np.argwhere(values < DASHED).tolist()]


def _lay_over(frame: dict, grid, links, windows: Sequence[tuple[float, float]], dark: bool) -> None:
    """Add links and predicted places, as shapes and in the description. ValueError as in `heatmap`."""
    if windows and len(windows) != len(grid.queries):
        raise ValueError(f"windows must be one for each of {len(grid.queries)} rows; got {len(windows)}")
    shapes = frame.get("shapes", [])
    if links is not None:
        wording.link_words(grid, links)  # says when a link is not a cell of the map
        shapes = _squares(links, dark) + shapes
        frame["meta"]["description"] += f" {links_sentence(grid, links)}"
    if windows:
        shapes = shapes + _outlined("predicted places", diamonds(windows, len(grid.keys)), dark)
        frame["meta"]["description"] += f" {windows_sentence(windows)}"
    if shapes:
        frame["shapes"] = shapes


def _squares(links, dark: bool) -> list[dict]:
    """Links as outlines."""
    kinds = (("sure", links.sure, "solid"), ("possible", links.possible - links.sure, "4px,3px"))
    return [
        shape
        for name, cells, dash in kinds
        if cells
        for shape in _outlined(f"{name} links", squares(cells), dark, dash)
    ]


def _outlined(name: str, path: str, dark: bool, dash: str = "solid") -> list[dict]:
    """A path in two colours, so that one is visible on any cell."""
    return [
        dict(type="path", name=name, path=path, line=dict(color=color, width=width, dash=dash))
        for color, width in ((palette(dark).page, 4), (palette(dark).text, 2))
    ]


def _cells(values: np.ndarray, span: tuple, colors: tuple, bar: dict, hover: dict) -> dict:
    gap = 1 if max(values.shape) <= 64 else 0
    rounded = np.round(values, 4).astype(np.float32)
    return map_cells(rounded, span, colors, bar, xgap=gap, ygap=gap, hoverongaps=True, **hover)


def _hover(texts: CellTexts | None, written: bool) -> dict:
    """The hover text of the trace; only numbers for a map too large for texts."""
    if texts is None:
        return dict(hovertemplate="query %{y:d}, key %{x:d}, counted from 0: %{z:.2f}<extra></extra>")
    return dict(hovertext=texts.sentences, hoverinfo="text") if written else dict(hoverinfo="text")


def _frame(grid, step, title, dark: bool, scale: bool, description: str, room: int = COLUMN) -> dict:
    left, right, xaxis = key_axis(grid, "top", room)
    below = _SCALE if scale else 8
    height = _TOP + rows_height(len(grid.queries)) + below
    if not grid.visible.all():
        description += " What a query cannot see is hatched."
    if grid.sink:
        description += " The last column, with wide stripes, is the sink: weight that goes to no key."
    frame = layout(dark, height, (left, right, _TOP, below), title, description)
    yaxis = query_axis(grid, step)
    frame |= dict(xaxis=xaxis, yaxis=yaxis, annotations=[_corner(grid, dark)])
    frame["meta"] |= all_labels(grid, xaxis, yaxis)
    if shapes := _shapes(grid, step, dark):
        frame["shapes"] = shapes
    return frame


def _corner(grid, dark: bool) -> dict:
    """The label in the corner: the names of columns and rows."""
    place = dict(xref="paper", yref="paper", xanchor="right", yanchor="bottom", xshift=-6, yshift=4)
    return note(f"{grid.sides[1]} →<br>{grid.sides[0]} ↓", dark, x=0, y=1, align="right", **place)


def _shapes(grid, step: int | None, dark: bool) -> list[dict]:
    """Stripes over cells that a query cannot see, and the outline of the row of `step`."""
    colors, shapes = palette(dark), []
    if not grid.visible.all():
        stripes, line = hatched(~grid.visible), dict(color=colors.muted, width=1)
        shapes.append(dict(type="path", name="hidden", path=stripes, opacity=0.55, line=line))
    if grid.sink:
        ends = "".join(
            f"M{len(grid.keys) - 1.5},{y + 0.25}L{len(grid.keys) - 0.5},{y - 0.25}" for y in range(len(grid.queries))
        )
        shapes.append(dict(type="path", name="sink", path=ends, opacity=0.55, line=dict(color=colors.muted, width=1)))
    if step is not None:
        box = dict(x0=-0.5, x1=len(grid.keys) - 0.5, y0=step - 0.5, y1=step + 0.5)
        shapes.append(dict(type="rect", **box, line=dict(color=colors.outline, width=2)))
    return shapes


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


def diamonds(windows: Sequence[tuple[float, float]], columns: int) -> str:
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


def key_axis(grid, side: str, room: int = COLUMN) -> tuple[int, int, dict]:
    """Left and right margin in px, and the axis of the keys: the same for a heatmap and its bars.

    The margins leave room for the rows' labels and for slanted last columns. Labels do not overlap even in the
    narrowest column: they are slanted if that is enough, else upright, then smaller, and finally some are left out.
    """
    texts, count = labels.ticks(grid.keys), len(grid.keys)
    left, right, angle, size, most = _fitted(tuple(texts), tuple(labels.ticks(grid.queries)), room)
    shown = labels.thin(count, most)
    return (
        left,
        right,
        NAMES_AXIS
        | dict(
            side=side,
            range=[-0.5, count - 0.5],
            tickvals=shown,
            ticktext=[texts[i] for i in shown],
            tickangle=-angle,
            ticklabeloverflow="allow",
            tickfont=dict(size=size),
        ),
    )


@functools.lru_cache(64)  # a map and its bars have the same tokens
def _fitted(keys: tuple[str, ...], queries: tuple[str, ...], room: int) -> tuple[int, int, int, int, int]:
    """Left and right margin of a map with these labels, angle and size of those of the keys, and how many of these
    fit."""
    count, widths = len(keys), list(map(labels.width, keys))
    left = min(max(7 * max(map(labels.width, queries), default=0) + 12, 66), 104)
    cell = (room - left - _RIGHT) / max(count, 1)
    for angle, size in ((50, 12), (90, 11), (90, 10)):
        lean, rise = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        reach = [lean * 7 * width - (count - i - 0.5) * cell for i, width in enumerate(widths)]
        right = min(max(int(max(reach, default=0)) + 10, 10), _RIGHT)
        most = int((room - left - right) * rise / (_LINE * size))
        if most >= count:
            break
    return left, right, angle, size, most


def query_axis(grid, step: int | None) -> dict:
    """The axis of the queries, from top to bottom; the label of `step` is bold and never left out."""
    count = len(grid.queries)
    texts = labels.ticks(grid.queries)
    size = 12 if count <= 30 else 11
    shown = labels.thin(count, max(1, int(rows_height(count) / (_LINE * size))), keep=step)
    return tokens_down(texts, shown, step, size)


def tokens_down(texts: list[str], shown: list[int], step: int | None, size: int) -> dict:
    """An axis of tokens from top to bottom, with labels at the places `shown`; that of `step` is bold. size : px."""
    return NAMES_AXIS | dict(
        tickangle=0,
        ticklabeloverflow="allow",  # or Plotly measures each label, a third of a large map's time
        range=[len(texts) - 0.5, -0.5],
        tickvals=shown,
        ticktext=[f"<b>{texts[i]}</b>" if i == step else texts[i] for i in shown],
        tickfont=dict(size=size),
    )


class Keys:
    """The columns of a picture that has no rows of tokens, for `key_axis`; rows : tokens that name rows, if any."""

    def __init__(self, keys, rows=()):
        self.keys, self.queries = tuple(keys), tuple(rows)


def value_axis(dark: bool, **look) -> dict:
    """The value axis of bars over tokens; `look` has additional settings."""
    colors = palette(dark)
    return grid_axis(colors, zeroline=True, zerolinecolor=colors.muted, ticklabelstandoff=10) | look


def all_labels(grid, xaxis: dict, yaxis: dict | None = None) -> dict:
    """`ticks` for the `layout.meta` of a map or its bars: all labels in full, if the axes cut or omit some.

    With them a page can show the enlarged figure with all labels.
    """
    sides = {"x": (grid.keys, xaxis)} | ({"y": (grid.queries, yaxis)} if yaxis else {})
    full = {side: labels.ticks(tokens, limit=_FULL) for side, (tokens, _) in sides.items()}
    short = {side: labels.ticks(tokens) for side, (tokens, _) in sides.items()}
    left_out = any(len(axis["tickvals"]) < len(tokens) for tokens, axis in sides.values())
    return {"labels": True} | ({"ticks": full} if left_out or full != short else {})


def rows_height(n_rows: int) -> int:
    """Px of all rows of a map."""
    return _CELL * n_rows if n_rows <= 20 else min(_CELL * 20 + 3 * (n_rows - 20), 900)


def check_step(grid, step: int | None) -> None:
    """ValueError when `step` is not a row of the map."""
    rows = len(grid.queries)
    if step is not None and not 0 <= step < rows:
        raise ValueError(f"step must be a row of the map, 0 to {rows - 1}; got {step}")
