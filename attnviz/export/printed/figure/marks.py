"""What lies over or under the data of a figure: shapes, and notes beside them."""

from __future__ import annotations

import re

from matplotlib.patches import PathPatch
from matplotlib.path import Path

from attnviz.export.printed.figure.canvas import Canvas, color, dash
from attnviz.export.printed.figure.texts import plain, write
from attnviz.figures import labels

_PART = re.compile(r"([MLHVZ])([^MLHVZ]*)")
_BELOW, _ABOVE = 0.6, 3  # of `zorder`: traces have 1 to 2
_LETTER = 0.65  # of the size of the type: the width of a bold letter, as a rule
_ANCHORS = {"middle": "center"}


def add_shapes(canvas: Canvas) -> None:
    """Lines, rectangles and paths."""
    for shape in canvas.layout.get("shapes") or ():
        x, y = shape.get("xref", "x"), shape.get("yref", "y")
        line = shape.get("line", {})
        patch = PathPatch(
            _outline(shape),
            transform=canvas.transform(x, y),
            facecolor=color(shape.get("fillcolor")) if shape["type"] != "line" else "none",
            edgecolor=color(line.get("color")) if line.get("width", 2) else "none",
            linewidth=line.get("width", 2) * canvas.px,
            linestyle=dash(line.get("dash")),
            alpha=shape.get("opacity"),
            zorder=_BELOW if shape.get("layer") == "below" else _ABOVE,
            capstyle="butt",
        )
        panel = canvas.panel(x, y)
        limits = panel.get_xlim(), panel.get_ylim()
        panel.add_artist(patch)
        panel.set(xlim=limits[0], ylim=limits[1])


def _outline(shape: dict) -> Path:
    if shape["type"] == "path":
        return path(shape["path"])
    x0, x1, y0, y1 = (shape[name] for name in ("x0", "x1", "y0", "y1"))
    if shape["type"] == "line":
        return Path([(x0, y0), (x1, y1)])
    return Path([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], closed=True)


def path(text: str) -> Path:
    """An SVG path of M, L, H, V and Z, as marks.py and the figures write them."""
    points, codes, start = [], [], (0.0, 0.0)
    for command, numbers in _PART.findall(text):
        values = [float(number) for number in re.split(r"[\s,]+", numbers.strip()) if number]
        if command == "Z":
            point = start
        elif command in "HV":
            x, y = points[-1]
            point = (values[0], y) if command == "H" else (x, values[0])
        else:
            point = (values[0], values[1])
        start = point if command == "M" else start
        points.append(point)
        codes.append({"M": Path.MOVETO, "Z": Path.CLOSEPOLY}.get(command, Path.LINETO))
    return Path(points, codes)


def add_notes(canvas: Canvas) -> None:
    """Annotations."""
    for note in canvas.layout.get("annotations") or ():
        x, y = note.get("xref", "x"), note.get("yref", "y")
        if y == "y" and not canvas.seen(note["y"]):
            continue
        sides = _side(note, "x", x), _side(note, "y", y)
        font = note.get("font", {})
        write(
            canvas.panel(x, y),
            (note["x"], note["y"]),
            note["text"],
            canvas.transform(x, y, (note.get("xshift", 0), note.get("yshift", 0))),
            sides,
            size=_size(canvas, note, x, y) * canvas.px,
            color=font.get("color") or canvas.style.colors.text,
        )


def _size(canvas: Canvas, note: dict, x: str, y: str) -> float:
    """Px of the type; a title of a plot is no wider than the plot, or it would meet that of the next."""
    size = note.get("font", {}).get("size", 12)
    if not x.endswith(" domain"):
        return size
    letters = max(map(labels.columns, plain(note["text"]).split("\n")))
    return min(size, canvas.size(canvas.panel(x, y))[0] / (_LETTER * max(letters, 1)))


def _side(note: dict, letter: str, ref: str) -> str:
    """Which side of the text is at its place; without a word the nearer side of the paper, else the middle."""
    names = ("left", "center", "right") if letter == "x" else ("bottom", "center", "top")
    given = note.get(f"{letter}anchor", "auto")
    if given != "auto":
        return _ANCHORS.get(given, given)
    return names[(note[letter] > 1 / 3) + (note[letter] > 2 / 3)] if ref == "paper" else "center"
