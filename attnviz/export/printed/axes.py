"""The surroundings of a figure's data: axes with ticks, names and lines, the legend above and the colour scale under
the plots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from attnviz.export.printed import letters
from attnviz.export.printed.canvas import Canvas, color
from attnviz.export.printed.letters import Run, one_look, plain
from attnviz.export.printed.sheet import POINT, Style

_SIDES = {"x": ("bottom", "top"), "y": ("left", "right")}
LEAST = 4  # points of the smallest type of all
_LEADING = 1.26  # height of a line of text, as a share of its size
_TOKENS = 12  # px of the type of tokens, where there is room
_SLANTED = 50  # degrees
_NAME_SHARES = 0.4, 0.3  # of a name at an axis: shares of the width and of the height of its picture
_BESIDE = 0.6  # between names in a row, in sizes of the type
_LEGEND_SIZE, _LEGEND_GAP = 12, 4  # px of the type of a legend; between the legend and what is below it
_BETWEEN = 0.6  # between two names of the scale, in sizes of the type
_HANDLE = 3  # length of a line beside its name, in sizes of the type
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
            if canvas.rows and name == "y":
                panel.set_ylim(canvas.rows[1] - 0.5, canvas.rows[0] - 0.5)


def finish(canvas: Canvas) -> None:
    """Ticks, names and lines, once the data are drawn."""
    for pair, panel in canvas.panels.items():
        panel.set_axisbelow(True)
        panel.spines[:].set_visible(False)
        for name, other in zip(pair, reversed(pair)):
            axis = canvas.axis(name)
            if axis.get("rangemode") == "tozero" and not axis.get("range"):
                getattr(panel, f"set_{name[0]}lim")(0, None)
            at_this_plot = (axis.get("anchor") or other[0]) == other or axis.get("overlaying")
            if axis.get("visible", True) and at_this_plot:
                _draw_axis(canvas, panel, name, axis)
            else:
                _axis(panel, name).set_visible(False)


def _axis(panel: Axes, name: str) -> Axis:
    return panel.xaxis if name[0] == "x" else panel.yaxis


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


@dataclass(frozen=True)
class Names:
    """The layout of names at an axis of this length. size, length : points. every : 3 if every third name is drawn.
    angle : degrees."""

    size: float
    every: int
    angle: float
    length: float


def spread(canvas: Canvas, name: str, layout: dict, texts: Sequence[str], length: float) -> Names:
    """The type in which names do not overlap on `length` points: smaller, and finally only every second, third … name.

    Names of a map's keys are slanted if that is enough, else upright.
    """
    tokens = name == "x" and canvas.layout.get("meta", {}).get("labels", False)
    size = (_TOKENS if tokens else layout.get("tickfont", {}).get("size", 12)) * canvas.px
    least = min(canvas.style.least if tokens or name == "y" else LEAST, size)
    lines = max((text.count("\n") + 1 for text in texts), default=1)
    room_each = length / max(len(texts), 1)
    angle = -(layout.get("tickangle") or 0)
    if tokens:
        angle = _SLANTED if room_each * math.sin(math.radians(_SLANTED)) >= _LEADING * size * lines else 90
    if name[0] == "x" and not angle:
        taken = letters.widest((line for text in texts for line in text.split("\n")), 1) + _BESIDE
    else:
        taken = _LEADING * lines / (math.sin(math.radians(angle)) if angle else 1)  # of the axis, in sizes of the type
    every = max(1, math.ceil(least * taken / room_each - 1e-6))
    return Names(min(size, max(least, every * room_each / taken)), every, angle, length)


def line(style: Style) -> float:
    """Points of the lowest row that has a name."""
    return _LEADING * style.least


def named(canvas: Canvas, name: str, layout: dict) -> tuple[list[Any], list[str], list[Run]]:
    """Places, texts and styles of the names at an axis; for tokens all names, even if the layout left some out."""
    places, texts = list(layout["tickvals"]), list(layout["ticktext"])
    if full := canvas.layout.get("meta", {}).get("ticks", {}).get(name):
        bold = {place for place, text in zip(places, texts) if text.startswith("<b>")}
        places = list(range(len(full)))
        texts = [f"<b>{text}</b>" if place in bold else text for place, text in enumerate(full)]
    if name == "y":
        shown = [place for place, at in enumerate(places) if canvas.seen(at)]
        places, texts = [places[i] for i in shown], [texts[i] for i in shown]
    read = [one_look(text) for text in texts]
    return places, [text for text, _ in read], [run for _, run in read]


def _label(canvas: Canvas, panel: Axes, name: str, layout: dict) -> None:
    """Ticks with texts."""
    axis, length = _axis(panel, name), canvas.size(panel)[name[0] == "y"] * canvas.px
    places, texts, runs = named(canvas, name, layout)
    how = spread(canvas, name, layout, texts, length)
    canvas.every[name] = how.every
    places, texts, runs = places[:: how.every], texts[:: how.every], runs[:: how.every]
    rise = math.sin(math.radians(how.angle))
    most = _NAME_SHARES[1] * canvas.box[3] / rise if rise else _NAME_SHARES[0] * canvas.box[2]
    if name[0] == "x" and not rise:
        most = length
    size = _shrunk(canvas, name, how.size, texts, runs, most)
    texts = [letters.cut(text, most, size, **run.look) for text, run in zip(texts, runs)]
    if canvas.sizing:
        chosen = _outermost(axis, places, texts, runs, replace(how, size=size))
        places, texts, runs = [places[i] for i in chosen], [texts[i] for i in chosen], [runs[i] for i in chosen]
    axis.set_ticks(places, texts, parse_math=False)
    above = layout.get("side") == "top"
    for label, run in zip(axis.get_ticklabels(), runs):
        label.set(size=size, **run.look)
        if how.angle:
            label.set(rotation=how.angle, ha="left" if above else "right", rotation_mode="anchor")
            label.set_va("center_baseline" if how.angle == 90 else ("bottom" if above else "top"))


def _outermost(axis: Axis, places: Sequence[Any], texts: Sequence[str], runs: Sequence[Run], how: Names) -> list[int]:
    """Which names reach furthest: no other can change how much room all of them need. To measure the room, only these
    are drawn, because ticks take matplotlib longest. how : with its size, the length of the axis."""
    first, last = axis.get_view_interval()
    boxes = [[letters.extent(line, **run.look) for line in text.split("\n")] for text, run in zip(texts, runs)]
    wide = [max(width for width, _ in lines) for lines in boxes]
    high = [sum(max(height, 1) for _, height in lines) for lines in boxes]
    along = [(place - first) / ((last - first) or 1) * how.length / how.size for place in places]
    share = abs(math.cos(math.radians(how.angle))) if axis.axis_name == "x" else 0
    before, after = ([place + side * share * width for place, width in zip(along, wide)] for side in (-1, 1))
    furthest = [(max, along), (min, along), (max, wide), (max, high), (min, before), (max, after)]
    return sorted({most(range(len(places)), key=reach.__getitem__) for most, reach in furthest}) if places else []


def _shrunk(canvas: Canvas, name: str, size: float, texts: Sequence[str], runs: Sequence[Run], most: float) -> float:
    """The type size (points) in which the longest row name of a chart fits, at least the smallest type. Names of tokens
    are cut instead, so that one long token does not shrink the others."""
    if name[0] == "x" or canvas.layout.get("meta", {}).get("labels", False):
        return size
    wide = max((letters.widest(text.split("\n"), 1, **run.look) for text, run in zip(texts, runs)), default=0)
    return min(size, max(most / max(wide, 0.1), min(canvas.style.least, size)))


def _number(axis: Axis, layout: dict, room: float) -> None:
    """Ticks at round numbers, about as many as there is room for; percentages are written in full."""
    if layout.get("tickvals") is not None:
        axis.set_ticks(list(layout["tickvals"]))
        axis.set_minor_locator(NullLocator())
    else:
        count = min(layout.get("nticks") or 10, max(int(room), 2))
        axis.set_major_locator(MaxNLocator(nbins=count, steps=[1, 2, 5, 10]))
    form = layout.get("tickformat", "g")
    axis.set_major_formatter(FuncFormatter(lambda value, _: format(round(value, 9) + 0, form).replace("-", "−")))


def _name(canvas: Canvas, axis: Axis, name: str, layout: dict) -> None:
    """The name of the axis: its title, or its name in a saved picture of the page."""
    title = layout.get("title") or {}
    text = title.get("text") or canvas.layout.get("meta", {}).get("axes", {}).get(name[0])
    if text:
        text, size = plain(text), title.get("font", {}).get("size", 12) * canvas.px
        room = canvas.size(axis.axes)[name[0] == "y"] * canvas.px
        size = max(min(size, room / max(letters.widest(text.split("\n"), 1), 0.1)), min(LEAST, size))
        look = dict(size=size, color=canvas.style.colors.text, parse_math=False)
        axis.set_label_text(letters.cut(text, room, size), **look)
        axis.labelpad = title.get("standoff", 4) * canvas.px


def _lines(panel: Axes, axis: Axis, name: str, side: str, layout: dict, canvas: Canvas) -> None:
    colors, px = canvas.style.colors, canvas.px
    if layout.get("showgrid", True) and not canvas.sizing:
        axis.grid(True, color=layout.get("gridcolor") or colors.grid, linewidth=px)
    if layout.get("zeroline") and layout.get("type") != "log":
        limits = sorted(axis.get_view_interval())
        if limits[0] <= 0 <= limits[1]:
            line = panel.axvline if name[0] == "x" else panel.axhline
            line(0, color=layout.get("zerolinecolor") or colors.muted, linewidth=px, zorder=0.8)
    if layout.get("showline"):
        panel.spines[side].set(visible=True, color=layout.get("linecolor") or colors.muted, linewidth=px)


def add_legend(canvas: Canvas, data: Sequence[dict]) -> None:
    """Draw the legend, with as many names per row as the sheet has room for."""
    if not canvas.layout.get("showlegend") or not canvas.names:
        return
    boxes = [part.get_tightbbox() for part in canvas.parts]
    top = Bbox.union([box for box in boxes if box is not None]).y1
    size = canvas.layout.get("legend", {}).get("font", {}).get("size", _LEGEND_SIZE) * canvas.px
    dot = canvas.figure.dpi / POINT
    end = (canvas.box[0] + canvas.box[2]) * dot
    room = (end - canvas.paper.bbox.x0) / dot - (_HANDLE + 1.5) * size
    names = [(handle, letters.cut(name, room, size)) for handle, name in canvas.names]
    _, y = canvas.paper.transAxes.inverted().transform((0, top))
    gap = _LEGEND_GAP / canvas.size(canvas.paper)[1]
    for count in range(len(names), 0, -1):
        ordered = [name for column in range(count) for name in names[column::count]]  # it fills columns first
        legend = canvas.paper.legend(
            *zip(*ordered),
            loc="lower left",
            bbox_to_anchor=(0, y + gap),
            ncols=count,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=_HANDLE,
            columnspacing=1.2,
            fontsize=size,
            labelcolor=canvas.style.colors.text,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        if legend.get_window_extent().x1 <= end:
            break


def add_scale(canvas: Canvas, cells: ScalarMappable, bar: dict) -> None:
    """cells : the colours and the values at their ends. bar : Plotly's, with places and names of its ticks."""
    whole, px = canvas.paper.get_position(), canvas.px / 72 / canvas.figure.get_figheight()
    thick = bar["thickness"] * px
    place = canvas.figure.add_axes((whole.x0, whole.y0 - bar["ypad"] * px - thick, whole.width, thick))
    place.set_label("<colorbar>")  # as matplotlib names its own
    canvas.scales.append(place)
    scale = canvas.figure.colorbar(cells, cax=place, orientation="horizontal")
    if scale.solids is not None:
        scale.solids.set(rasterized=False, edgecolor="face", linewidth=0.6 * canvas.px)
    room = canvas.size(canvas.paper)[0] * canvas.px
    low, high = cells.norm.vmin, cells.norm.vmax
    centres = [(value - low) / (high - low) * room for value in bar["tickvals"]]
    texts, size = _apart([plain(text) for text in bar["ticktext"]], centres, bar["tickfont"]["size"] * canvas.px)
    scale.set_ticks(bar["tickvals"], labels=texts, parse_math=False)
    place.tick_params(length=2 * canvas.px, colors=canvas.style.colors.text, labelsize=size)
    if named := canvas.layout.get("meta", {}).get("axes", {}).get("colour"):
        look = dict(size=min(size, room / letters.width(named, 1)), color=canvas.style.colors.muted, parse_math=False)
        scale.set_label(named, **look)
        place.xaxis.labelpad = 2 * canvas.px
    scale.outline.set_visible(False)


def _apart(texts: Sequence[str], centres: Sequence[float], size: float) -> tuple[list[str], float]:
    """Names that do not overlap, and their size in points: first smaller, then the longest are cut."""
    gaps = [after - before for before, after in itertools.pairwise(centres)]

    def meet(texts: Sequence[str], size: float) -> bool:
        wide = [letters.width(text, size) / 2 for text in texts]
        return any(a + b + _BETWEEN * size > gap for a, b, gap in zip(wide, wide[1:], gaps))

    texts = list(texts)
    while meet(texts, size) and size > LEAST:
        size = max(LEAST, 0.9 * size)
    while meet(texts, size) and max(map(len, texts)) > 2:
        longest = max(range(len(texts)), key=lambda place: letters.width(texts[place], 1))
        texts[longest] = letters.cut(texts[longest], 0.85 * letters.width(texts[longest], size), size)
    return texts, size
