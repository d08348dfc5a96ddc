"""All heads of a kind as small maps, printed: neighbouring cells of one shade are one rectangle."""

from __future__ import annotations

import base64
import io
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from attnviz import figures
from attnviz.export import heading
from attnviz.export.printed.maps import HIDDEN, scale_below
from attnviz.export.printed.sheet import LEADING, Sheet, Style, sheet
from attnviz.figures.by_head import mosaic
from attnviz.figures.by_head.grid import LABEL, Rows, placed
from attnviz.figures.by_head.overview import arranged, margins, small_maps
from attnviz.figures.titles import statistic_title
from attnviz.plotlyjs import MOST_RECTANGLES
from attnviz.trace import Trace

Box = tuple[float, float, float, float]  # x, y, width and height
_EDGE = 0.1  # points around a rectangle in its own colour: no hairlines between those that touch


def of_overview(
    trace: Trace,
    kind: str | None = None,
    style: Style = Style(),
    *,
    table: pd.DataFrame | None = None,
    order: str | None = None,
    color: str | None = None,
    root: bool = False,
) -> Sheet:
    """All heads of a kind as small maps; arguments and errors as of `figures.overview`.

    Shades are 64, and neighbouring cells of one shade are one rectangle. If there are more than
    `plotlyjs.MOST_RECTANGLES` (300,000), all cells are one image.
    """
    kind = kind or (trace.maps or [trace.map()])[0].kind
    chart = figures.overview(trace, kind, table, order, color, root=root, dark=style.dark)
    rows = arranged(trace, kind, table, order)
    drawn = boxes(trace, kind, rows, margins(bool(order), bool(color)), root)

    def draw(figure: Figure) -> None:
        axes = _axes(figure, rows, bool(order), style)
        if color:
            _frames(figure, axes, chart.data[0], color, style)
        if sum(map(len, drawn.values())) > MOST_RECTANGLES:
            _image(axes, chart.layout.images[0].source, rows)
        else:
            add_rectangles(axes, drawn, style)
        weights = LinearSegmentedColormap.from_list("weights", style.colors.sequential)
        norm = PowerNorm(0.5, 0, 1) if root else Normalize(0, 1)
        ticks = {0: "0", 0.25: ".25", 0.5: ".5", 0.75: ".75", 1: "1"}
        scale_below(figure, axes, ScalarMappable(norm, weights), style, ticks, "attention weight")

    tall = min(0.9 * style.width / len(rows[0]), 9 * style.points) * (1 + LABEL * bool(order))
    body = len(rows) * tall + style.points * (4 + 3 * bool(color)) * LEADING
    return sheet([*heading.of_heads(trace, kind), chart.description], style, body, draw)


def boxes(trace: Trace, kind: str, rows: Rows, margins: tuple[float, float], root: bool) -> dict[int, list[Box]]:
    """The rectangles of all maps by their place in `mosaic.colors`, -1 for cells that are hidden; in units of a head
    with its margins, whose middle is at its column and its row."""
    maps, seen = small_maps(trace, kind, rows)
    (high, wide), (above, around) = seen.shape, margins
    tall, broad = 1 + above + around, 1 + 2 * around
    result = defaultdict(list)
    for row, column, _ in placed(rows):
        left, top = column - 0.5 + around / broad, row - 0.5 + above / tall
        shades = np.where(seen, mosaic.shades(maps[row][column], root).astype(int), -1)
        for shade, (x, y, width, height) in merged(shades):
            box = left + x / wide / broad, top + y / high / tall, width / wide / broad, height / high / tall
            result[shade].append(box)
    return result


def merged(cells: np.ndarray) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """cells (rows, columns) int -> each value with one of its rectangles (x, y, width, height): a run of equal cells in
    a row, as high as the rows below that have the same run. As `rectangles` in plotlyjs/cells.js."""
    above: dict[int, list[int]] = {}  # where a run begins -> value, end, first row
    for y, row in enumerate([*cells, cells[:0].ravel()]):
        starts = np.flatnonzero(np.diff(row, prepend=row[:1] - 1)).tolist()
        runs = {x: [int(row[x]), end, y] for x, end in zip(starts, [*starts[1:], len(row)])}
        for x, (value, end, first) in above.items():
            if x in runs and runs[x][:2] == [value, end]:
                runs[x][2] = first
            else:
                yield value, (x, first, end - x, y - first)
        above = runs


def add_rectangles(axes, boxes: dict[int, list[Box]], style: Style) -> None:
    """One path a shade of `mosaic.colors`, and one for what is hidden (-1)."""
    colors = mosaic.colors(style.colors) / 255
    for shade, places in boxes.items():
        if shade == -1:
            look = dict(facecolor=style.colors.page, edgecolor=colors[-1], hatch=HIDDEN, linewidth=0)
        else:
            look = dict(facecolor=colors[shade], edgecolor=colors[shade], linewidth=_EDGE)
        x, y, width, height = np.array(places).T
        corners = np.stack([[x, x + width, x + width, x, x], [y, y, y + height, y + height, y]], axis=-1)  # (5, N, 2)
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(places)
        axes.add_patch(PathPatch(Path(corners.swapaxes(0, 1).reshape(-1, 2), codes), **look))


def _image(axes, address: str, rows: Rows) -> None:
    """address : the maps as a PNG in a data URL."""
    pixels = imread(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    axes.imshow(pixels, extent=(-0.5, len(rows[0]) - 0.5, len(rows) - 0.5, -0.5), aspect="auto", interpolation="none")


def _axes(figure: Figure, rows: Rows, named: bool, style: Style):
    """Heads across and layers downwards; or the name of each head above its map."""
    axes, colors = figure.add_subplot(facecolor=style.colors.page), style.colors
    axes.set(xlim=(-0.5, len(rows[0]) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0, colors=colors.text)
    if named:
        axes.set(xticks=[], yticks=[])
        for y, x, head in placed(rows):
            look = dict(ha="center", va="center", color=colors.text, size=0.8 * style.points)
            axes.text(x, y - 0.5 + LABEL / 2.3, f"{head.layer + 1}·{head.head + 1}", **look)
    else:
        axes.set_xticks(range(len(rows[0])), [str(head + 1) for head in range(len(rows[0]))])
        axes.set_yticks(range(len(rows)), [str(next(head.layer for head in row if head) + 1) for row in rows])
        axes.set_xlabel("head", color=colors.muted)
        axes.set_ylabel("layer", color=colors.muted)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def _frames(figure: Figure, axes, cells, color: str, style: Style) -> None:
    """Behind each map a rectangle in the colour of a column. cells : the heatmap of `figures.overview`."""
    values, norm = np.array(cells.z, float), Normalize(cells.zmin, cells.zmax)
    scale = LinearSegmentedColormap.from_list("frames", [shade for _, shade in cells.colorscale])
    places = np.argwhere(np.isfinite(values)).tolist()
    frames = PatchCollection([Rectangle((x - 0.49, y - 0.49), 0.98, 0.98) for y, x in places], cmap=scale, norm=norm)
    frames.set_array([values[y, x] for y, x in places])
    axes.add_collection(frames)
    ticks = {float(value): f"{value:.2g}" for value in np.linspace(cells.zmin, cells.zmax, 3)}
    scale_below(figure, axes, frames, style, ticks, f"frames: {statistic_title(color)}")
