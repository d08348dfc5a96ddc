"""The letters of a sheet: fonts that have them, how wide they are, what of a font goes into a PDF, and text that any
file can hold."""

from __future__ import annotations

import contextlib
import functools
import io
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator

import matplotlib
from matplotlib import font_manager
from matplotlib.backends import _backend_pdf_ps
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.textpath import text_to_path

from attnviz.export import fonts

FONTS = ("Source Sans 3", "DejaVu Sans", "Noto Sans CJK JP", "IPAPGothic", "Yu Gothic", "Hiragino Sans")
_NO_OUTLINES = ("Last Resort", "Color")  # in names of fonts: boxes for every letter; pictures instead of outlines
_NOT_DRAWN = ("Cc", "Cf", "Cs", "Mn", "Me", "Zs", "Zl", "Zp")  # no font needs a sign for these
_COMMON = (*range(0x20, 0x7F), *range(0xA0, 0x100))  # ASCII and Latin: most texts
_subset_of_font = _backend_pdf_ps.get_glyphs_subset
_reported: set[str] = set()  # letters that a warning has named


def clean(text: str) -> str:
    """The text without characters that SVG or PDF cannot hold (control characters, halves of surrogate pairs)."""
    return "".join("�" if _illegal(character) else character for character in text)


def _illegal(character: str) -> bool:
    return character != "\n" and (unicodedata.category(character) in ("Cc", "Cs") or ord(character) & 0xFFFE == 0xFFFE)


def families(text: str, first: str | None = None) -> tuple[tuple[str, ...], str]:
    """Names of fonts, in the order in which a letter looks for one; and the letters of `text` that no font has.

    first : an installed font that comes before the usual ones."""
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
    """A part of a font, as matplotlib's writer of PDF asks for it. glyph_index_map : number in the font -> in it."""

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
    """Within the block a PDF gets the same part of a font for all texts of common letters, and it is made once. Made
    for each file anew, it takes more than half of the time of a PDF. Call it with the settings of a sheet."""
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
    return _width(clean(text), weight, style, tuple(matplotlib.rcParams["font.family"])) * size


@functools.lru_cache(16384)
def _width(text: str, weight: str, style: str, family: tuple[str, ...]) -> float:
    """In sizes of the type."""
    if not text:
        return 0.0
    look = FontProperties(family=list(family), weight=weight, style=style, size=100)
    return text_to_path.get_text_width_height_descent(text, look, ismath=False)[0] / 100


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
