"""Pages of text as a PDF on A4: titles, paragraphs, and ruled lines to write on, in the fonts of printed pictures."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnviz.export.printed import letters
from attnviz.export.printed.sheet import INCH, LEADING, POINT, Style, settings, wrapped

WIDTH, HEIGHT, MARGIN = (cm / INCH * POINT for cm in (21.0, 29.7, 2.0))  # points
_SIZES = {"title": 18.0, "heading": 13.0, "text": 10.5, "ruled": 10.5}  # points of the type
_ABOVE = {"title": 0.0, "heading": 14.0, "text": 5.0, "ruled": 14.0}  # points of room above


class Line(NamedTuple):
    """A title, heading or paragraph, which is wrapped; or "ruled", a line to write on."""

    text: str
    kind: str = "text"


def pdf(lines: Sequence[Line], title: str) -> bytes:
    """title : of the file. ValueError for a line of another kind."""
    if unknown := {line.kind for line in lines} - _SIZES.keys():
        raise ValueError(f"kind must be one of {', '.join(_SIZES)}; got {', '.join(sorted(unknown))}")
    style, file = Style(), io.BytesIO()
    names, missing = letters.families("".join(line.text for line in lines))
    letters.warn_once(missing)
    about = {"Title": letters.clean(title), "CreationDate": None}
    with settings(style, names), letters.embedding(), PdfPages(file, metadata=about) as document:
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
        flat = " ".join(letters.clean(text).split())
        parts = [""] if kind == "ruled" else wrapped(flat, WIDTH - 2 * MARGIN, size, kind != "text")
        for place, part in enumerate(parts):
            room = LEADING * size + (0 if place else _ABOVE[kind])
            yield part, kind, room, room + (3 * LEADING * size if kind == "heading" else 0)


def _empty() -> Figure:
    return Figure(figsize=(WIDTH / POINT, HEIGHT / POINT))
