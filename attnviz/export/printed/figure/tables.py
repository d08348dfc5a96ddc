"""A table of Plotly's, printed: a rectangle a cell, and its text."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Rectangle

from attnviz.export.printed import letters
from attnviz.export.printed.figure.canvas import Canvas, color
from attnviz.export.printed.figure.texts import plain, write
from attnviz.figures import labels

_INSIDE = 6  # px between a line and the text beside it
_LEAST = 5  # px of the smallest type
_LETTER = 0.56  # of the size of the type: the width of a letter, as a rule


def add_table(canvas: Canvas, table: dict) -> None:
    """Draw the table over the whole paper, its texts smaller where their column is narrow."""
    header, cells = table["header"], table["cells"]
    columns = [[head, *texts] for head, texts in zip(header["values"], cells["values"], strict=True)]
    wide, high = canvas.size(canvas.paper)
    edges = np.cumsum([0, *table["columnwidth"]]) / sum(table["columnwidth"])
    row = min(header["height"] / high, 1 / len(columns[0]))
    size = _size(columns, np.diff(edges) * wide, min(cells["font"]["size"], 0.8 * row * high))
    for column, texts in enumerate(columns):
        left, right = edges[column : column + 2]
        for place, text in enumerate(texts):
            look, top = (cells if place else header), 1 - place * row
            box = Rectangle(
                (left, top - row),
                right - left,
                row,
                transform=canvas.paper.transAxes,
                facecolor=color(look["fill"]["color"]),
                edgecolor=look["line"]["color"],
                linewidth=look["line"]["width"] * canvas.px,
            )
            canvas.paper.add_patch(box)
            side = look["align"][column]
            x = left + _INSIDE / wide if side == "left" else right - _INSIDE / wide
            shade = look["font"]["color"]
            place = x, top - row / 2
            text = _cut(text, ((right - left) * wide - 2 * _INSIDE) * canvas.px, size * canvas.px)
            write(
                canvas.paper, place, text, canvas.paper.transAxes, (side, "center"), size=size * canvas.px, color=shade
            )


def _size(columns: list[list[str]], widths: np.ndarray, most: float) -> float:
    """Px of type with which every text fits its column."""
    longest = [max(labels.columns(plain(text)) for text in texts) for texts in columns]
    fits = [(width - 2 * _INSIDE) / (_LETTER * max(count, 1)) for count, width in zip(longest, widths)]
    return min(most, max(_LEAST, min(fits)))


def _cut(text: str, room: float, size: float) -> str:
    """The text as it is, or plain and cut where it is wider than `room` points."""
    words = plain(text)
    short = letters.cut(words, room, size)
    return text if short == words else labels.escape(short)
