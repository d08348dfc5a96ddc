"""One attention map for a slide or a paper, as SVG, PDF or PNG: drawn by matplotlib, so no browser is needed.

In SVG and PDF each cell is a rectangle and each text is text. The scale of colours climbs evenly in lightness, so a
print in grey reads as well. matplotlib and not a writer of our own: it embeds fonts in PDF, takes each character from
the first font that has it, and saves PNG by the same lines.
"""

from __future__ import annotations

import html
import io
import re
import textwrap
import threading
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnviz.figures import labels
from attnviz.figures.labels import plain
from attnviz.figures.theme import Theme, palette
from attnviz.mechanisms import ALL
from attnviz.select import Grid
from attnviz.trace import Trace

FORMATS = ("svg", "pdf", "png")
_INCH, _POINT = 2.54, 72  # cm and points in an inch
_DPI = 300  # of a PNG
_FONTS = ("Source Sans 3", "DejaVu Sans", "Noto Sans CJK JP", "IPAPGothic", "Yu Gothic", "Hiragino Sans")
_HIDDEN = "////"  # over cells that a query cannot see
_KINDS = {
    "cross": "cross-attention",
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
}
_lock = threading.Lock()  # matplotlib's settings are those of the process


@dataclass(frozen=True)
class Size:
    """What a picture must fit: cm, and the size of its type in points. height : None for as high as its rows need."""

    width: float
    height: float | None
    font: float


SIZES = {
    "column": Size(8.5, None, 7),
    "page": Size(17, None, 9),
    "slide": Size(33.867, 19.05, 18),  # 16:9 in PowerPoint, Keynote and Google Slides
}


def picture(
    trace: Trace,
    grid: Grid,
    fmt: str = "pdf",
    size: str = "page",
    *,
    font: float | None = None,
    dark: bool = False,
    step: int | None = None,
    links=None,
) -> bytes:
    """The map with its mechanism and model, sentence, translation, and the names of its axes.

    grid : a map of `trace`. font : points; that of SIZES[size] unless given. step : a row to outline (from 0); none
        unless given. links : `alignment.Cells` to outline, those that are only possible in dashes.
    ValueError for another format, size or font, and for a step that is no row of the map.
    """
    _check(grid, fmt, size, font, step)
    points = font or SIZES[size].font
    lines = _header(trace, grid, SIZES[size].width, points)
    families = [name for name in _FONTS if name in font_manager.get_font_names()]
    settings = {
        "font.family": families,
        "font.size": points,
        "svg.fonttype": "none",  # text, not outlines
        "pdf.fonttype": 42,
        "svg.hashsalt": "attnviz",  # the same picture gives the same bytes
        "hatch.linewidth": 0.5,
    }
    with _lock, matplotlib.rc_context(settings):
        drawn = _drawn(grid, SIZES[size], points, lines, palette(dark), step, links)
        return _saved(drawn, fmt)


def _check(grid: Grid, fmt: str, size: str, font: float | None, step: int | None) -> None:
    if fmt not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {fmt!r}")
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}; got {size!r}")
    if font is not None and not 4 <= font <= 40:
        raise ValueError(f"font must be 4 to 40 points; got {font}")
    if step is not None and not 0 <= step < len(grid.queries):
        raise ValueError(f"step must be a row of the map, 0 to {len(grid.queries) - 1}; got {step}")


def _header(trace: Trace, grid: Grid, width: float, points: float) -> list[tuple[str, bool]]:
    """The lines above the map, each with: is it bold? Long texts are wrapped, none is cut."""
    title = ALL[grid.mechanism].title if grid.mechanism in ALL else grid.mechanism
    columns = max(20, int(width / _INCH * _POINT / (0.56 * points)))
    texts = [(f"{title} ({trace.model}): {_map_name(trace, grid)}", True), (trace.text, False)]
    if trace.target:
        texts.append((f"→ {trace.translation}", False))
    return [(line, bold) for text, bold in texts for line in textwrap.wrap(_shown(text), columns) or [""]]


def _map_name(trace: Trace, grid: Grid) -> str:
    """The kind of attention, with layer and head where there are several."""
    layers = sum(attention.kind == grid.kind for attention in trace.maps)
    if grid.layer is None:
        return f"{_KINDS[grid.kind]}, mean of heads of several layers"
    heads = len(trace.map(grid.kind, grid.layer).weights)
    if layers == heads == 1:
        return _KINDS[grid.kind]
    head = f"mean of {heads} heads" if grid.head is None else f"head {grid.head + 1} of {heads}"
    return f"{_KINDS[grid.kind]}, layer {grid.layer + 1} of {layers}, {head}"


