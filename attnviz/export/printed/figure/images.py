"""The picture of small maps that an overview holds, as rectangles: neighbouring cells of one shade are one."""

from __future__ import annotations

import base64
import io
from collections import defaultdict

import numpy as np
from matplotlib.image import imread

from attnviz.export.printed.figure.canvas import Canvas
from attnviz.export.printed.heads import add_rectangles, merged
from attnviz.figures.by_head import mosaic
from attnviz.figures.theme import Theme
from attnviz.plotlyjs import MOST_RECTANGLES


def add_images(canvas: Canvas) -> None:
    """More than `MOST_RECTANGLES` stay an image."""
    for image in canvas.layout.get("images") or ():
        pixels = imread(io.BytesIO(base64.b64decode(image["source"].partition(",")[2])))
        panel = canvas.panel(image["xref"], image["yref"])
        left, top, width, height = image["x"], image["y"], image["sizex"], image["sizey"]
        boxes, (rows, columns) = defaultdict(list), pixels.shape[:2]
        for shade, (x, y, wide, high) in merged(_shades(pixels, canvas.style.colors)):
            place = left + x * width / columns, top + y * height / rows
            boxes[shade].append((*place, wide * width / columns, high * height / rows))
        boxes.pop(0, None)  # between the maps
        if sum(map(len, boxes.values())) > MOST_RECTANGLES:
            ends = (left, left + width, top + height, top)
            panel.imshow(pixels, extent=ends, aspect="auto", interpolation="none", zorder=1.5)
        else:
            add_rectangles(panel, boxes, canvas.style)


def _shades(pixels: np.ndarray, theme: Theme) -> np.ndarray:
    """The place of each pixel in `mosaic.colors`; -1 where a cell is hidden. pixels (rows, columns, 4), 0 to 1."""
    whole = (pixels * 255).round().astype(int)
    colors = mosaic.colors(theme).astype(int)
    weight = np.array([1 << 16, 1 << 8, 1])
    codes = colors @ weight
    order = np.argsort(codes)
    shades = order[np.searchsorted(codes, whole[..., :3] @ weight, sorter=order).clip(0, len(order) - 1)]
    shades[shades >= len(colors) - 2] = -1
    shades[whole[..., 3] == 0] = 0
    return shades
