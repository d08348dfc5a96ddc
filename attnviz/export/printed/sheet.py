"""The sheet that a picture is printed on: its size and type, how it is saved, and the lines above the picture: wrapped,
then smaller, and at last cut with “…”, to leave room for the picture; and pages of text on A4 as a PDF: titles,
paragraphs, and ruled lines to write on."""

from __future__ import annotations

import functools
import html
import io
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib
from matplotlib import font_manager
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnviz.arguments import guess, shown
from attnviz.export import fonts, heading
from attnviz.export.printed.letters import clean, cut, embedding, families, warn_once, width
from attnviz.figures.theme import Theme, palette
from attnviz.trace.visible import escaped

FORMATS = ("svg", "pdf", "png", "tex")
LEADING = 1.4  # from line to line, in sizes of the type
_SMALLER = 0.92  # of the type, in one try
_MOST_LETTERS = 2000  # letters of a line on any sheet
_BEFORE, _AFTER = 0.3, 0.1  # lines above the first and below the last
NARROW = 12  # cm
INCH, POINT = 2.54, 72  # cm and points in an inch
_DPI = 300  # of a PNG
_TEX = {letter: f"\\{letter}" for letter in "{}$&#_%"} | {  # what LaTeX would obey, or draw as another letter
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "-": "{-}",  # two are no dash
    "`": "{`}",
    "'": "{'}",
    "∅": r"$\emptyset$",
    "␣": r"\textvisiblespace{}",
    "\u00a0": "~",
}
_lock = threading.RLock()  # matplotlib's settings are those of the process


@dataclass(frozen=True)
class Size:
    """The size of a sheet in cm; its type size and smallest type size in points. fixed : the sheet always has this
    height; otherwise at most this."""

    width: float
    height: float
    font: float
    least: float
    fixed: bool = False


SIZES = {  # 22 cm are what A4 and Letter leave of a page with margins and a caption
    "column": Size(8.5, 22, 7, 5),
    "page": Size(17, 22, 9, 5),
    "slide": Size(33.867, 19.05, 18, 8, fixed=True),  # 16:9 in PowerPoint, Keynote and Google Slides
}


@dataclass(frozen=True)
class Style:
    """size : of SIZES. font : points of the type, if there is room; by default that of the size. dark : for a dark
    slide. width_cm : of the sheet, instead of that of the size. family : an installed font. heading : are there lines
    above the picture? title : replaces the first of them and the title in the file.

    ValueError for another size, font, width or family, and for a slide of another width.

    >>> printed.Style("column").points, printed.Style("column", font=8).points
    (7, 8)
    """

    size: str = "page"
    font: float | None = None
    dark: bool = False
    width_cm: float | None = None
    family: str | None = None
    heading: bool = True
    title: str | None = None

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}; got {shown(self.size)}")
        if self.font is not None and not 4 <= self.font <= 40:
            raise ValueError(f"font must be 4 to 40 points; got {self.font}")
        if self.width_cm is not None and (SIZES[self.size].fixed or not 3 <= self.width_cm <= 100):
            raise ValueError(f"width_cm must be 3 to 100, and none of a slide; got {shown(self.width_cm)}")
        if self.family is not None and self.family not in (names := font_manager.get_font_names()):
            raise ValueError(
                f"family must be an installed font; got {shown(self.family)}{guess(str(self.family), names)}; "
                "matplotlib.font_manager.get_font_names() lists them"
            )

    @property
    def points(self) -> float:
        return self.font or SIZES[self.size].font

    @property
    def least(self) -> float:
        """Points of the smallest type that names tokens."""
        return min(SIZES[self.size].least, self.points)

    @property
    def width(self) -> float:
        """In points, of the sheet."""
        return (self.width_cm or SIZES[self.size].width) / INCH * POINT

    @property
    def is_narrow(self) -> bool:
        """Do figures stand below each other?"""
        return self.width / POINT * INCH < NARROW

    @property
    def height(self) -> float:
        """Height of the sheet in points; the maximum unless `fixed`."""
        return SIZES[self.size].height / INCH * POINT

    @property
    def fixed(self) -> bool:
        return SIZES[self.size].fixed

    @property
    def colors(self) -> Theme:
        return palette(self.dark)


