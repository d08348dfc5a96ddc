"""Colours, fonts and the frame around every figure, for light and for dark pages.

The lightness (OKLab) of the sequential scale changes evenly from that of the page to its opposite, so it can be read in
grey and with every kind of colour blindness. Lines have the Okabe-Ito colours. Colours too pale for the page are
replaced by others that remain distinct with every kind of colour blindness. Lines differ in dash and marker as well.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass

import numpy as np

from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.mechanisms import ALL, Mechanism, was_added

# First the font that pages bring for Japanese alone, then Latin, then Japanese: without a name a browser may take the
# Chinese shape of a character that both write.
_JAPANESE = '"Hiragino Sans", "Yu Gothic", Meiryo, "Noto Sans CJK JP", "Noto Sans JP", "IPAPGothic"'
_LATIN = '"Source Sans", "Source Sans 3", system-ui, -apple-system, "Segoe UI", "Noto Sans"'
FONT = f'"attnviz Japanese", {_LATIN}, {_JAPANESE}, sans-serif'
CLEAR = "rgba(0,0,0,0)"
TITLE = 30  # px of a title
CORNER = dict(xref="paper", yref="paper", xanchor="left", yanchor="bottom")  # where a note begins above a panel


@dataclass(frozen=True)
class Theme:
    """page: the background that colours were chosen for (figures themselves are transparent)."""

    page: str
    text: str
    muted: str
    grid: str
    panel: str
    outline: str
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]
    lines: tuple[str, ...]
    own: str  # of the lines of a user's mechanism


LIGHT = Theme(
    page="#ffffff",
    text="#262730",
    muted="#646a76",
    grid="#e4e7ec",
    panel="#f4f6f9",
    outline="#e0245e",
    sequential=("#ebf4f9", "#b9dbee", "#87c1e4", "#5ba5d7", "#3d87c5", "#2369b3", "#204c95", "#1e3172", "#161850"),
    diverging=("#9c470d", "#b5734c", "#cb9e82", "#e1c9b9", "#f3f4f6", "#bbcee3", "#86a8ce", "#5082b8", "#125ca1"),
    lines=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a2a00", "#4b2e9e", "#1d1f26", "#6b7280"),
    own="#9830f8",
)
DARK = Theme(
    page="#0e1117",
    text="#fafafa",
    muted="#a3abb9",
    grid="#2b313c",
    panel="#1a1f29",
    outline="#ff6b8b",
    sequential=("#212633", "#2a3c5a", "#2b5582", "#0074a1", "#0094ac", "#21b5a4", "#82cd92", "#c1e198", "#f9f4ad"),
    diverging=("#feb766", "#c98d4e", "#916840", "#5c4531", "#23272c", "#364b5e", "#477293", "#549dcb", "#69caff"),
    lines=("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#2f7bf6", "#b9f0d8", "#8d96a6"),
    own="#c85828",
)

# "dot" belongs to the reference line
_DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot", "5px,2px", "8px,2px,2px,2px", "12px,3px")
_MARKERS = ("circle", "diamond", "square", "triangle-up", "x", "star", "cross", "hexagon")
_NEXT_OWN = 11  # of the looks of `_slot`, for a second mechanism of a user: pink, with another dash and marker
_COLORS = ("blue", "orange", "green", "pink", "brown", "violet", "ink", "grey")  # of `lines`, as they look in light


@dataclass(frozen=True)
class LineStyle:
    """The style of a mechanism in all figures."""

    color: str
    dash: str
    marker: str


def palette(dark: bool) -> Theme:
    return DARK if dark else LIGHT


def dark_for_light() -> dict[str, str]:
    """Each colour of the light theme -> the one that has its place in the dark theme."""
    light, dark = (
        [color for part in astuple(theme) for color in ((part,) if isinstance(part, str) else part)]
        for theme in (LIGHT, DARK)
    )
    return dict(zip(light, dark, strict=True))


def lines(names: Iterable[str], dark: bool = False) -> dict[str, LineStyle]:
    """name -> LineStyle. A mechanism with its own style always looks the same; other names get the free styles.

    A name belongs to a mechanism if it contains the mechanism's name, in any spelling: `luong-dot`, `Luong dot`,
    `en-de/luong-dot`.
    """
    names = list(dict.fromkeys(names))
    looks: dict[str, LineStyle] = {}
    for name in names:
        mechanism = _mechanism(name)
        if (
            mechanism
            and (mechanism.color or was_added(mechanism.name))
            and (look := _own(mechanism, dark)) not in looks.values()
        ):
            looks[name] = look
    if len(looks) == len(names):  # as on most pages: none needs a free style
        return looks
    used = {look.color for look in looks.values()}
    palette_size, free = len(_COLORS), _slots(dark)
    free = [look for look in free[:palette_size] if look.color not in used] + [*free[palette_size:]]
    others = (name for name in names if name not in looks)
    return looks | dict(zip(others, [look for look in free if look not in looks.values()]))


def _mechanism(name: str) -> Mechanism | None:
    """The mechanism that a name contains: the one with the longest title (`Luong · cosine`, or `Luong cosine` as on the
    page), else the only one of a family (`Mine` of `Mine · cosine`), else the one with the longest name."""
    plain, words = re.sub(r"[^a-z0-9]+", "-", name.lower()), name.replace(" · ", " ")
    titled = {len(kind.title): kind for kind in ALL.values() if kind.title.replace(" · ", " ") in words}
    family = [kind for kind in ALL.values() if kind.title.partition(" · ")[0] == name]
    named = {len(kind.name): kind for kind in ALL.values() if kind.name in plain}
    if titled or len(family) == 1:
        return titled[max(titled)] if titled else family[0]
    return named[max(named)] if named else None


def _own(mechanism: Mechanism, dark: bool) -> LineStyle:
    """The mechanism's own style: a colour of _COLORS, or a pair for light and dark pages. A user's mechanism without
    one has the same style in every picture, so that its bars have the colour of its lines: the first one a colour that
    nothing else has."""
    color = mechanism.color
    if not color:
        own = [other.name for other in ALL.values() if was_added(other.name) and not other.color]
        place = own.index(mechanism.name)
        if place:
            return _slot(_NEXT_OWN + place - 1, dark)
        return LineStyle(palette(dark).own, _DASHES[3], _MARKERS[3])
    shown = palette(dark).lines[_COLORS.index(color)] if isinstance(color, str) else color[dark]
    return LineStyle(shown, mechanism.dash or _DASHES[0], mechanism.marker or _MARKERS[0])


@functools.cache
def _slots(dark: bool) -> tuple[LineStyle, ...]:
    """All looks, in order."""
    return tuple(_slot(number, dark) for number in range(len(_COLORS) ** 2))


def _slot(number: int, dark: bool) -> LineStyle:
    """One of 64 looks. After the first eight, colours come back with other dashes and markers."""
    color, turn = number % len(_COLORS), number // len(_COLORS)
    other = (color + turn) % len(_DASHES)
    return LineStyle(palette(dark).lines[color], _DASHES[other], _MARKERS[other])


def colorscale(colors: tuple[str, ...]) -> list[list]:
    return [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]


def layout(dark: bool, height: int, margin: tuple[int, int, int, int], title: str | None, description: str) -> dict:
    """The layout shared by all figures. height, margin (left, right, top, bottom) : in px, to which the room of a title
    is added. title : not escaped."""
    colors = palette(dark)
    left, right, top, bottom = margin
    room = TITLE if title else 0
    common = dict(
        template={},
        height=height + room,
        autosize=True,
        dragmode=False,
        showlegend=False,
        margin=dict(l=left, r=right, t=top + room, b=bottom, pad=0),
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        font=dict(family=FONT, size=12, color=colors.text),
        hoverlabel=dict(
            bgcolor=colors.panel,
            bordercolor=colors.muted,
            font=dict(family=FONT, color=colors.text, size=13),
            align="left",
        ),
        # Plotly's own button saves a picture that does not say what it shows.
        modebar=dict(bgcolor=CLEAR, color=colors.muted, activecolor=colors.text, remove=["toImage"]),
        meta=dict(description=description, dark=dark),
    )
    if title is not None:
        common["title"] = dict(
            text=labels.escape(title),
            x=0,
            xref="container",
            xanchor="left",
            y=1,
            yref="container",
            yanchor="top",
            pad=dict(l=2, t=6),
            font=dict(size=15),
        )
    return common


# The axis of tokens or other names beside a map: no lines, and room for the names.
NAMES_AXIS = dict(fixedrange=True, showgrid=False, zeroline=False, ticklen=3, tickcolor=CLEAR)


def grid_axis(colors: Theme, **look: object) -> dict:
    """An axis of numbers with lines across the figure; `look` has additional settings."""
    ticks = dict(size=11, color=colors.muted)
    return dict(gridcolor=colors.grid, zeroline=False, fixedrange=True, tickfont=ticks) | look


def legend(y: float, size: int = 12) -> dict:
    """A legend in rows whose lower edge is at `y` of the plot's height. size : px of the type."""
    return dict(showlegend=True, legend=dict(orientation="h", x=0, y=y, yanchor="bottom", font=dict(size=size)))


