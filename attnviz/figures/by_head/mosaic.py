"""Many small maps in one PNG of 8-bit colours, so that 144 heads are fast at any length.

A long map is pooled, because a screen has too few pixels: each cell is then the LARGEST weight of a block of tokens, so
a thin diagonal stays visible. Hidden cells are hatched, not drawn as zero. H heads, Q queries, K keys.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable

import numpy as np

from attnviz.figures.theme import Theme

MOST = 64  # cells a side
_SIDE = 96  # px a side up to which a small map is enlarged, so that its cells stay sharp
_SHADES = 64  # of the scale of weights; palette entries 1 to 64
_CLEAR, _PAGE, _HATCH = (
    0,
    _SHADES + 1,
    _SHADES + 2,
)  # palette entries: between maps, and the two colours of hidden cells


def block(queries: int, keys: int) -> tuple[int, int]:
    """The number of queries and of keys in one cell of a pooled map; 1 and 1 up to 64 tokens."""
    return -(-queries // MOST), -(-keys // MOST)


def pool(weights: np.ndarray) -> np.ndarray:
    """weights (H, Q, K) -> (H, at most 64, at most 64), the largest of each block; the last block may be smaller."""
    rows, columns = block(*weights.shape[1:])
    return _largest(_largest(weights, rows).swapaxes(1, 2), columns).swapaxes(1, 2)


def _largest(weights: np.ndarray, every: int) -> np.ndarray:
    """(H, Q, K) -> (H, ceil(Q / every), K): the largest of each `every` rows. It works on whole rows, which is fast."""
    if every == 1:
        return weights
    pooled = weights[:, ::every].copy()
    for start in range(1, every):
        rows = weights[:, start::every]
        np.maximum(pooled[:, : rows.shape[1]], rows, out=pooled[:, : rows.shape[1]])
    return pooled


def png(
    maps: Iterable[Iterable[np.ndarray | None]],
    theme: Theme,
    margins: tuple[float, float] = (0, 0),
    root: bool = False,
) -> bytes:
    """Rows of pooled maps (q, k) of one shape, None for no map, as one picture in the colours of a theme; transparent
    between and around them. NaN is a hidden cell.

    margins : above each map, and on its other sides, as shares of its side.
    root : colours follow the square root of the weights, which makes faint patterns visible.
    """
    maps = [list(row) for row in maps]
    shape = next(weights.shape for row in maps for weights in row if weights is not None)
    down, across = (max(1, _SIDE // size) for size in shape)
    height, width = shape[0] * down, shape[1] * across
    hatch = np.where(np.add.outer(np.arange(height), np.arange(width)) % 6 < 2, _HATCH, _PAGE)
    above, round_ = margins
    edges = ((round(height * above), round(height * round_)), (round(width * round_),) * 2)

    def tile(weights: np.ndarray | None) -> np.ndarray:
        if weights is None:
            return np.pad(np.full((height, width), _CLEAR, np.uint8), edges)
        hidden = np.isnan(weights)
        pixels = shades(np.where(hidden, 0, weights), root).repeat(down, 0).repeat(across, 1)
        if hidden.any():
            pixels = np.where(hidden.repeat(down, 0).repeat(across, 1), hatch, pixels).astype(np.uint8)
        return np.pad(pixels, edges)

    pixels = np.vstack([np.hstack([tile(weights) for weights in row]) for row in maps])
    return _encode(pixels, colors(theme))


def address(picture: bytes) -> str:
    """A PNG as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(picture).decode()}"


def shades(weights: np.ndarray, root: bool) -> np.ndarray:
    """The place of each weight in `colors`, uint8."""
    return (np.clip(np.sqrt(weights) if root else weights, 0, 1) * (_SHADES - 1) + 1.5).astype(np.uint8)


def colors(theme: Theme) -> np.ndarray:
    """The palette of a picture, uint8 (n, 3): clear, the shades of weights, and the last two those of hidden cells."""
    scale = [_channels(color) for color in theme.sequential]
    places = np.linspace(0, len(scale) - 1, _SHADES)
    channels = [np.interp(places, range(len(scale)), channel) for channel in zip(*scale)]
    page, muted = (np.array(_channels(color)) for color in (theme.page, theme.muted))
    hidden = [page, (page + muted) // 2]
    return np.vstack([[[0, 0, 0]], np.stack(channels, axis=1).round(), hidden]).astype(np.uint8)


def _channels(color: str) -> list[int]:
    """#rrggbb -> red, green, blue."""
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


def _encode(pixels: np.ndarray, colors: np.ndarray) -> bytes:
    """pixels (height, width) uint8, indices into colors (n, 3); the first colour is transparent.

    PNG, W3C 2003, sec. 10 and 11. plotlyjs/cells.js reads what is written here.
    """
    height, width = pixels.shape
    rows = np.pad(pixels, ((0, 0), (1, 0))).tobytes()  # each row begins with 0: not filtered
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", colors.tobytes()),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(rows, 4)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
