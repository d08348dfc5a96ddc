"""The sheet that a picture is printed on: its size and type, the lines above it, and how it is saved."""

from __future__ import annotations

import html
import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path

from attnviz.arguments import shown
from attnviz.export import fonts, heading
from attnviz.figures.theme import Theme, palette

FORMATS = ("svg", "pdf", "png")
INCH, POINT = 2.54, 72  # cm and points in an inch
LEADING = 1.4  # from line to line, in sizes of the type
_DPI = 300  # of a PNG
_FONTS = ("Source Sans 3", "DejaVu Sans", "Noto Sans CJK JP", "IPAPGothic", "Yu Gothic", "Hiragino Sans")
_lock = threading.Lock()  # matplotlib's settings are those of the process


@dataclass(frozen=True)
class Size:
    """What a picture must fit: cm, and the size of its type in points. height : None for as high as it needs."""

    width: float
    height: float | None
    font: float


SIZES = {
    "column": Size(8.5, None, 7),
    "page": Size(17, None, 9),
    "slide": Size(33.867, 19.05, 18),  # 16:9 in PowerPoint, Keynote and Google Slides
}


@dataclass(frozen=True)
class Style:
    """size : of SIZES. font : points; that of the size unless given. dark : for a dark slide.

    ValueError for another size or font.
    """

    size: str = "page"
    font: float | None = None
    dark: bool = False

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}; got {shown(self.size)}")
        if self.font is not None and not 4 <= self.font <= 40:
            raise ValueError(f"font must be 4 to 40 points; got {self.font}")

    @property
    def points(self) -> float:
        return self.font or SIZES[self.size].font

    @property
    def width(self) -> float:
        """In points, of the sheet."""
        return SIZES[self.size].width / INCH * POINT

    @property
    def colors(self) -> Theme:
        return palette(self.dark)


@dataclass(frozen=True, eq=False)
class Sheet:
    """A drawn picture."""

    figure: Figure
    style: Style

    def __repr__(self) -> str:
        return f"Sheet({self.style.size}; .save(format) gives its bytes)"

    def _repr_png_(self) -> bytes:
        """In a notebook: the picture."""
        return self.save("png")

    def save(self, fmt: str) -> bytes:
        """The picture as svg, pdf or png; the same picture gives the same bytes. ValueError for another format."""
        if fmt not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {shown(fmt)}")
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
        buffer = io.BytesIO()
        with _lock, matplotlib.rc_context(_settings(self.style)):
            self.figure.savefig(buffer, format=fmt, dpi=_DPI if fmt == "png" else POINT, metadata=dates[fmt])
        return _with_face(buffer.getvalue()) if fmt == "svg" else buffer.getvalue()


def _with_face(svg: bytes) -> bytes:
    """An SVG that brings the Japanese letters of its texts."""
    face = fonts.face(html.unescape(svg.decode()))
    if not face:
        return svg
    named = svg.replace(b"font-family: ", f"font-family: '{fonts.FAMILY}', ".encode())
    return named.replace(b"<defs>", f'<defs>\n  <style type="text/css">{face}</style>'.encode(), 1)


def sheet(lines: Sequence[str], style: Style, body: float, draw: Callable[[Figure], None]) -> Sheet:
    """A sheet with `lines` (wrapped, none is cut; the first is the title) above what `draw` adds to the figure.

    body : points in height that the picture needs, where the size does not say how high the sheet is.
    """
    step, paper = LEADING * style.points / POINT, SIZES[style.size]  # inches
    with _lock, matplotlib.rc_context(_settings(style)):
        shown = [(part, place == 0) for place, line in enumerate(lines) for part in _folded(line, place == 0, style)]
        head = (len(shown) + 0.4) * step
        height = paper.height / INCH if paper.height else head + body / POINT
        figure = Figure(figsize=(paper.width / INCH, height), facecolor=style.colors.page, layout="constrained")
        figure.get_layout_engine().set(rect=(0.01, 0.01, 0.98, 0.99 - head / height), w_pad=0.02, h_pad=0.02)
        for place, (text, bold) in enumerate(shown):
            look = dict(color=style.colors.text, va="top", weight="bold" if bold else "normal", parse_math=False)
            figure.text(0.015, 1 - (0.3 + place) * step / height, text, **look)
        draw(figure)
        _fix_places(figure)
    return Sheet(figure, style)


def _folded(line: str, bold: bool, style: Style) -> list[str]:
    """A line in parts that are no wider than the sheet. Call it with the settings of the style."""
    look = font_manager.FontProperties(weight="bold" if bold else "normal", size=style.points)
    for columns in range(int(style.width / (0.4 * style.points)), 0, -2):
        parts = heading.wrapped(line, columns)
        widths = (text_to_path.get_text_width_height_descent(part, look, ismath=False)[0] for part in parts)
        if max(widths) <= 0.95 * style.width:
            break
    return parts


def _fix_places(figure: Figure) -> None:
    """Lays `figure` out once, so that each format has the same places.

    The layout's solver answers the same picture with other last digits in another place of memory: they are rounded
    away.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(edge, 6) for edge in axes.get_position().bounds])


def label_keys(axes, names: Sequence[str], style: Style) -> None:
    """Tokens along a horizontal axis: smaller where they would meet, upright where they are narrow."""
    room = 0.8 * style.width / max(len(names), 1)  # points for a column
    size = min(style.points, max(4, 0.95 * room))
    angle = 50 if room > 1.6 * size else 90
    axes.xaxis.set_ticks(range(len(names)), names, parse_math=False)
    above = axes.xaxis.get_label_position() == "top"
    for label in axes.get_xticklabels():
        side = "left" if above else "right"
        label.set(rotation=angle, ha=side, size=size, rotation_mode="anchor")
        label.set_va("center_baseline" if angle == 90 else ("bottom" if above else "top"))


def _settings(style: Style) -> dict:
    installed = set(font_manager.get_font_names())
    return {
        "font.family": [*(name for name in _FONTS if name in installed), fonts.family()],
        "font.size": style.points,
        "svg.fonttype": "none",  # text, not outlines
        "pdf.fonttype": 42,
        "svg.hashsalt": "attnviz",  # the same picture gives the same bytes
        "hatch.linewidth": 0.5,
    }
