"""Plotly's texts, which are pseudo-HTML: as runs of one look, and as text on the sheet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser

from matplotlib.axes import Axes
from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea, VPacker
from matplotlib.transforms import Transform

from attnviz.export.printed.letters import clean

_COLOR = re.compile(r"color:\s*([^;]+)")
_EDGES = re.compile("^ +| +$")  # of a run; such spaces would be lost
_PLACES = {"left": 0, "center": 0.5, "right": 1, "bottom": 0, "top": 1}


@dataclass(frozen=True)
class Run:
    """Text of one look. color : None for that of its surroundings."""

    text: str = ""
    bold: bool = False
    italic: bool = False
    color: str | None = None

    @property
    def look(self) -> dict:
        return dict(weight="bold" if self.bold else "normal", style="italic" if self.italic else "normal")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[list[Run]] = [[]]
        self._open = [Run()]

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag == "br":
            self.lines.append([])
            return
        look = self._open[-1]
        if tag == "span":
            named = _COLOR.search(dict(attrs).get("style") or "")
            look = replace(look, color=named[1] if named else look.color)
        self._open.append(replace(look, bold=look.bold or tag == "b", italic=look.italic or tag == "i"))

    def handle_endtag(self, tag: str) -> None:
        if len(self._open) > 1:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.lines[-1].append(replace(self._open[-1], text=clean(data.replace("\n", " "))))


def runs(text: str) -> list[list[Run]]:
    """The runs of each line."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.lines


def plain(text: str) -> str:
    """The text without its markup."""
    return "\n".join("".join(run.text for run in line) for line in runs(text))


def one_look(text: str) -> tuple[str, Run]:
    """The text without its markup, and a run that has the look of its beginning."""
    return plain(text), next((run for line in runs(text) for run in line), Run())


def write(
    axes: Axes,
    place: tuple[float, float],
    text: str,
    transform: Transform,
    sides: tuple[str, str],
    *,
    size: float,
    color: str,
) -> None:
    """Text beside a place. sides : the part of it that is at the place: left, center or right, and top, center or
    bottom. size : points."""
    lines = runs(text)
    if len({(run.look["weight"], run.look["style"], run.color) for line in lines for run in line}) > 1:
        _write_runs(axes, place, lines, transform, sides, size, color)
        return
    words, look = one_look(text)
    axes.text(
        *place,
        words,
        transform=transform,
        ha=sides[0],
        va=sides[1],
        multialignment=sides[0],
        size=size,
        color=look.color or color,
        linespacing=1.25,
        parse_math=False,
        **look.look,
    )


def _hard_spaces(spaces: re.Match) -> str:
    return "\u00a0" * len(spaces[0])


def _write_runs(
    axes: Axes,
    place: tuple[float, float],
    lines: Sequence[Sequence[Run]],
    transform: Transform,
    sides: tuple[str, str],
    size: float,
    color: str,
) -> None:
    """A text of several looks."""
    packed = [
        HPacker(
            children=[
                TextArea(
                    _EDGES.sub(_hard_spaces, run.text),
                    textprops=dict(size=size, color=run.color or color, parse_math=False, **run.look),
                )
                for run in line
            ],
            pad=0,
            sep=0,
            align="baseline",
        )
        for line in lines
    ]
    box = VPacker(children=packed, pad=0, sep=0.3 * size, align=sides[0])
    look = dict(frameon=False, pad=0, annotation_clip=False, box_alignment=tuple(_PLACES[side] for side in sides))
    axes.add_artist(AnnotationBbox(box, place, xycoords=transform, **look))