def panel_axis(panel: int) -> str:
    """What Plotly writes after the x and y of a panel's axes: nothing for the first, counted from 0, then 2, 3 …"""
    return "" if panel == 0 else str(panel + 1)


def in_panel(name: str, axis: str) -> dict:
    """The properties of a trace that several panels have and the legend once. name : escaped."""
    return dict(type="scatter", name=name, legendgroup=name, showlegend=not axis, xaxis=f"x{axis}", yaxis=f"y{axis}")


def half(column: int) -> list[float]:
    """The domain of the left or right of two panels, 0 or 1."""
    return [0.54 * column, 0.54 * column + 0.46]


def map_cells(
    values: np.ndarray, span: tuple[float, float], colors: tuple[str, ...], bar: dict | None = None, **look: object
) -> dict:
    """A heatmap. span : the values at the ends of `colors`. bar : of `scale_bar`; `look` has additional settings."""
    return dict(
        type="heatmap",
        z=values,
        zmin=span[0],
        zmax=span[1],
        colorscale=colorscale(colors),
        **(dict(xgap=1, ygap=1) | (bar or dict(showscale=False)) | look),
    )


def scale_bar(values: list, texts: list) -> dict:
    """A colour scale under a heatmap, marked at `values` with `texts`."""
    bar = dict(
        orientation="h",
        thickness=7,
        len=1,
        y=0,
        yanchor="top",
        ypad=8,
        xpad=0,
        outlinewidth=0,
        ticklen=2,
        tickvals=values,
        ticktext=texts,
        tickfont=dict(size=10),
    )
    return dict(showscale=True, colorbar=bar)


def note(text: str, dark: bool, **place) -> dict:
    """One annotation in small muted type; `place` takes plotly's x, y, xref, yref, anchors and shifts."""
    return dict(text=text, showarrow=False, font=dict(size=11, color=palette(dark).muted), **place)


def build(data: list[dict], layout: dict) -> Chart:
    """A Chart of plain parts; the chart takes ownership of them."""
    meta = layout["meta"]
    return Chart.of_parts(data, layout, meta["description"], meta["dark"])
