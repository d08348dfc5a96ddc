"""Where the parts of a figure are drawn: its plots on the sheet, and Plotly's coordinates converted to matplotlib's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation, Transform, blended_transform_factory

from attnviz.export.printed.sheet import POINT, Style
from attnviz.figures.theme import CLEAR

PAD = 3  # px between the figure and the edge of the sheet
DASHES = {
    "solid": "-",
    "dot": ":",
    "dash": (0, (5, 2)),
    "dashdot": (0, (5, 2, 1, 2)),
    "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 3, 1, 3)),
}


class Margins(NamedTuple):
    """Px around the plots."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass
class Canvas:
    """A figure of matplotlib, and the layout of Plotly's that is drawn in a box of it.

    box : left, bottom, width and height in points. px : points in a px of the layout. rows : first and last (exclusive)
        row of a map that is drawn in part. sizing : draw only the surroundings of the data, to measure them.
    paper : the rectangle of all plots, without axes of its own. panels : by the names of their axes, (x, y), as traces
        name them. names : of traces, with their legend symbols. every : by axis, 3 if every third name is drawn. scales
            : the axes of scales of colours.
    """

    figure: Figure
    layout: dict
    style: Style
    margins: Margins
    box: tuple[float, float, float, float]
    px: float
    rows: tuple[int, int] | None = None
    sizing: bool = False
    paper: Axes = field(init=False)
    panels: dict[tuple[str, str], Axes] = field(default_factory=dict)
    names: list[tuple[object, str]] = field(default_factory=list)
    every: dict[str, int] = field(default_factory=dict)
    scales: list[Axes] = field(default_factory=list)

    def __post_init__(self) -> None:
        left, bottom, width, height = self.box
        wide, high = (side * POINT for side in self.figure.get_size_inches())
        margins, px = self.margins, self.px
        across, up = width - (margins.left + margins.right) * px, height - (margins.top + margins.bottom) * px
        place = (left + margins.left * px) / wide, (bottom + margins.bottom * px) / high
        self.paper = self.figure.add_axes((*place, max(across, 1) / wide, max(up, 1) / high))
        self.paper.set_axis_off()

    @property
    def parts(self) -> list[Axes]:
        """The axes that this canvas has made."""
        return [self.paper, *self.panels.values(), *self.scales]

    def seen(self, row: float) -> bool:
        """Is this row of a map drawn?"""
        return self.rows is None or self.rows[0] <= row < self.rows[1]

    def axis(self, name: str) -> dict:
        """The layout of the axis `x`, `y2` …"""
        return self.layout.get(f"{name[0]}axis{name[1:]}", {})

    def place(self, name: str) -> tuple[float, float]:
        """Where an axis begins and ends, as shares of the paper."""
        axis = self.axis(name)
        begin, end = axis.get("domain") or self.axis(axis.get("overlaying") or name).get("domain") or (0, 1)
        return begin, end

    def size(self, panel: Axes) -> tuple[float, float]:
        """Width and height of a plot, in px."""
        box = panel.bbox
        width, height = (side / self.figure.dpi * POINT / self.px for side in (box.width, box.height))
        return width, height

    def panel(self, x: str, y: str) -> Axes:
        """The plot with these axes; `paper` and domains name none."""
        names = [name.removesuffix(" domain") for name in (x, y)]
        for pair, panel in self.panels.items():
            if all(name in (own, "paper") for name, own in zip(names, pair)):
                return panel
        return next((panel for pair, panel in self.panels.items() if set(pair) & set(names)), self.paper)

    def transform(self, x: str, y: str, shift: tuple[float, float] = (0, 0)) -> Transform:
        """The transform from coordinates in Plotly's `xref` and `yref`; shift in px, to the right and up."""
        across, up = (self._along(name, self.panel(x, y)) for name in (x, y))
        inches = [self.px * part / POINT for part in shift]
        return blended_transform_factory(across, up) + ScaledTranslation(*inches, self.figure.dpi_scale_trans)

    def _along(self, name: str, panel: Axes) -> Transform:
        if name == "paper":
            return self.paper.transAxes
        return panel.transAxes if name.endswith(" domain") else panel.transData


def color(name: str | None) -> str:
    """A Plotly colour as a matplotlib colour."""
    return "none" if name in (None, CLEAR) else name


def dash(name: str | None) -> object:
    """A Plotly dash (`dash`, `5px,2px`) as a matplotlib line style, for lines of 2 px."""
    if name is None or name in DASHES:
        return DASHES[name or "solid"]
    return 0, tuple(float(part.removesuffix("px")) / 2 for part in name.split(","))
