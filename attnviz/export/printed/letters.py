"""The letters of a sheet: fonts, widths, font subsets for PDF, text that is valid in every file format; and Plotly's
pseudo-HTML texts as styled runs and as text on the sheet."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends import _backend_pdf_ps
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea, VPacker
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Transform

from attnviz.export import fonts

FONTS = ("Source Sans 3", "DejaVu Sans", "Noto Sans CJK JP", "IPAPGothic", "Yu Gothic", "Hiragino Sans")
_NO_OUTLINES = ("Last Resort", "Color")  # in names of fonts: boxes for every letter; pictures instead of outlines
_NOT_DRAWN = ("Cc", "Cf", "Cs", "Mn", "Me", "Zs", "Zl", "Zp")  # no font needs a sign for these
_COMMON = (*range(0x20, 0x7F), *range(0xA0, 0x100))  # ASCII and Latin: most texts
_UNSEEN = ("hovertext", "customdata", "source", "hovertemplate")  # of a figure: not on the sheet
_subset_of_font = _backend_pdf_ps.get_glyphs_subset
_NO_CHARACTERS = "".join(chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF))
_ILLEGAL = re.compile(rf"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff{_NO_CHARACTERS}]")
_reported: set[str] = set()  # letters that a warning has named


def clean(text: str) -> str:
    """The text without characters that SVG or PDF cannot hold (control characters, halves of surrogate pairs)."""
    return _ILLEGAL.sub("�", text)


def families(text: str, first: str | None = None) -> tuple[tuple[str, ...], str]:
    """Font names in the order in which they are searched for a letter; and the letters of `text` that no font has.

    first : an installed font to search before the usual ones."""
    installed = set(font_manager.get_font_names())
    usual = [*(name for name in FONTS if name in installed), fonts.family()]
    names = list(dict.fromkeys([first, *usual] if first else usual))
    missing = {letter for letter in set(text) if unicodedata.category(letter) not in _NOT_DRAWN}
    for name in names:
        missing -= {letter for letter in missing if ord(letter) in _covered(_file(name))}
    while missing:
        name, covered = _best(frozenset(missing))
        if not covered:
            break
        names.append(name)
        missing -= covered
    return tuple(names), "".join(sorted(missing))


def warn_once(missing: str) -> None:
    """One warning for letters that no font has."""
    if fresh := "".join(letter for letter in missing if letter not in _reported):
        _reported.update(fresh)
        warnings.warn(f"{no_font(fresh)} Install one, for example of the Noto fonts.", stacklevel=4)


def no_font(missing: str) -> str:
    """The sentence on letters that no font has."""
    more = " …" if len(missing) > 20 else ""
    return f"No font of this system has {' '.join(missing[:20])}{more}: a box stands in the picture."


@functools.lru_cache(64)
def _best(missing: frozenset[str]) -> tuple[str, frozenset[str]]:
    """The installed font that has most of these letters, Noto before others; and those it has."""
    best: tuple[str, frozenset[str]] = "", frozenset()
    entries = {(entry.name, entry.fname) for entry in font_manager.fontManager.ttflist}
    for name, file in sorted(entries, key=lambda entry: ("Noto" not in entry[0], *entry)):
        if not any(part in name for part in _NO_OUTLINES):
            covered = frozenset(letter for letter in missing if ord(letter) in _covered(file))
            best = (name, covered) if len(covered) > len(best[1]) else best
    return best


def _file(name: str) -> str:
    return str(fonts.JAPANESE) if name == fonts.FAMILY else font_manager.findfont(name)


@functools.lru_cache(4096)
def _covered(file: str) -> frozenset[int]:
    """The letters of a font; none if it has no outlines or cannot be read."""
    try:
        font = FT2Font(file)
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(font.get_charmap()) if font.scalable else frozenset()


class _Embedded:
    """A subset of a font, in the form that matplotlib's PDF writer needs. glyph_index_map : glyph number in the font ->
    in the subset."""

    def __init__(self, content: bytes, glyph_index_map: dict):
        self.content, self.font, self.glyph_index_map = content, self, glyph_index_map

    def __enter__(self) -> _Embedded:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def save(self, file: io.BytesIO, **options: object) -> None:
        file.write(self.content)


@contextlib.contextmanager
def embedding() -> Iterator[None]:
    """In this block, PDFs share one cached font subset for common letters. Making it for every file takes more than
    half of the time of a PDF; matplotlib before 3.11 makes it each time. Call it with the settings of a sheet."""
    if matplotlib.__version_info__ >= (3, 11):
        _backend_pdf_ps.get_glyphs_subset = _part_of_font
    try:
        yield
    finally:
        _backend_pdf_ps.get_glyphs_subset = _subset_of_font


def _part_of_font(file, glyphs: Collection[int]) -> _Embedded:
    wanted, common = frozenset(glyphs), _common_glyphs(file)
    return _made_part(file, wanted | common if wanted & common else wanted)


@functools.lru_cache(64)
def _common_glyphs(file) -> frozenset[int]:
    covered = FT2Font(file).get_charmap()
    return frozenset(covered[letter] for letter in _COMMON if letter in covered)


@functools.lru_cache(64)
def _made_part(file, glyphs: frozenset[int]) -> _Embedded:
    with _subset_of_font(file, set(glyphs)) as part:
        return _Embedded(_backend_pdf_ps.font_as_file(part.font).getvalue(), part.glyph_index_map)


def width(text: str, size: float, weight: str = "normal", style: str = "normal") -> float:
    """Points that a line of text takes. size : points. Call it with the settings of a sheet."""
    return extent(text, weight, style)[0] * size


def extent(text: str, weight: str = "normal", style: str = "normal") -> tuple[float, float]:
    """Width and height of a line of text, as multiples of the type size. Call it with the settings of a sheet."""
    return _extent(clean(text), weight, style, tuple(matplotlib.rcParams["font.family"]))


@functools.lru_cache(16384)
def _extent(text: str, weight: str, style: str, family: tuple[str, ...]) -> tuple[float, float]:
    if not text:
        return 0.0, 0.0
    look = FontProperties(family=list(family), weight=weight, style=style, size=100)
    wide, high, _ = text_to_path.get_text_width_height_descent(text, look, ismath=False)
    return wide / 100, high / 100


def widest(lines: Iterable[str], size: float, **look: str) -> float:
    return max((width(line, size, **look) for line in lines), default=0.0)


def cut(text: str, room: float, size: float, **look: str) -> str:
    """The text, each of its lines ended with “…” where it is wider than `room` points."""
    return "\n".join(_cut(line, room, size, look) for line in text.split("\n"))


def _cut(line: str, room: float, size: float, look: dict[str, str]) -> str:
    if width(line, size, **look) <= room:
        return line
    closing = "\u2069" if line.endswith("\u2069") else ""  # of a text from right to left
    least, most = 0, len(line)
    while least < most:
        middle = (least + most + 1) // 2
        if width(f"{line[:middle]}…{closing}", size, **look) <= room:
            least = middle
        else:
            most = middle - 1
    return f"{line[:least]}…{closing}"


_COLOR = re.compile(r"color:\s*([^;]+)")
_EDGES = re.compile("^ +| +$")  # of a run; such spaces would be lost
_PLACES = {"left": 0, "center": 0.5, "right": 1, "bottom": 0, "top": 1}


@dataclass(frozen=True)
class Run:
    """Text of one style. color : None for that of its surroundings."""

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
    """The text without its markup, and a run with the style of its beginning."""
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


def _write_runs(
    axes: Axes,
    place: tuple[float, float],
    lines: Sequence[Sequence[Run]],
    transform: Transform,
    sides: tuple[str, str],
    size: float,
    color: str,
) -> None:
    """Write a text of several styles."""
    packed = [
        HPacker(
            children=[
                TextArea(
                    _EDGES.sub(lambda spaces: "\u00a0" * len(spaces[0]), run.text),
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


def texts(value) -> Iterator[str]:
    """All texts that a figure may draw."""
    if isinstance(value, str):
        yield plain(value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _UNSEEN:
                yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)
