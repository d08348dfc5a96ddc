"""The data of a figure: maps, bars, points with lines, marks, texts and errors, and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import Rectangle

from attnviz.export.printed import letters
from attnviz.export.printed.axes import LEAST, add_scale
from attnviz.export.printed.canvas import Canvas, color, dash
from attnviz.export.printed.letters import plain, write
from attnviz.figures import labels
from attnviz.figures.by_head import LABEL
from attnviz.plotlyjs import MOST_RECTANGLES

MARKERS = {
    "circle": "o",
    "diamond": "D",
    "square": "s",
    "triangle-up": "^",
    "x": "X",
    "x-thin": "x",
    "star": "*",
    "cross": "P",
    "hexagon": "h",
}
_TEXT_SIZE = 12  # px
_INSIDE = 6  # px in a table: between a line and the text beside it
_LEAST_IN_TABLE = 5  # px of the smallest type of a table
_LETTER = 0.56  # of the size of the type: the width of a letter, as a rule
_SHADES = 256  # of a colour scale: each is a rectangle of the file
_EDGE = 0.1  # points around cells that touch, in their own colour: no hairlines between them


def add_trace(canvas: Canvas, trace: dict) -> None:
    """Draw one trace in its plot."""
    panel = canvas.panels[trace.get("xaxis") or "x", trace.get("yaxis") or "y"]
    handle = _KINDS[trace["type"]](canvas, panel, trace)
    if trace.get("showlegend", True) and trace.get("name") and handle is not None:
        canvas.names.append((handle, plain(trace["name"])))


def _heatmap(canvas: Canvas, panel: Axes, trace: dict) -> None:
    """A rectangle for each cell that has a number."""
    z = np.array(trace["z"], dtype=float)
    stops = trace["colorscale"]
    if all(color(shade) == "none" for _, shade in stops):
        return
    scale = LinearSegmentedColormap.from_list("cells", [tuple(stop) for stop in stops], N=1024)
    norm = Normalize(trace["zmin"], trace["zmax"])
    if trace.get("showscale", True):
        shades = scale.resampled(2 if canvas.sizing else _SHADES)  # they take no room
        add_scale(canvas, ScalarMappable(norm, shades), trace["colorbar"])
    if canvas.sizing:
        return
    if z.size > MOST_RECTANGLES:
        ends = (-0.5, z.shape[1] - 0.5, z.shape[0] - 0.5, -0.5)
        panel.imshow(z, scale, norm, extent=ends, aspect="auto", interpolation="none")
    else:
        rows, columns = np.nonzero(np.isfinite(z))
        size = canvas.size(panel)
        gaps = [trace.get(f"{side}gap", 0) * count / px for side, count, px in zip("xy", z.shape[::-1], size)]
        drawn = PolyCollection(_boxes(rows, columns, *gaps), cmap=scale, norm=norm, linewidth=0 if any(gaps) else _EDGE)
        drawn.set_array(z[rows, columns])
        drawn.set_edgecolor("none" if any(gaps) else "face")
        panel.add_collection(drawn, autolim=False)
        _numbers(canvas, panel, trace, scale(norm(z)))


def _boxes(rows: np.ndarray, columns: np.ndarray, across: float, down: float) -> np.ndarray:
    """Corners (N, 4, 2) of cells, less gaps, in cells."""
    wide, high = (1 - across) / 2, (1 - down) / 2
    corners = np.array([[-wide, -high], [wide, -high], [wide, high], [-wide, high]])
    return np.stack([columns, rows], axis=-1)[:, None] + corners


def _numbers(canvas: Canvas, panel: Axes, trace: dict, shades: np.ndarray) -> None:
    """The text of each cell, written into it where there is room. shades (rows, columns, 4)."""
    if not trace.get("texttemplate"):
        return
    wide, high = (
        side * canvas.px / max(count, 1) for side, count in zip(canvas.size(panel), (shades.shape[1], shades.shape[0]))
    )
    longest = letters.widest((text for texts in trace["text"] for text in texts if text), 1)
    own_size = trace.get("textfont", {}).get("size", _TEXT_SIZE) * canvas.px
    size = min(own_size, 0.9 * wide / max(longest, 0.1), 0.8 * high)
    if size < LEAST:
        return
    for row, texts in enumerate(trace["text"]):
        for column, text in enumerate(texts):
            if text and canvas.seen(row):
                pale = np.dot(shades[row, column, :3], (0.299, 0.587, 0.114)) > 0.5
                look = dict(ha="center", va="center", size=size, color="#444444" if pale else "#ffffff")
                panel.text(column, row, text, parse_math=False, **look)


def _bar(canvas: Canvas, panel: Axes, trace: dict):
    """Draw bars; a value None has no bar."""
    across = trace.get("orientation") == "h"
    values = _floats(trace["x" if across else "y"])
    places = trace.get("y" if across else "x")
    places = np.arange(len(values)) if places is None else np.asarray(places)
    marker, drawn = trace["marker"], np.isfinite(values)
    shades = np.broadcast_to(marker["color"], len(values))
    alphas = np.broadcast_to(marker.get("opacity", 1), len(values))
    draw: Callable = panel.barh if across else panel.bar
    line = marker.get("line") or {}
    outline = dict(linewidth=line.get("width", 0) * canvas.px, edgecolor=color(line.get("color")))
    bars = draw(places[drawn], values[drawn], trace["width"], color=[*map(color, shades[drawn])], zorder=1, **outline)
    for bar, alpha in zip(bars, alphas[drawn]):
        if alpha < 1:  # 1 would fill a bar that is only an outline
            bar.set_alpha(alpha)
    _values(canvas, panel, trace, [(place, value) for place, value in zip(places, values)])
    return bars


def _values(canvas: Canvas, panel: Axes, trace: dict, tops: Sequence[tuple[float, float]]) -> None:
    """Texts over bars, no wider than a bar's share of the axis; if they would be too small, only that of the highest
    bar."""
    texts = [plain(text) if text and np.isfinite(top[1]) else "" for text, top in zip(trace.get("text") or (), tops)]
    if not any(texts):
        return
    own_size = trace.get("textfont", {}).get("size", _TEXT_SIZE) * canvas.px
    room = canvas.size(panel)[0] * canvas.px / max(len(tops), 1)
    size = min(own_size, 0.95 * room / letters.widest(texts, 1)) if sum(map(bool, texts)) > 1 else own_size
    if size < LEAST:
        highest = max((place for place, text in enumerate(texts) if text), key=lambda place: tops[place][1])
        texts, size = [text if place == highest else "" for place, text in enumerate(texts)], own_size
    for top, text in zip(tops, texts):
        if text:
            look = dict(ha="center", va="bottom", size=size, color=canvas.style.colors.text, parse_math=False)
            panel.annotate(text, top, (0, canvas.px), textcoords="offset points", **look)


def _scatter(canvas: Canvas, panel: Axes, trace: dict):
    y = _floats(trace["y"])
    x = np.arange(len(y)) if trace.get("x") is None else _floats(trace["x"])
    mode, handle = trace["mode"], None
    marker, line = trace.get("marker") or {}, trace.get("line") or {}
    shown = dict(clip_on=trace.get("cliponaxis", True), zorder=2)
    if "error_y" in trace:
        _errors(canvas, panel, trace, x, y)
    if "markers" in mode and isinstance(marker.get("color"), list):
        panel.scatter(x, y, (marker["size"] * canvas.px) ** 2, marker["color"], linewidth=0, **shown)
    elif "lines" in mode or "markers" in mode:
        steps = "steps-post" if line.get("shape") == "hv" else "default"
        look = _line(canvas, line) if "lines" in mode else dict(linestyle="")
        marks = _marks(canvas, marker, line) if "markers" in mode else {}
        [handle] = panel.plot(x, y, drawstyle=steps, **({"color": line.get("color")} | look | marks | shown))
    if "text" in mode:
        font = trace["textfont"]
        size = _beside(canvas, panel, x, y, [plain(text) for text in trace["text"]], font["size"] * canvas.px)
        look = dict(ha="center", va="center", size=size, color=font["color"], parse_math=False)
        for place in zip(x, y, map(plain, trace["text"])):
            panel.text(*place, **look)
    return handle


def _beside(canvas: Canvas, panel: Axes, x: np.ndarray, y: np.ndarray, texts: list[str], size: float) -> float:
    """The type size (points) in which names overlap neither each other nor the small maps under them."""
    span = abs(np.subtract(*panel.get_xlim())) or 1
    apart = [np.diff(np.unique(x[y == level])).min(initial=span) for level in np.unique(y)]
    room = 0.95 * min(apart, default=span) / span * canvas.size(panel)[0] * canvas.px
    high = LABEL / (1 + LABEL) * canvas.size(panel)[1] * canvas.px / abs(np.subtract(*panel.get_ylim()))
    return max(min(size, room / max(letters.widest(texts, 1), 0.1), 0.9 * high), LEAST / 2)


def _line(canvas: Canvas, line: dict) -> dict:
    return dict(color=line["color"], linestyle=dash(line.get("dash")), linewidth=line.get("width", 2) * canvas.px)


def _marks(canvas: Canvas, marker: dict, line: dict) -> dict:
    """The style of marks; open marks have only an edge."""
    symbol = marker.get("symbol", "circle")
    shade, bare = marker.get("color") or line["color"], symbol.removesuffix("-open")
    hollow = symbol != bare or bare == "x-thin"
    return dict(
        marker=MARKERS[bare],
        markersize=marker.get("size", 6) * canvas.px,
        markerfacecolor="none" if hollow else shade,
        markeredgecolor=shade,
        markeredgewidth=(marker.get("line", {}).get("width", 1) if hollow else 0) * canvas.px,
        **({"alpha": marker["opacity"]} if "opacity" in marker else {}),
    )


def _errors(canvas: Canvas, panel: Axes, trace: dict, x: np.ndarray, y: np.ndarray) -> None:
    error, px = trace["error_y"], canvas.px
    ends = [_floats(error["arrayminus"]), _floats(error["array"])]
    look = dict(ecolor=trace["marker"]["color"], elinewidth=error["thickness"] * px, capsize=error["width"] * px)
    panel.errorbar(x, y, ends, fmt="none", zorder=1.5, **look)


def add_table(canvas: Canvas, table: dict) -> None:
    """Draw the table over the whole paper, its texts smaller where their column is narrow."""
    header, cells = table["header"], table["cells"]
    columns = [[head, *texts] for head, texts in zip(header["values"], cells["values"], strict=True)]
    wide, high = canvas.size(canvas.paper)
    edges = np.cumsum([0, *table["columnwidth"]]) / sum(table["columnwidth"])
    row = min(header["height"] / high, 1 / len(columns[0]))
    size = _table_size(columns, np.diff(edges) * wide, min(cells["font"]["size"], 0.8 * row * high))
    for column, texts in enumerate(columns):
        left, right = edges[column : column + 2]
        for place, text in enumerate(texts):
            look, top = (cells if place else header), 1 - place * row
            box = Rectangle(
                (left, top - row),
                right - left,
                row,
                transform=canvas.paper.transAxes,
                facecolor=color(look["fill"]["color"]),
                edgecolor=look["line"]["color"],
                linewidth=look["line"]["width"] * canvas.px,
            )
            canvas.paper.add_patch(box)
            side = look["align"][column]
            x = left + _INSIDE / wide if side == "left" else right - _INSIDE / wide
            shade = look["font"]["color"]
            place = x, top - row / 2
            text = _cut_cell(text, ((right - left) * wide - 2 * _INSIDE) * canvas.px, size * canvas.px)
            write(
                canvas.paper, place, text, canvas.paper.transAxes, (side, "center"), size=size * canvas.px, color=shade
            )


def _table_size(columns: list[list[str]], widths: np.ndarray, most: float) -> float:
    """Type size (px) in which every text fits its column."""
    longest = [max(labels.columns(plain(text)) for text in texts) for texts in columns]
    fits = [(width - 2 * _INSIDE) / (_LETTER * max(count, 1)) for count, width in zip(longest, widths)]
    return min(most, max(_LEAST_IN_TABLE, min(fits)))


def _cut_cell(text: str, room: float, size: float) -> str:
    """The text as it is, or plain and cut where it is wider than `room` points."""
    words = plain(text)
    short = letters.cut(words, room, size)
    return text if short == words else labels.escape(short)


def _floats(values) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


_KINDS = {"heatmap": _heatmap, "bar": _bar, "scatter": _scatter}
