"""The data of a figure: maps, bars, and points with lines, marks, texts and errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize

from attnviz.export.printed.figure.canvas import Canvas, color, dash
from attnviz.export.printed.figure.texts import plain
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
    if z.size > MOST_RECTANGLES:
        ends = (-0.5, z.shape[1] - 0.5, z.shape[0] - 0.5, -0.5)
        drawn = panel.imshow(z, scale, norm, extent=ends, aspect="auto", interpolation="none")
    else:
        rows, columns = np.nonzero(np.isfinite(z))
        size = canvas.size(panel)
        gaps = [trace.get(f"{side}gap", 0) * count / px for side, count, px in zip("xy", z.shape[::-1], size)]
        drawn = PolyCollection(_boxes(rows, columns, *gaps), cmap=scale, norm=norm, linewidth=0 if any(gaps) else _EDGE)
        drawn.set_array(z[rows, columns])
        drawn.set_edgecolor("none" if any(gaps) else "face")
        panel.add_collection(drawn, autolim=False)
        _numbers(canvas, panel, trace, scale(norm(z)))
    if trace.get("showscale", True):
        _scale(canvas, drawn, trace["colorbar"])


def _boxes(rows: np.ndarray, columns: np.ndarray, across: float, down: float) -> np.ndarray:
    """Corners (N, 4, 2) of cells, less gaps, in cells."""
    wide, high = (1 - across) / 2, (1 - down) / 2
    corners = np.array([[-wide, -high], [wide, -high], [wide, high], [-wide, high]])
    return np.stack([columns, rows], axis=-1)[:, None] + corners


def _numbers(canvas: Canvas, panel: Axes, trace: dict, shades: np.ndarray) -> None:
    """The text of each cell, written into it. shades (rows, columns, 4)."""
    for row, texts in enumerate(trace["text"] if trace.get("texttemplate") else ()):
        for column, text in enumerate(texts):
            if text:
                pale = np.dot(shades[row, column, :3], (0.299, 0.587, 0.114)) > 0.5
                size = trace.get("textfont", {}).get("size", _TEXT_SIZE) * canvas.px
                look = dict(ha="center", va="center", size=size, color="#444444" if pale else "#ffffff")
                panel.text(column, row, text, **look)


def _scale(canvas: Canvas, drawn, bar: dict) -> None:
    """The scale of colours under the plots."""
    whole, px = canvas.paper.get_position(), canvas.px / 72 / canvas.figure.get_figheight()
    thick = bar["thickness"] * px
    place = canvas.figure.add_axes((whole.x0, whole.y0 - bar["ypad"] * px - thick, whole.width, thick))
    scale = canvas.figure.colorbar(drawn, cax=place, orientation="horizontal")
    if scale.solids is not None:
        scale.solids.set(rasterized=False, edgecolor="face", linewidth=0.6 * canvas.px)
    scale.set_ticks(bar["tickvals"], labels=[plain(text) for text in bar["ticktext"]])
    size = bar["tickfont"]["size"] * canvas.px
    place.tick_params(length=2 * canvas.px, colors=canvas.style.colors.text, labelsize=size)
    scale.outline.set_visible(False)


def _bar(canvas: Canvas, panel: Axes, trace: dict):
    """Bars; None has none."""
    across = trace.get("orientation") == "h"
    values = _floats(trace["x" if across else "y"])
    places = trace.get("y" if across else "x")
    places = np.arange(len(values)) if places is None else np.asarray(places)
    marker, drawn = trace["marker"], np.isfinite(values)
    shades = np.broadcast_to(marker["color"], len(values))
    alphas = np.broadcast_to(marker.get("opacity", 1), len(values))
    draw: Callable = panel.barh if across else panel.bar
    bars = draw(places[drawn], values[drawn], trace["width"], color=shades[drawn], linewidth=0, zorder=1)
    for bar, alpha in zip(bars, alphas[drawn]):
        bar.set_alpha(alpha)
    for place, value, text in zip(places, values, trace.get("text") or ()):
        if text and np.isfinite(value):
            size = trace.get("textfont", {}).get("size", _TEXT_SIZE) * canvas.px
            look = dict(ha="center", va="bottom", size=size, color=canvas.style.colors.text, parse_math=False)
            panel.annotate(plain(text), (place, value), (0, canvas.px), textcoords="offset points", **look)
    return bars


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
        look = dict(ha="center", va="center", size=font["size"] * canvas.px, color=font["color"], parse_math=False)
        for place in zip(x, y, map(plain, trace["text"])):
            panel.text(*place, **look)
    return handle


def _line(canvas: Canvas, line: dict) -> dict:
    return dict(color=line["color"], linestyle=dash(line.get("dash")), linewidth=line.get("width", 2) * canvas.px)


def _marks(canvas: Canvas, marker: dict, line: dict) -> dict:
    """The look of marks; open ones have an edge alone."""
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


def _floats(values) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


_KINDS = {"heatmap": _heatmap, "bar": _bar, "scatter": _scatter}
