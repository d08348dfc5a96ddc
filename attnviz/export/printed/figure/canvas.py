"""Where the parts of a figure are drawn: its plots on the sheet, and Plotly's words for places in matplotlib's."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Margins:
    """Px around the plots."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass
class Canvas:
    """A figure of matplotlib, and the layout of Plotly's that is drawn on it.

    paper : the rectangle of all plots, without axes of its own. panels : by the names of their axes, (x, y), as traces
    name them. names : of traces and what shows each in a legend.
    """

    figure: Figure
    layout: dict
    style: Style
    margins: Margins
    paper: Axes = field(init=False)
    panels: dict[tuple[str, str], Axes] = field(default_factory=dict)
    names: list[tuple[object, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        x, y, width, height = self.figure.get_layout_engine().get()["rect"]
        self.figure.set_layout_engine("none")  # places are Plotly's
        px = self.px / POINT
        left, right = (side * px / self.figure.get_figwidth() for side in (self.margins.left, self.margins.right))
        top, bottom = (side * px / self.figure.get_figheight() for side in (self.margins.top, self.margins.bottom))
        self.paper = self.figure.add_axes((x + left, y + bottom, width - left - right, height - top - bottom))
        self.paper.set_axis_off()

    @property
    def px(self) -> float:
        """Points in a px of the layout."""
        return self.style.points / 12

    def axis(self, name: str) -> dict:
        """The layout of the axis `x`, `y2` …"""
        return self.layout.get(f"{name[0]}axis{name[1:]}", {})

    def place(self, name: str) -> tuple[float, float]:
        """Where an axis begins and ends, as shares of the paper."""
        axis = self.axis(name)
        return tuple(axis.get("domain") or self.axis(axis.get("overlaying") or name).get("domain") or (0, 1))

    def size(self, panel: Axes) -> tuple[float, float]:
        """Width and height of a plot, in px."""
        box = panel.bbox
        return tuple(side / self.figure.dpi * POINT / self.px for side in (box.width, box.height))

    def panel(self, x: str, y: str) -> Axes:
        """The plot with these axes; `paper` and domains name none."""
        names = [name.removesuffix(" domain") for name in (x, y)]
        for pair, panel in self.panels.items():
            if all(name in (own, "paper") for name, own in zip(names, pair)):
                return panel
        return next((panel for pair, panel in self.panels.items() if set(pair) & set(names)), self.paper)

    def transform(self, x: str, y: str, shift: tuple[float, float] = (0, 0)) -> Transform:
        """Of places in Plotly's `xref` and `yref`; shift in px, to the right and up."""
        across, up = (self._along(name, self.panel(x, y)) for name in (x, y))
        inches = [self.px * part / POINT for part in shift]
        return blended_transform_factory(across, up) + ScaledTranslation(*inches, self.figure.dpi_scale_trans)

    def _along(self, name: str, panel: Axes) -> Transform:
        if name == "paper":
            return self.paper.transAxes
        return panel.transAxes if name.endswith(" domain") else panel.transData


def color(name: str | None) -> str:
    """A colour of Plotly's in matplotlib's words."""
    return "none" if name in (None, CLEAR) else name


def dash(name: str | None) -> object:
    """A dash of Plotly's (`dash`, `5px,2px`) in matplotlib's words, for lines of 2 px."""
    if name is None or name in DASHES:
        return DASHES[name or "solid"]
    return 0, tuple(float(part.removesuffix("px")) / 2 for part in name.split(","))
