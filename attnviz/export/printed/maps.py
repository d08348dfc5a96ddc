"""Attention maps and differences of two, printed: a rectangle a cell."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnviz.export.printed.sheet import LEADING, Sheet, Style, label_keys, sheet
from attnviz.export import heading
from attnviz.figures import labels
from attnviz.figures.axes import check_step
from attnviz.figures.maps import below
from attnviz.figures.theme import Theme
from attnviz.select import Grid
from attnviz.trace import Trace

HIDDEN = "////"  # over cells that a query cannot see


def of_map(
    trace: Trace,
    grid: Grid,
    style: Style = Style(),
    *,
    step: int | None = None,
    links=None,
    windows: Sequence[tuple[float, float]] = (),
) -> Sheet:
    """A map of `trace`.

    step : a row to outline (from 0); none unless given. links : `alignment.Cells` to outline, those that are only
        possible in dashes. windows : of local attention, (centre, reach) in keys from 0 for each row: a diamond, and
        brackets at the ends. ValueError for a step that is no row of the map, and for windows of other rows.
    """
    check_step(grid, step)
    if windows and len(windows) != len(grid.queries):
        raise ValueError(f"windows must be one for each of {len(grid.queries)} rows; got {len(windows)}")

    def draw(figure: Figure) -> None:
        axes, cells = _grid(figure, grid, grid.weights, style, style.colors.sequential, (0, 1))
        _outlines(axes, step, links, grid, style.colors)
        _places(axes, windows, style.colors)
        scale_below(
            figure, axes, cells, style, {0: "0", 0.25: ".25", 0.5: ".5", 0.75: ".75", 1: "1"}, "attention weight"
        )

    return sheet(heading.of_map(trace, grid, links, windows), style, _height(grid, style), draw)


def of_difference(
    first: Trace, second: Trace, values: np.ndarray, grid: Grid, names: tuple[str, str], style: Style = Style()
) -> Sheet:
    """values (queries, keys) = weights of `first` - weights of `second` (`select.difference`), on a scale from -1 to 1.

    grid : the map of either. names : of the two in the scale. ValueError if the shapes differ.
    """
    if np.shape(values) != grid.weights.shape:
        raise ValueError(f"values must have the grid's shape {grid.weights.shape}; got {np.shape(values)}")

    def draw(figure: Figure) -> None:
        axes, cells = _grid(figure, grid, values, style, style.colors.diverging, (-1, 1))
        _dashes(axes, values, grid, style.colors)
        ticks = {-1: "−1", -0.5: f"◂ {names[1]}", 0: "0", 0.5: f"{names[0]} ▸", 1: "1"}
        scale_below(figure, axes, cells, style, ticks, f"difference of weights; –: more in {names[1]}")

    return sheet(heading.of_difference(first, second, grid), style, _height(grid, style), draw)


def _height(grid: Grid, style: Style) -> float:
    """Points for the rows, the tokens above them, and the scale below."""
    return style.points * (max(1.45 * len(grid.queries), 6) + 6.5 * LEADING)


def _grid(figure: Figure, grid: Grid, values: np.ndarray, style: Style, colors: tuple, span: tuple[float, float]):
    """A rectangle a cell; those that a query cannot see are hatched, rows without weights stay empty."""
    axes = figure.add_subplot(facecolor=style.colors.page)
    places = [(query, key) for query in range(len(grid.queries)) for key in range(len(grid.keys))]
    seen = [cell for cell in places if grid.visible[cell] and np.isfinite(values[cell])]
    hidden = [_box(cell) for cell in places if not grid.visible[cell]]
    scale = LinearSegmentedColormap.from_list("weights", colors)
    cells = PatchCollection(list(map(_box, seen)), cmap=scale, norm=Normalize(*span), linewidth=0.4)
    cells.set_array(np.array([values[cell] for cell in seen]))
    cells.set_edgecolor(style.colors.page)
    axes.add_collection(cells)
    if hidden:
        stripes = dict(facecolor="none", edgecolor=style.colors.grid, hatch=HIDDEN, linewidth=0)
        axes.add_collection(PatchCollection(hidden, **stripes))
    _axes(axes, grid, style)
    return axes, cells


def _box(cell: tuple[int, int], within: float = 0.0) -> Rectangle:
    query, key = cell
    return Rectangle((key - 0.5 + within, query - 0.5 + within), 1 - 2 * within, 1 - 2 * within)


def _axes(axes, grid: Grid, style: Style) -> None:
    axes.set(xlim=(-0.5, len(grid.keys) - 0.5), ylim=(len(grid.queries) - 0.5, -0.5))
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    label_keys(axes, texts(grid.keys), style)
    axes.yaxis.set_ticks(range(len(grid.queries)), texts(grid.queries), parse_math=False)
    for axis, tokens in ((axes.xaxis, grid.keys), (axes.yaxis, grid.queries)):
        for label, token in zip(axis.get_ticklabels(), tokens, strict=True):
            label.set_style("italic" if token.special else "normal")
    axes.tick_params(length=0, colors=style.colors.text)
    axes.set_xlabel(f"{grid.sides[1]} (attended to)", color=style.colors.muted)
    axes.set_ylabel(f"{grid.sides[0]} (attends)", color=style.colors.muted)
    for spine in axes.spines.values():
        spine.set_visible(False)


def texts(tokens) -> list[str]:
    """The labels of the page's charts without their markup, and longer."""
    return [html.unescape(re.sub("</?i>", "", label)) for label in labels.ticks(tokens, limit=30)]