def _drawn(grid, size: Size, points: float, lines, colors: Theme, step: int | None, links) -> Figure:
    line = 1.4 * points / _POINT  # inches
    head, width = (len(lines) + 0.4) * line, size.width / _INCH
    rows = len(grid.queries)
    height = size.height / _INCH if size.height else head + max(rows * 1.45, 6) * points / _POINT + 6.5 * line
    figure = Figure(figsize=(width, height), facecolor=colors.page, layout="constrained")
    figure.get_layout_engine().set(rect=(0.01, 0.01, 0.98, 0.99 - head / height), w_pad=0.02, h_pad=0.02)
    for place, (text, bold) in enumerate(lines):
        y = 1 - (0.3 + place) * line / height
        weight = "bold" if bold else "normal"
        figure.text(0.015, y, text, color=colors.text, va="top", weight=weight, parse_math=False)
    axes = figure.add_subplot(facecolor=colors.page)
    cells = _cells(axes, grid, colors)
    _axes(axes, grid, size.width, points, colors)
    _outlines(axes, step, links, grid, colors)
    bar = figure.colorbar(cells, ax=axes, orientation="horizontal", fraction=0.04, aspect=90, pad=0.02)
    bar.solids.set(rasterized=False, edgecolor="face", linewidth=0.3)
    bar.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0", ".25", ".5", ".75", "1"])
    bar.ax.tick_params(colors=colors.muted, labelsize=0.85 * points, length=2)
    bar.set_label("attention weight", color=colors.muted, size=0.85 * points)
    bar.outline.set_visible(False)
    return figure


def _cells(axes, grid: Grid, colors: Theme) -> PatchCollection:
    """A rectangle a cell; those that a query cannot see are hatched, rows without weights stay empty."""
    places = [(query, key) for query in range(len(grid.queries)) for key in range(len(grid.keys))]
    seen = [cell for cell in places if grid.visible[cell] and np.isfinite(grid.weights[cell])]
    hidden = [_box(cell) for cell in places if not grid.visible[cell]]
    scale = LinearSegmentedColormap.from_list("weights", colors.sequential)
    cells = PatchCollection(list(map(_box, seen)), cmap=scale, norm=Normalize(0, 1), linewidth=0.4)
    cells.set_array(np.array([grid.weights[cell] for cell in seen]))
    cells.set_edgecolor(colors.page)
    axes.add_collection(cells)
    if hidden:
        axes.add_collection(
            PatchCollection(hidden, facecolor="none", edgecolor=colors.grid, hatch=_HIDDEN, linewidth=0)
        )
    return cells


def _box(cell: tuple[int, int], within: float = 0.0) -> Rectangle:
    query, key = cell
    return Rectangle((key - 0.5 + within, query - 0.5 + within), 1 - 2 * within, 1 - 2 * within)


def _axes(axes, grid: Grid, width: float, points: float, colors: Theme) -> None:
    axes.set(xlim=(-0.5, len(grid.keys) - 0.5), ylim=(len(grid.queries) - 0.5, -0.5))
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    room = 0.8 * width / _INCH * _POINT / max(len(grid.keys), 1)  # points for a column
    size = min(points, max(4, 0.95 * room))
    angle = 50 if room > 1.6 * size else 90
    for axis, tokens in ((axes.xaxis, grid.keys), (axes.yaxis, grid.queries)):
        axis.set_ticks(range(len(tokens)), _labels(tokens), parse_math=False)
        for label, token in zip(axis.get_ticklabels(), tokens, strict=True):
            label.set_style("italic" if token.special else "normal")
    axes.tick_params(length=0, colors=colors.text)
    for label in axes.get_xticklabels():
        label.set(rotation=angle, ha="left" if angle < 90 else "center", size=size, rotation_mode="anchor")
        label.set_va("bottom" if angle < 90 else "center_baseline")
        if angle == 90:
            label.set_ha("left")
    axes.set_xlabel(f"{grid.sides[1]} (attended to)", color=colors.muted)
    axes.set_ylabel(f"{grid.sides[0]} (attends)", color=colors.muted)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _labels(tokens) -> list[str]:
    """The labels of the page's charts without their markup, and longer."""
    return [html.unescape(re.sub("</?i>", "", label)) for label in labels.ticks(tokens, limit=30)]


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


def _shown(text: str) -> str:
    return plain(text) if text.strip() else text


def _saved(figure: Figure, fmt: str) -> bytes:
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    buffer = io.BytesIO()
    figure.savefig(buffer, format=fmt, dpi=_DPI if fmt == "png" else _POINT, metadata=dates[fmt])
    return buffer.getvalue()