@dataclass(frozen=True, eq=False)
class Sheet:
    """A drawn picture.

    figure : all of it on one sheet. families : the fonts. title, description : what the picture shows, uncut; they go
        into the file. notes : sentences on what did not fit: a smaller type, names left out, letters without a font.
    further : draws the sheets of a PDF if a map has more rows, or there are more figures, than one can name; else None.

    >>> sheet = printed.of_map(trace, select.select(trace), printed.Style("column"))
    >>> sheet.save("pdf")[:4], sheet.notes
    (b'%PDF', ())
    """

    figure: Figure
    style: Style
    families: tuple[str, ...]
    title: str
    description: str
    notes: tuple[str, ...] = ()
    further: Callable[[], tuple[Figure, ...]] | None = None

    def __repr__(self) -> str:
        wide, high = (side * INCH for side in self.figure.get_size_inches())
        return f"<Sheet {shown(self.title)}, {self.style.size}, {wide:.1f} × {high:.1f} cm>"

    @functools.cached_property
    def pages(self) -> tuple[Figure, ...]:
        """The sheets of a PDF, drawn when they are first used."""
        if self.further is None:
            return (self.figure,)
        with settings(self.style, self.families):
            return self.further()

    def _repr_png_(self) -> bytes:
        """The picture in a notebook."""
        return self.save("png")

    def save(self, fmt: str) -> bytes:
        """The picture as svg, pdf, png or tex; the same picture gives the same bytes.

        tex : for `\\input` in a document that has `\\usepackage{pgf}`, whose fonts set its texts. ValueError for
        another format, and for a picture with an image as tex.
        """
        if fmt not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {shown(fmt)}")
        buffer = io.BytesIO()
        with settings(self.style, self.families):
            if fmt == "pdf":
                about = {"Title": self.title, "Subject": self.description, "CreationDate": None}
                with embedding(), PdfPages(buffer, metadata=about) as pdf:
                    for figure in self.pages:
                        pdf.savefig(figure, dpi=POINT)
            elif fmt == "png":
                about = {"Title": self.title, "Description": self.description}
                self.figure.savefig(buffer, format=fmt, dpi=_DPI, metadata=about)
            elif fmt == "tex":
                buffer.write(_tex(self.figure, self.title).encode())
            else:
                self.figure.savefig(buffer, format=fmt, dpi=POINT, metadata={"Date": None})
        return self._described(buffer.getvalue()) if fmt == "svg" else buffer.getvalue()

    def _described(self, svg: bytes) -> bytes:
        """An SVG with title, description and the Japanese letters of its texts."""
        start = svg.index(b">", svg.index(b"<svg")) + 1
        title, description = (html.escape(escaped(text)) for text in (self.title, self.description))
        about = f"\n <title>{title}</title>\n <desc>{description}</desc>".encode()
        face = fonts.face(html.unescape(svg.decode()))
        if face:
            svg = svg.replace(b"font-family: ", f"font-family: '{fonts.FAMILY}', ".encode())
            svg = svg.replace(b"<defs>", f'<defs>\n  <style type="text/css">{face}</style>'.encode(), 1)
        return svg[:start] + about + svg[start:]


class _Tex(RendererPgf):
    """Shapes and texts as commands of PGF. Texts are measured in the fonts of the sheet, so no LaTeX is needed here."""

    def get_text_width_height_descent(self, s, prop, ismath):
        return RendererBase.get_text_width_height_descent(self, s, prop, ismath)

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        super().draw_text(gc, x, y, "".join(_TEX.get(letter, letter) for letter in s), prop, angle, ismath, mtext)

    def draw_image(self, gc, x, y, im, transform=None):
        raise ValueError("this picture is an image, which tex cannot hold: save it as pdf or png")


def _tex(figure: Figure, title: str) -> str:
    written = io.StringIO()
    figure.draw(_Tex(figure, written))
    wide, high = figure.get_size_inches()
    about = f"% {title}\n% In the preamble: \\usepackage{{pgf}}. Letters that pdfLaTeX lacks need LuaLaTeX or XeLaTeX."
    size = rf"\pgfpathrectangle{{\pgfpointorigin}}{{\pgfqpoint{{{wide:f}in}}{{{high:f}in}}}}"
    begin = rf"\begingroup\makeatletter\begin{{pgfpicture}}{size}\pgfusepath{{use as bounding box}}%"
    return f"{about}\n{begin}\n{written.getvalue()}\\end{{pgfpicture}}\\makeatother\\endgroup%\n"


@contextmanager
def settings(style: Style, families: tuple[str, ...]) -> Iterator[None]:
    """Matplotlib's settings for a sheet; one thread at a time. Warnings about letters without a font are silenced,
    because they were already given."""
    chosen = {
        "font.family": list(families),
        "font.size": style.points,
        "svg.fonttype": "none",  # text, not outlines
        "pdf.fonttype": 42,
        "svg.hashsalt": "attnviz",  # the same picture gives the same bytes
        "pgf.rcfonts": False,  # LaTeX chooses the fonts
        "hatch.linewidth": 0.5,
        "text.hinting": "none",  # a letter in PNG is as wide as in SVG and PDF, also where it is 5 pixels high
    }
    with _lock, matplotlib.rc_context(chosen), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+")
        yield


def described(lines: list[str], description: str) -> tuple[str, str]:
    """Title and description of a file, from the lines above a picture and the figure's description."""
    lines = [" ".join(clean(line).split()) for line in lines]
    more = [" ".join(clean(description).split())] if description and description not in lines else []
    return (lines or [""])[0], "\n".join([*lines, *more])


