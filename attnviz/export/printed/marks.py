"""What lies over or under the data of a figure: shapes, notes beside them, and the picture of an overview's small maps.

That picture is drawn as rectangles: neighbouring cells of one shade are one.
"""

from __future__ import annotations

import base64
import io
import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from matplotlib.image import imread
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from attnviz.export.printed.canvas import Canvas, color, dash
from attnviz.export.printed.letters import plain, write
from attnviz.figures import labels, small_maps
from attnviz.figures.theme import Theme
from attnviz.plotlyjs import MOST_RECTANGLES

Box = tuple[float, float, float, float]  # x, y, width and height
_HIDDEN = "////"  # over cells that a query cannot see
_EDGE = 0.1  # points around a rectangle in its own colour: no hairlines between those that touch
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
    """Px of the type; a plot's title is no wider than the plot, so that it does not overlap the next title."""
    size = note.get("font", {}).get("size", 12)
    if not x.endswith(" domain"):
        return size
    letters = max(map(labels.columns, plain(note["text"]).split("\n")))
    return min(size, canvas.size(canvas.panel(x, y))[0] / (_LETTER * max(letters, 1)))


def _side(note: dict, letter: str, ref: str) -> str:
    """Which side of the text lies at its place; by default the nearer side of the paper, else the middle."""
    names = ("left", "center", "right") if letter == "x" else ("bottom", "center", "top")
    given = note.get(f"{letter}anchor", "auto")
    if given != "auto":
        return _ANCHORS.get(given, given)
    return names[(note[letter] > 1 / 3) + (note[letter] > 2 / 3)] if ref == "paper" else "center"


def add_images(canvas: Canvas) -> None:
    """Draw a picture's cells as rectangles; more than `MOST_RECTANGLES` remain an image."""
    for image in () if canvas.sizing else canvas.layout.get("images") or ():
        panel, pixels = canvas.panel(image["xref"], image["yref"]), _pixels(image)
        left, top, width, height = image["x"], image["y"], image["sizex"], image["sizey"]
        rectangles = boxes(image, canvas.style.colors)
        if sum(map(len, rectangles.values())) > MOST_RECTANGLES:
            ends = (left, left + width, top + height, top)
            panel.imshow(pixels, extent=ends, aspect="auto", interpolation="none", zorder=1.5)
        else:
            add_rectangles(panel, rectangles, canvas.style.colors)


def boxes(image: dict, theme: Theme) -> dict[int, list[Box]]:
    """The rectangles of an overview's picture by their place in `picture_colors`, -1 for cells that are hidden; in the
    units of its axes. image : of a layout."""
    left, top, width, height = image["x"], image["y"], image["sizex"], image["sizey"]
    pixels, result = _pixels(image), defaultdict(list)
    rows, columns = pixels.shape[:2]
    for shade, (x, y, wide, high) in merged(_shades(pixels, theme)):
        place = left + x * width / columns, top + y * height / rows
        result[shade].append((*place, wide * width / columns, high * height / rows))
    result.pop(0, None)  # between the maps
    return result


def _pixels(image: dict) -> np.ndarray:
    """(rows, columns, 4), 0 to 1, of a PNG in a data URL."""
    return imread(io.BytesIO(base64.b64decode(image["source"].partition(",")[2])))


def _shades(pixels: np.ndarray, theme: Theme) -> np.ndarray:
    """The place of each pixel in `picture_colors`; -1 where a cell is hidden. pixels (rows, columns, 4), 0 to 1."""
    whole = (pixels * 255).round().astype(int)
    colors = small_maps.picture_colors(theme).astype(int)
    weight = np.array([1 << 16, 1 << 8, 1])
    codes = colors @ weight
    order = np.argsort(codes)
    shades = order[np.searchsorted(codes, whole[..., :3] @ weight, sorter=order).clip(0, len(order) - 1)]
    shades[shades >= len(colors) - 2] = -1
    shades[whole[..., 3] == 0] = 0
    return shades


def merged(cells: np.ndarray) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """cells (rows, columns) int -> each value with one of its rectangles (x, y, width, height): a run of equal cells in
    a row, as high as the rows below that have the same run. As `rectangles` in plotlyjs/cells.js."""
    above: dict[int, list[int]] = {}  # where a run begins -> value, end, first row
    for y, row in enumerate([*cells, cells[:0].ravel()]):
        starts = np.flatnonzero(np.diff(row, prepend=row[:1] - 1)).tolist()
        runs = {x: [int(row[x]), end, y] for x, end in zip(starts, [*starts[1:], len(row)])}
        for x, (value, end, first) in above.items():
            if x in runs and runs[x][:2] == [value, end]:
                runs[x][2] = first
            else:
                yield value, (x, first, end - x, y - first)
        above = runs


def add_rectangles(axes, boxes: dict[int, list[Box]], theme: Theme) -> None:
    """One path a shade of `picture_colors`, and one for what is hidden (-1)."""
    shades = small_maps.picture_colors(theme) / 255
    for shade, places in boxes.items():
        if shade == -1:
            look = dict(facecolor=theme.page, edgecolor=shades[-1], hatch=_HIDDEN, linewidth=0)
        else:
            look = dict(facecolor=shades[shade], edgecolor=shades[shade], linewidth=_EDGE)
        x, y, width, height = np.array(places).T
        corners = np.stack([[x, x + width, x + width, x, x], [y, y, y + height, y + height, y]], axis=-1)  # (5, N, 2)
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(places)
        axes.add_patch(PathPatch(Path(corners.swapaxes(0, 1).reshape(-1, 2), codes), **look))