def scale_below(figure: Figure, axes, cells, style: Style, ticks: dict[float, str], name: str) -> None:
    """The scale of colours below the map."""
    bar = figure.colorbar(cells, ax=axes, orientation="horizontal", fraction=0.04, aspect=90, pad=0.02)
    bar.solids.set(rasterized=False, edgecolor="face", linewidth=0.3)
    bar.set_ticks(list(ticks), labels=list(ticks.values()))
    bar.ax.tick_params(colors=style.colors.muted, labelsize=0.85 * style.points, length=2)
    bar.set_label(name, color=style.colors.muted, size=0.85 * style.points)
    bar.outline.set_visible(False)


def _dashes(axes, values: np.ndarray, grid: Grid, colors: Theme) -> None:
    """A dash in each cell that is clearly negative: in grey the two ends of the scale look the same."""
    for query, key in below(np.where(grid.visible, values, np.nan)):
        for color, width in ((colors.page, 2.4), (colors.text, 1.2)):
            axes.plot([key - 0.2, key + 0.2], [query, query], color=color, linewidth=width, solid_capstyle="butt")


def _places(axes, windows: Sequence[tuple[float, float]], colors: Theme) -> None:
    """The predicted place of each row and the ends of its window; what is off the map is cut."""
    for row, (centre, reach) in enumerate(windows):
        for color, width in ((colors.page, 2.4), (colors.text, 1.2)):
            look = dict(color=color, linewidth=width, scalex=False, scaley=False)
            axes.plot([centre], [row], marker="D", markersize=3, markerfacecolor="none", markeredgewidth=width, **look)
            for end, inwards in ((centre - reach, 0.22), (centre + reach, -0.22)):
                axes.plot(
                    [end + inwards, end, end, end + inwards], [row - 0.42, row - 0.42, row + 0.42, row + 0.42], **look
                )


def _outlines(axes, step: int | None, links, grid: Grid, colors: Theme) -> None:
    for cells, dash in ((links.sure, "-"), (links.possible - links.sure, "--")) if links else ():
        for cell in sorted(cells):
            for color, width in ((colors.page, 2.4), (colors.text, 1.2)):
                box = _box(cell, 0.1)
                box.set(fill=False, edgecolor=color, linewidth=width, linestyle=dash)
                axes.add_patch(box)
    if step is not None:
        shape = Rectangle((-0.5, step - 0.5), len(grid.keys), 1, fill=False, edgecolor=colors.outline, linewidth=1.5)
        axes.add_patch(shape)