@dataclass(frozen=True)
class Head:
    """lines : each a part of a line with whether it is bold. size : points. whole : nothing was cut."""

    lines: tuple[tuple[str, bool], ...]
    size: float
    whole: bool = True

    @property
    def height(self) -> float:
        """Points."""
        return (len(self.lines) + _BEFORE + _AFTER) * LEADING * self.size if self.lines else 0.0

    def draw(self, figure: Figure, left: float, top: float, color: str) -> None:
        """left, top : of the first line, in points from the upper left corner of the sheet."""
        wide, high = (72 * side for side in figure.get_size_inches())
        for place, (text, bold) in enumerate(self.lines):
            y = 1 - (top + (_BEFORE + place) * LEADING * self.size) / high
            look = dict(size=self.size, va="top", weight="bold" if bold else "normal", parse_math=False)
            figure.text(left / wide, y, text, color=color, **look)


def fitted_head(lines: Sequence[str], size: float, least: float, room: float, most: float) -> Head:
    """A head of these lines, the first bold, at most `room` points wide and `most` high. size, least : points of the
    type, and of the smallest. Call it with the settings of the sheet."""
    lines = [" ".join(clean(line.replace("\t", " ")).split("\n")) for line in lines]
    wide = [width(line, 1, "normal" if place else "bold") for place, line in enumerate(lines)]
    while size > least and LEADING * size * sum(max(length * size / room, 1) for length in wide) > most:
        size = max(least, size * _SMALLER)
    while True:
        folded = [wrapped(line, room, size, not place) for place, line in enumerate(lines)]
        head = Head(tuple((part, not place) for place, parts in enumerate(folded) for part in parts), size)
        if head.height <= most:
            return head
        if size <= least:
            return _cut(folded, size, room, most)
        size = max(least, size * _SMALLER)


def _cut(folded: list[list[str]], size: float, room: float, most: float) -> Head:
    """As many lines as fit; the longest texts are cut first."""
    count = max(int(most / (LEADING * size) - _BEFORE - _AFTER), 1)
    counts = [len(parts) for parts in folded[:count]]
    while sum(counts) > count:
        counts[counts.index(max(counts))] -= 1
    lines = []
    for place, (parts, number) in enumerate(zip(folded, counts)):
        shown = parts[:number]
        if number < len(parts):
            weight = "normal" if place else "bold"
            shown[-1] = cut(" ".join(parts[number - 1 :])[:_MOST_LETTERS], room, size, weight=weight)
        lines += [(part, not place) for part in shown]
    return Head(tuple(lines), size, whole=False)


def wrapped(line: str, room: float, size: float, bold: bool) -> list[str]:
    """The line in parts that are no wider than `room` points."""
    return heading.wrapped(line, room, lambda text: width(text, size, "bold" if bold else "normal"))


WIDTH, HEIGHT, MARGIN = (cm / INCH * POINT for cm in (21.0, 29.7, 2.0))  # points
_SIZES = {"title": 18.0, "heading": 13.0, "text": 10.5, "ruled": 10.5}  # points of the type
_ABOVE = {"title": 0.0, "heading": 14.0, "text": 5.0, "ruled": 14.0}  # points of room above


class Line(NamedTuple):
    """A title, heading or paragraph, which is wrapped; or "ruled", a line to write on."""

    text: str
    kind: str = "text"


def text_pdf(lines: Sequence[Line], title: str) -> bytes:
    """title : of the file. ValueError for a line of another kind."""
    if unknown := {line.kind for line in lines} - _SIZES.keys():
        raise ValueError(f"kind must be one of {', '.join(_SIZES)}; got {', '.join(sorted(unknown))}")
    style, file = Style(), io.BytesIO()
    names, missing = families("".join(line.text for line in lines))
    warn_once(missing)
    about = {"Title": clean(title), "CreationDate": None}
    with settings(style, names), embedding(), PdfPages(file, metadata=about) as document:
        for page in _pages(lines, style):
            document.savefig(page, dpi=POINT)
    return file.getvalue()


def _pages(lines: Sequence[Line], style: Style) -> Iterator[Figure]:
    """Figures of A4; a heading stays with the line after it."""
    page, top = _empty(), MARGIN
    for text, kind, room, keep in _rows(lines):
        if top + keep > HEIGHT - MARGIN:
            yield page
            page, top = _empty(), MARGIN
        top += room
        y = 1 - top / HEIGHT
        if kind == "ruled":
            ends = [MARGIN / WIDTH, 1 - MARGIN / WIDTH]
            page.add_artist(Line2D(ends, [y, y], color=style.colors.muted, linewidth=0.5))
            continue
        look = dict(size=_SIZES[kind], weight="normal" if kind == "text" else "bold", color=style.colors.text)
        page.text(MARGIN / WIDTH, y, text, va="baseline", parse_math=False, **look)
    yield page


def _rows(lines: Sequence[Line]) -> Iterator[tuple[str, str, float, float]]:
    """Text, kind, points from the row before, and points that must be left on the page."""
    for text, kind in lines:
        size = _SIZES[kind]
        flat = " ".join(clean(text).split())
        parts = [""] if kind == "ruled" else wrapped(flat, WIDTH - 2 * MARGIN, size, kind != "text")
        for place, part in enumerate(parts):
            room = LEADING * size + (0 if place else _ABOVE[kind])
            yield part, kind, room, room + (3 * LEADING * size if kind == "heading" else 0)


def _empty() -> Figure:
    return Figure(figsize=(WIDTH / POINT, HEIGHT / POINT))
