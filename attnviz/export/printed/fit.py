"""How large a figure is drawn: the type, margins and height with which all of it fits into its room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from attnviz.export.printed import axes, marks, traces
from attnviz.export.printed.canvas import PAD, Canvas, Margins
from attnviz.export.printed.sheet import POINT, Head, Style

_HEIGHT = 450  # px of a figure that does not say it
_LEAST_PLOT = 130, 110  # px: width and height of the smallest plot
_SMALLEST, _NEAR = 1.0, 1.15  # points of the smallest type; of the types between which the largest lies, how near
_TRIES = 4  # to find margins: labels that turn upright need more


@dataclass(frozen=True)
class Fit:
    """How a figure is drawn. px : points in a px of its layout. height : points. every : by axis, 3 if every third name
    is drawn."""

    px: float
    margins: Margins
    height: float
    every: dict[str, int]
    fits: bool


@dataclass(frozen=True)
class Part:
    """A figure, and the room on a sheet that it may take, in points. rows : of a map, first and last (exclusive) that
    are drawn. fixed : it takes all of its room."""

    data: Sequence[dict]
    layout: dict
    style: Style
    width: float
    room: float
    rows: tuple[int, int] | None = None
    fixed: bool = False

    def plot(self, px: float) -> float:
        """The height (px) between the figure's own margins; for a map, enough for names at its rows."""
        own = self.own
        high = max(self.layout.get("height", _HEIGHT) - own.top - own.bottom, 1)
        return max(high, self.map_rows * axes.line(self.style) / px)

    @property
    def own(self) -> Margins:
        margins = self.layout.get("margin", {})
        return Margins(*(margins.get(side, 0) for side in "lrtb"))

    @property
    def map_rows(self) -> int:
        """Rows of a map with named rows and columns; 0 of any other figure."""
        named = all(self.layout.get(f"{letter}axis", {}).get("ticktext") is not None for letter in "xy")
        tokens = self.layout.get("meta", {}).get("labels", False)
        return len(self.data[0]["z"]) if named and tokens and self.data[0]["type"] == "heatmap" else 0

    def drawn(self, figure: Figure, left: float, bottom: float, fit: Fit, sizing: bool = False) -> Canvas:
        """The figure in a box of this width. left, bottom : points."""
        box = left, bottom, self.width, fit.height
        canvas = Canvas(figure, self.layout, self.style, fit.margins, box, fit.px, self.rows, sizing)
        _draw(canvas, self.data)
        return canvas


def fitted(part: Part, most: float) -> Fit:
    """The largest type, at most `most` points, with which the part fits. Call it with the settings of the
    sheet."""
    fit, low, high = _tried(part, most / 12), _SMALLEST, most
    if fit.fits:
        return fit
    largest = None
    while high > _NEAR * low:
        middle = math.sqrt(low * high)
        fit = _tried(part, middle / 12)
        low, high, largest = (middle, high, fit) if fit.fits else (low, middle, largest)
    return largest or _tried(part, low / 12)


def _tried(part: Part, px: float) -> Fit:
    """The margins that the figure needs in this type, measured repeatedly until they no longer change."""
    nothing = Margins(0, 0, 0, 0)
    if not _plots(part, nothing, px) and 12 * px > _SMALLEST:
        return Fit(px, nothing, part.room, {}, False)
    margins, every, fits = part.own if _plots(part, part.own, px) else nothing, {}, False
    for attempt in range(_TRIES):
        trial = Fit(px, margins, _height(part, margins, px), {}, True)
        canvas = part.drawn(Figure((part.width / POINT, trial.height / POINT)), 0, 0, trial, sizing=True)
        needed, every = _needed(canvas), canvas.every
        fits = attempt > 0 and all(need <= had + 0.5 for need, had in zip(needed.sides, margins.sides))
        if fits:
            break
        margins = Margins(*map(max, needed.sides, margins.sides)) if attempt else needed
        if not _plots(part, margins, px):
            break
    return Fit(px, margins, _height(part, margins, px), every, fits)


def _height(part: Part, margins: Margins, px: float) -> float:
    """Points of the figure."""
    return part.room if part.fixed else min(part.room, (part.plot(px) + margins.top + margins.bottom) * px)


def _plots(part: Part, margins: Margins, px: float) -> bool:
    """Is each plot large enough?"""
    domains = [
        {tuple(axis.get("domain") or (0, 1)) for name, axis in part.layout.items() if name.startswith(f"{letter}axis")}
        for letter in "xy"
    ]
    across, down = (max(len(places), 1) for places in domains)
    wide = part.width / px - margins.left - margins.right
    high = _height(part, margins, px) / px - margins.top - margins.bottom
    return wide >= _LEAST_PLOT[0] * across and high >= min(_LEAST_PLOT[1] * down, 0.99 * part.plot(px))


def _needed(canvas: Canvas) -> Margins:
    """Px that a drawn figure takes on each side of its plots."""
    boxes = [box for part in canvas.parts if (box := part.get_tightbbox()) is not None]
    around, plots = Bbox.union(boxes), canvas.paper.bbox
    px = canvas.figure.dpi / POINT * canvas.px
    sides = plots.x0 - around.x0, around.x1 - plots.x1, around.y1 - plots.y1, plots.y0 - around.y0
    return Margins(*(max(side / px, 0) + PAD for side in sides))


def _draw(canvas: Canvas, data: Sequence[dict]) -> None:
    if any(trace["type"] == "table" for trace in data):
        traces.add_table(canvas, data[0])
        return
    axes.add_panels(canvas, data)
    for trace in data:
        traces.add_trace(canvas, trace)
    marks.add_images(canvas)
    axes.finish(canvas)
    marks.add_shapes(canvas)
    marks.add_notes(canvas)
    axes.add_legend(canvas, data)


def unfitted(style: Style, above: Head, fits: list[Fit]) -> list[str]:
    """Sentences on what did not fit."""
    notes, points = [], 12 * min(fit.px for fit in fits)
    if not above.whole:
        notes.append("The lines above are cut; the description of the file has them whole.")
    if points < 0.97 * style.points:
        notes.append(f"The type has {points:.1f} points instead of {style.points:g}, so that all fits.")
    for name, axis in (("row", "y"), ("column", "x")):
        every = max(fit.every.get(axis, 1) for fit in fits)
        if every > 1:
            notes.append(f"One {name} in {every} is named.")
    return notes
