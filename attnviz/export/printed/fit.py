"""How large figures are drawn: the type, margins and height with which all of one fits into its room, and how figures
and the lines above them share a sheet, or several."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from attnviz.export.printed import axes, marks, traces
from attnviz.export.printed.canvas import PAD, Canvas, Margins
from attnviz.export.printed.sheet import POINT, Head, Style, fitted_head

_HEIGHT = 450  # px of a figure that does not say it
_LEAST_PLOT = 130, 110  # px: width and height of the smallest plot
_SMALLEST, _NEAR = 1.0, 1.15  # points of the smallest type; of the types between which the largest lies, how near
_TRIES = 4  # to find margins: labels that turn upright need more
_EDGE, _GAP = 0.012, 0.025  # shares of the width: around the sheet, between figures
_ROOM = 0.92  # share of the width that a line above may take: letters on a screen are up to a tenth wider
_HEAD = 0.35  # share of the height that the lines above may take
_PAGES = 8  # sheets of a PDF, at most


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
        fits = attempt > 0 and all(need <= had + 0.5 for need, had in zip(needed, margins))
        if fits:
            break
        margins = Margins(*map(max, needed, margins)) if attempt else needed
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


@dataclass(frozen=True)
class Page:
    """The contents of a sheet. figures : data and layout of each."""

    style: Style
    lines: tuple[str, ...]
    names: tuple[str, ...]
    figures: tuple[tuple[list[dict], dict], ...]

    @property
    def across(self) -> int:
        """Figures beside each other, about as many in each row: on a slide four at most, for rows would be low."""
        count, most = len(self.figures), 1 if self.style.is_narrow else 4 if self.style.fixed else 3
        return math.ceil(count / math.ceil(count / most))

    @property
    def width(self) -> float:
        """Points of a figure."""
        return self.style.width * (1 - 2 * _EDGE - _GAP * (self.across - 1)) / self.across

    def head(self, lines: Sequence[str]) -> Head:
        style = self.style
        room = style.width * _ROOM
        return fitted_head(lines, style.points, style.least, room, _HEAD * style.height)

    def captions(self, size: float) -> list[Head]:
        """The name of each figure. size : points."""
        style = self.style
        sizes = size, style.least, self.width, 0.12 * style.height
        return [fitted_head([name], *sizes) for name in self.names]

    def parts(self, above: Head, captions: list[Head]) -> list[Part]:
        """Each figure with the room available to it."""
        style, down = self.style, math.ceil(len(self.figures) / self.across)
        named = max((name.height for name in captions), default=0)
        room = (style.height * (1 - 2 * _EDGE) - above.height) / down - named
        return [Part(data, layout, style, self.width, room, fixed=style.fixed) for data, layout in self.figures]

    @functools.cached_property
    def whole(self) -> tuple[Figure, list[Fit], list[str]]:
        """All figures on one sheet in one type size, how they fit, and what did not fit."""
        above = self.head(self.lines)
        captions = self.captions(above.size)
        parts, fits, least = self.parts(above, captions), [], self.style.points
        for part in parts:  # none is tried in a larger type than those before it have
            fits.append(fitted(part, least))
            least = 12 * fits[-1].px
        fits = [fit if 12 * fit.px <= least else fitted(part, least) for part, fit in zip(parts, fits)]
        return self._drawn(above, captions, parts, fits), fits, unfitted(self.style, above, fits)

    @functools.cached_property
    def cuts(self) -> list[tuple[int, int]]:
        """First and last (exclusive) row on each sheet, if one sheet cannot name all rows of a map; [] for any other
        figure."""
        if len(self.figures) > 1:
            return []
        [part], [fit] = self.parts(self.head(self.lines), []), self.whole[1]
        if fit.every.get("y", 1) == 1 or fit.every.get("x", 1) > 1:
            return []
        count = part.map_rows
        more = self.numbered(0, count, count).height - self.head(self.lines).height
        room = fit.height - (fit.margins.top + fit.margins.bottom) * fit.px - more
        number = math.ceil(count / max(int(room / axes.line(self.style)), 1))
        rows_each = math.ceil(count / number)
        return (
            [(first, min(first + rows_each, count)) for first in range(0, count, rows_each)] if number <= _PAGES else []
        )

    @functools.cached_property
    def groups(self) -> list[Page]:
        """The figures on the fewest sheets on which all names are drawn, on slides a row at most each. Where there are
        none: a row each. [] where one sheet is enough."""
        total, rows = len(self.figures), math.ceil(len(self.figures) / self.across)
        if not self.is_small and (rows == 1 or not self.style.fixed):
            return []
        least = math.ceil(rows / _PAGES)
        counts = [number * self.across for number in range(math.ceil(rows / 2), least - 1, -1) if rows > 1]
        if self.style.fixed:
            shares = [math.ceil(total / sheets) for sheets in range(max(rows, 2), min(total, _PAGES) + 1)]
            counts = list(dict.fromkeys(shares)) or counts[-1:]
        tried: list[list[Page]] = []
        for count in counts:
            tried.append([self._some(first, first + count) for first in range(0, total, count)])
            if sum(len(group.cuts) or 1 for group in tried[-1]) <= _PAGES and all(
                group.cuts or not group.is_small for group in tried[-1]
            ):
                return tried[-1]
        return (tried[0] if self.style.fixed else tried[-1]) if tried else []

    def _some(self, first: int, last: int) -> Page:
        return replace(self, names=self.names[first:last], figures=self.figures[first:last])

    @functools.cached_property
    def is_small(self) -> bool:
        """Is a name left out, or the type smaller than the smallest of the sheet?"""
        fits = self.whole[1]
        left_out = any(every > 1 for fit in fits for every in fit.every.values())
        return left_out or 12 * min(fit.px for fit in fits) < 0.97 * self.style.least

    @property
    def sheets(self) -> tuple[Figure, ...]:
        """Those of a PDF."""
        return tuple(sheet for group in self.groups or [self] for sheet in group._by_rows())

    def _by_rows(self) -> tuple[Figure, ...]:
        """One sheet, or several, each with some rows of the map."""
        figure, fits, _ = self.whole
        pages = []
        for first, last in self.cuts:
            above = self.numbered(first, last, self.cuts[-1][1])
            [part] = self.parts(above, self.captions(above.size))
            sliced = replace(part, rows=(first, last))
            pages.append(self._drawn(above, self.captions(above.size), [sliced], [fitted(sliced, 12 * fits[0].px)]))
        return tuple(pages) or (figure,)

    def numbered(self, first: int, last: int, count: int) -> Head:
        """The lines above some rows of a map."""
        return self.head([*self.lines, f"Rows {first + 1} to {last} of {count}"])

    def _drawn(self, above: Head, captions: list[Head], parts: list[Part], fits: list[Fit]) -> Figure:
        style, across = self.style, self.across
        edge, named = _EDGE * style.width, max((name.height for name in captions), default=0)
        tall = [max(fit.height for fit in fits[i : i + across]) + named for i in range(0, len(fits), across)]
        height = style.height if style.fixed else above.height + sum(tall) + 2 * edge
        size = style.width / POINT, min(height, style.height) / POINT
        figure = Figure(figsize=size, facecolor=style.colors.page)
        above.draw(figure, edge, 0.5 * edge, style.colors.text)
        top = height - above.height - edge
        for place, (part, fit) in enumerate(zip(parts, fits)):
            row, column = divmod(place, across)
            left = edge + column * (self.width + _GAP * style.width)
            under = top - sum(tall[:row])
            if captions:
                captions[place].draw(figure, left, height - under, style.colors.text)
            part.drawn(figure, left, under - named - fit.height, fit)
        return figure
