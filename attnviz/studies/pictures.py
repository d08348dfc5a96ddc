"""Panels of points and lines -> one SVG picture on white, drawn by matplotlib (the extra `studies` of this project).

Every mechanism has its colour from the page (Okabe-Ito, see figures/theme.py), and its own dash and marker, so that the
picture can be read in grey and with every kind of colour blindness.
"""

import importlib.util
import io
from dataclasses import dataclass

from attnviz.figures.theme import LIGHT, Line, lines

INSTALL = (
    "no picture was drawn because matplotlib is missing; install it (pip install -e '.[studies]') and run the study "
    "again"
)
_DASHES = {
    "solid": "-",
    "dash": (0, (5, 2)),
    "dashdot": (0, (6, 2, 1, 2)),
    "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 2, 2, 2)),
}
_MARKERS = {
    "circle": "o",
    "diamond": "D",
    "square": "s",
    "triangle-up": "^",
    "x": "X",
    "star": "*",
    "cross": "P",
    "hexagon": "h",
}
_STYLE = {
    "svg.hashsalt": "attnviz",
    "svg.fonttype": "none",
    "font.size": 10,
    "text.color": LIGHT.text,
    "axes.edgecolor": LIGHT.muted,
    "axes.labelcolor": LIGHT.text,
    "xtick.color": LIGHT.muted,
    "ytick.color": LIGHT.muted,
    "xtick.labelcolor": LIGHT.text,
    "ytick.labelcolor": LIGHT.text,
    "axes.axisbelow": True,
}
_PANEL = (3.9, 3.2)  # inches
_NAME = (2.5, 0.25)  # inches, of a name in the legend


@dataclass(frozen=True)
class Series:
    """Points of one name. low, high : ends of the bar at each point. marks, line : draw the points, draw lines between
    them."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    marks: bool = True
    line: bool = True


@dataclass(frozen=True)
class Panel:
    """Series on two axes. rows : names on the vertical axis, the first at the top; bars are then horizontal.

    ticks : labelled values of the horizontal axis. reference : name and points of a dotted line.
    """

    title: str
    series: tuple[Series, ...]
    x: str = ""
    y: str = ""
    rows: tuple[str, ...] = ()
    ticks: tuple[float, ...] = ()
    log: bool = False
    reference: tuple[str, tuple[float, ...], tuple[float, ...]] | None = None


def available() -> bool:
    """Is matplotlib installed?"""
    return importlib.util.find_spec("matplotlib") is not None


def draw(panels: list[Panel], columns: int, description: str) -> bytes:
    """The picture, with one legend for all panels; the same panels give the same bytes. SVG in UTF-8."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    styles = lines(series.name for panel in panels for series in panel.series)
    references = dict.fromkeys(panel.reference[0] for panel in panels if panel.reference)
    beside = max(1, int(columns * _PANEL[0] / _NAME[0]))
    above = _NAME[1] * -(-(len(styles) + len(references)) // beside)
    count = -(-len(panels) // columns)
    with rc_context(_STYLE):
        figure = Figure((_PANEL[0] * columns, _PANEL[1] * count + above), layout="constrained", facecolor=LIGHT.page)
        axes = list(figure.subplots(count, columns, squeeze=False).flat)
        drawn: dict = {}
        for place, (axis, panel) in enumerate(zip(axes, panels)):
            drawn = _panel(axis, panel, styles, named=place % columns == 0) | drawn
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        names = [*styles, *references]
        figure.legend(
            [drawn[name] for name in names],
            names,
            loc="outside upper left",
            ncols=beside,
            frameon=False,
            handlelength=3.4,
        )
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Title": description})
    return buffer.getvalue()


def _panel(axis, panel: Panel, styles: dict[str, Line], named: bool) -> dict:
    """Draw a panel -> its entries in the legend: name -> handle. named : write the names of the rows."""
    drawn = {}
    for series in panel.series:
        handle = _series(axis, series, styles[series.name], bool(panel.rows))
        drawn = {series.name: handle} | drawn  # the first series of a name has its marks
    if panel.reference:
        name, x, y = panel.reference
        drawn[name] = axis.plot(x, y, ":", color=LIGHT.muted, linewidth=1.6)[0]
    axis.set_title(panel.title, loc="left", fontsize=10.5, fontweight="bold")
    axis.set_xlabel(panel.x)
    axis.set_ylabel(panel.y)
    axis.grid(color=LIGHT.grid, axis="both")
    axis.spines[["top", "right"]].set_visible(False)
    if panel.log:
        axis.set_xscale("log")
    if panel.ticks:
        axis.set_xticks(panel.ticks, [f"{tick:g}" for tick in panel.ticks], minor=False)
        axis.minorticks_off()
    if panel.rows:
        axis.set_yticks(range(len(panel.rows)), panel.rows if named else ("",) * len(panel.rows))
        axis.set_ylim(len(panel.rows) - 0.5, -0.5)
        axis.margins(x=0.12)
    return drawn


def _series(axis, series: Series, style: Line, horizontal: bool):
    """Draw a series. horizontal : the bars are horizontal."""
    look = {"color": style.color, "markersize": 7, "linewidth": 1.8, "capsize": 3, "elinewidth": 1.4}
    bars = None
    if series.low:
        middle = series.x if horizontal else series.y
        bars = [[m - low for m, low in zip(middle, series.low)], [high - m for m, high in zip(middle, series.high)]]
    return axis.errorbar(
        series.x,
        series.y,
        xerr=bars if horizontal else None,
        yerr=None if horizontal else bars,
        marker=_MARKERS[style.marker] if series.marks else "",
        linestyle=_dash(style.dash) if series.line else "",
        **look,
    )


def _dash(dash: str):
    """A dash of the page in matplotlib's form. Lengths such as 5px,2px become half as many line widths."""
    return _DASHES.get(dash) or (0, tuple(float(part.removesuffix("px")) / 2 for part in dash.split(",")))
