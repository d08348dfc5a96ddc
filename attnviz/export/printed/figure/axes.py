"""The axes of a figure: where its plots are, and their ticks, names and lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from attnviz.export.printed.figure.canvas import Canvas, color
from attnviz.export.printed.figure.texts import one_look, plain

_SIDES = {"x": ("bottom", "top"), "y": ("left", "right")}
_LEADING = 1.26  # height of a line of text, as a share of its size
_LEAST = 4  # points of the smallest type
_APART = {"x": 70, "y": 35}  # px between numbers on an axis, about


def add_panels(canvas: Canvas, data: Sequence[dict]) -> None:
    """A plot for each pair of axes that traces have."""
    whole = canvas.paper.get_position()
    for pair in dict.fromkeys((trace.get("xaxis") or "x", trace.get("yaxis") or "y") for trace in data):
        (left, right), (bottom, top) = (canvas.place(name) for name in pair)
        panel = canvas.figure.add_axes(
            (
                whole.x0 + left * whole.width,
                whole.y0 + bottom * whole.height,
                (right - left) * whole.width,
                (top - bottom) * whole.height,
            ),
            facecolor="none",
        )
        canvas.panels[pair] = panel
        for name in pair:
            axis = canvas.axis(name)
            if axis.get("type") == "log":
                getattr(panel, f"set_{name[0]}scale")("log")
            if axis.get("range"):
                getattr(panel, f"set_{name[0]}lim")(*axis["range"])


def finish(canvas: Canvas) -> None:
    """Ticks, names and lines, once the data are drawn."""
    for pair, panel in canvas.panels.items():
        panel.set_axisbelow(True)
        panel.spines[:].set_visible(False)
        for name, other in zip(pair, reversed(pair)):
            axis = canvas.axis(name)
            _end(panel, name[0], axis)
            if axis.get("visible", True) and _anchored(axis, other):
                _draw_axis(canvas, panel, name, axis)
            else:
                _axis(panel, name).set_visible(False)


def _anchored(axis: dict, other: str) -> bool:
    """Are the axis's ticks at the plot with this other axis?"""
    return (axis.get("anchor") or other[0]) == other or bool(axis.get("overlaying"))


def _axis(panel: Axes, name: str) -> Axis:
    return panel.xaxis if name[0] == "x" else panel.yaxis


def _end(panel: Axes, letter: str, axis: dict) -> None:
    """The limits of an axis that begins at 0, as far as its data go."""
    if axis.get("rangemode") == "tozero" and not axis.get("range"):
        getattr(panel, f"set_{letter}lim")(**{"left" if letter == "x" else "bottom": 0})


def _draw_axis(canvas: Canvas, panel: Axes, name: str, layout: dict) -> None:
    axis, colors, px = _axis(panel, name), canvas.style.colors, canvas.px
    side = layout.get("side") or _SIDES[name[0]][0]
    axis.set_ticks_position(side)
    axis.set_label_position(side)
    font = layout.get("tickfont", {})
    shade = color(layout.get("tickcolor") or colors.muted)
    drawn = shade != "none" and layout.get("ticks") == "outside"
    length = layout.get("ticklen", 3) * px
    axis.set_tick_params(
        length=length if drawn else 0,
        width=px,
        color=shade,
        pad=(layout.get("ticklabelstandoff", 0) * px) + (1 if drawn else 1 + length),
        labelcolor=font.get("color") or colors.text,
        labelsize=font.get("size", 12) * px,
    )
    if layout.get("showticklabels") is False:
        axis.set_ticks([])
    elif layout.get("ticktext") is not None:
        _label(canvas, panel, name, layout)
    else:
        _number(axis, layout, canvas.size(panel)[name[0] == "y"] / _APART[name[0]])
    _name(canvas, axis, name, layout)
    _lines(panel, axis, name, side, layout, canvas)


def _label(canvas: Canvas, panel: Axes, name: str, layout: dict) -> None:
    """Ticks with texts: smaller where they would meet, and at last only every second, third …"""
    axis, angle = _axis(panel, name), -(layout.get("tickangle") or 0)
    places, texts = list(layout["tickvals"]), [one_look(text) for text in layout["ticktext"]]
    size = layout.get("tickfont", {}).get("size", 12) * canvas.px
    if name[0] == "y" or angle:
        lean = math.sin(math.radians(angle)) if angle else 1
        room = canvas.size(panel)[name[0] == "y"] * canvas.px * lean  # points for all of them
        lines = max((text.count("\n") + 1 for text, _ in texts), default=1)
        every = max(1, math.ceil(_LEAST * _LEADING * lines * len(texts) / room))
        places, texts = places[::every], texts[::every]
        size = min(size, max(_LEAST, room / max(len(texts), 1) / lines / _LEADING))
    axis.set_ticks(places, [text for text, _ in texts], parse_math=False)
    above = layout.get("side") == "top"
    for label, (_, run) in zip(axis.get_ticklabels(), texts):
        label.set(size=size, **run.look)
        if angle:
            label.set(rotation=angle, ha="left" if above else "right", rotation_mode="anchor")
            label.set_va("center_baseline" if angle == 90 else ("bottom" if above else "top"))


def _number(axis: Axis, layout: dict, room: float) -> None:
    """Ticks at numbers, about as many as there is room for; round numbers, which a percentage writes in full."""
    if layout.get("tickvals") is not None:
        axis.set_ticks(list(layout["tickvals"]))
        axis.set_minor_locator(NullLocator())
    else:
        count = min(layout.get("nticks") or 10, max(int(room), 2))
        axis.set_major_locator(MaxNLocator(nbins=count, steps=[1, 2, 5, 10]))
    form = layout.get("tickformat", "g")
    axis.set_major_formatter(FuncFormatter(lambda value, _: format(round(value, 9) + 0, form).replace("-", "−")))


def _name(canvas: Canvas, axis: Axis, name: str, layout: dict) -> None:
    """The name of the axis: its title, or what the page names it in a saved picture."""
    title = layout.get("title") or {}
    text = title.get("text") or canvas.layout.get("meta", {}).get("axes", {}).get(name[0])
    if text:
        size = title.get("font", {}).get("size", 12) * canvas.px
        look = dict(size=size, color=canvas.style.colors.text, parse_math=False)
        axis.set_label_text(plain(text), **look)
        axis.labelpad = title.get("standoff", 4) * canvas.px


def _lines(panel: Axes, axis: Axis, name: str, side: str, layout: dict, canvas: Canvas) -> None:
    colors, px = canvas.style.colors, canvas.px
    if layout.get("showgrid", True):
        axis.grid(True, color=layout.get("gridcolor") or colors.grid, linewidth=px)
    if layout.get("zeroline") and layout.get("type") != "log":
        limits = sorted(axis.get_view_interval())
        if limits[0] <= 0 <= limits[1]:
            line = panel.axvline if name[0] == "x" else panel.axhline
            line(0, color=layout.get("zerolinecolor") or colors.muted, linewidth=px, zorder=0.8)
    if layout.get("showline"):
        panel.spines[side].set(visible=True, color=layout.get("linecolor") or colors.muted, linewidth=px)
