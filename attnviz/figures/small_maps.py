"""Every head of a kind at once: small maps in layers and heads, or in the order of a statistic.

The maps lie over a heatmap of heads (by_head.py) as one PNG of 8-bit colours instead of one plot per head, so that 144
heads are fast at any length. A long map is pooled, because a screen has too few pixels: each cell is then the LARGEST
weight of a block of tokens, so a thin diagonal stays visible. Hidden cells are hatched, not drawn as zero. H heads, Q
queries, K keys.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz.arguments import checked, within
from attnviz.figures import by_head, labels, maps
from attnviz.figures.by_head import LABEL, Rows, placed
from attnviz.figures.chart import Chart
from attnviz.figures.theme import Theme, build, palette
from attnviz.figures.wording import statistic_title
from attnviz.heads import Head
from attnviz.trace import Trace

_GAP = 0.035  # round a map, as a share of its side; with a frame twice that
MOST = 64  # cells a side
_SIDE = 96  # px a side up to which a small map is enlarged, so that its cells stay sharp
_SHADES = 64  # of the scale of weights; palette entries 1 to 64
_CLEAR, _PAGE, _HATCH = 0, _SHADES + 1, _SHADES + 2  # palette entries: between maps, two colours of hidden cells


def arranged(trace: Trace, kind: str, table: pd.DataFrame | None = None, order: str | None = None) -> Rows:
    """The heads of a kind in rows, as the overview shows them: one row for each layer; or sorted by a column of the
    table, highest first.

    None fills the gaps of layers with fewer heads, and the places after the last head. Heads without a value (NaN) come
    last.
    """
    trace.map(kind)  # says which kinds there are
    return _arranged({m.layer: len(m.weights) for m in trace.maps if m.kind == kind}, kind, table, order)


def _arranged(counts: Mapping[int, int], kind: str, table: pd.DataFrame | None, order: str | None) -> Rows:
    """counts : layer -> heads."""
    layers = [[Head(kind, layer, head) for head in range(counts[layer])] for layer in sorted(counts)]
    across = max(map(len, layers))
    if order is not None:
        values = by_head.values_by_head(table, kind, order)
        heads = sorted(
            (head for layer in layers for head in layer),
            key=lambda head: (math.isnan(value := values.get(head, math.nan)), -value),
        )
        layers = [heads[i : i + across] for i in range(0, len(heads), across)]
    return [row + [None] * (across - len(row)) for row in layers]


@checked
def overview(
    trace: Trace,
    kind: str | None = None,
    table: pd.DataFrame | None = None,
    order: str | None = None,
    color: str | None = None,
    title: str | None = None,
    *,
    root: bool = False,
    off: Collection[Head] = (),
    row: int | None = None,
    dark: bool = False,
) -> Chart:
    """All heads of a kind (that of the first map, unless given) as small maps, weights from 0 to 1.

    table : of `heads.table`; order : the column that heads are sorted by, highest first; color : the column that frames
        show.
    root : colours follow the square root of the weights, which makes faint patterns visible. off : heads that are
    switched off; they are grey and crossed out. row : of the queries, from 0, marked in every map.
    A map of more than 64 tokens a side is pooled, each cell the largest weight of its block; hidden cells are hatched.
    ValueError when the table lacks the column, or the trace the kind.

    >>> figures.overview(trace).description
    '1 cross heads, each a map of 6 target tokens by 6 source tokens; 1 layers downwards, heads across.'
    """
    kind = kind or (trace.maps or [trace.map()])[0].kind
    rows, edges = arranged(trace, kind, table, order), margins(bool(order), bool(color))
    columns = {name: by_head.values_by_head(table, kind, name) for name in dict.fromkeys((order, color)) if name}
    cells = by_head.head_cells(rows, columns, dark, color, off=off)
    description = f"{_shown(trace, kind, rows, root)}{_arrangement(rows, order, columns)}"
    description += f"; frames: {statistic_title(color)}." if color else "."
    averaged = {m.layer: m.averaged for m in trace.maps if m.kind == kind}
    all_averaged, means = all(averaged.values()), [layer for layer, mean in averaged.items() if mean]
    frame = by_head.head_frame(rows, bool(order), bool(color), title, dark, description, averaged=all_averaged)
    frame["images"] = [_image(pooled_maps(trace, kind, rows), rows, edges, root, dark)]
    if crossed := [place for place in placed(rows) if place[-1] in off]:
        _cross_out(crossed, frame, dark)
    if row is not None:
        _light(trace, kind, row, rows, edges, frame, dark)
    return build([cells, *([_names(means, rows, dark)] if order else [])], frame)


@checked
def overview_of_pooled(
    pooled: Mapping[int, np.ndarray],
    kind: str,
    tokens: int,
    table: pd.DataFrame | None = None,
    order: str | None = None,
    color: str | None = None,
    *,
    root: bool = False,
    dark: bool = False,
) -> Chart:
    """`overview` of self-attention of which only pooled maps were kept. pooled : layer -> (H, q, k), NaN where hidden;
    tokens : of the text.

    >>> figures.overview_of_pooled({0: np.full((12, 64, 64), 1 / 64)}, "encoder", tokens=512).description
    '12 encoder heads, each a map of 512 by 512 tokens, a cell the largest weight of 8 by 8 tokens; 1 layers downwards,
    heads across.'
    """
    rows = _arranged({layer: len(maps) for layer, maps in pooled.items()}, kind, table, order)
    columns = {name: by_head.values_by_head(table, kind, name) for name in dict.fromkeys((order, color)) if name}
    cells, edges = by_head.head_cells(rows, columns, dark, color), margins(bool(order), bool(color))
    every = block(tokens, tokens)[0]
    words = (
        f"{len(list(placed(rows)))} {kind} heads, each a map of {tokens} by {tokens} tokens, a cell the largest weight "
        f"of {every} by {every} tokens{_arrangement(rows, order, columns)}."
    )
    frame = by_head.head_frame(rows, bool(order), bool(color), None, dark, words)
    frame["images"] = [_image([[h and pooled[h.layer][h.head] for h in row] for row in rows], rows, edges, root, dark)]
    return build([cells, *([_names({}, rows, dark)] if order else [])], frame)


def margins(named: bool, framed: bool) -> tuple[float, float]:
    """Above a map and on its other sides, as shares of its side."""
    gap = _GAP * (1 + framed)
    return (LABEL if named else gap, gap)


def pooled_maps(trace: Trace, kind: str, rows: Rows) -> list[list[np.ndarray | None]]:
    """The pooled map (q, k) of each head of `rows`; NaN for hidden cells, and for the sink column of a layer without a
    sink if other layers have one."""
    pooled, of_kind = {}, [m for m in trace.maps if m.kind == kind]
    most = max(m.weights.shape[2] for m in of_kind)
    for attention in of_kind:
        missing = [(0, 0), (0, most - attention.weights.shape[2])]
        seen = pool(np.pad(trace.visible(attention), missing)[None])
        pooled[attention.layer] = np.where(seen, pool(np.pad(attention.weights, [(0, 0), *missing])), np.nan)
    return [[head and pooled[head.layer][head.head] for head in row] for row in rows]


def _image(pooled: list, rows: Rows, margins: tuple[float, float], root: bool, dark: bool) -> dict:
    """The maps as one image over all cells."""
    picture = png(pooled, palette(dark), margins, root)
    place = dict(xref="x", yref="y", x=-0.5, y=-0.5, xanchor="left", yanchor="top", layer="above")
    size = dict(sizex=len(rows[0]), sizey=len(rows), sizing="stretch")
    return dict(source=data_url(picture)) | place | size


def _cross_out(off: list[tuple[int, int, Head]], frame: dict, dark: bool) -> None:
    """Mark heads, each with its row and column, as switched off, in the picture and in the description."""
    colors = palette(dark)
    path, line = maps.crossed((y, x) for y, x, _ in off), dict(color=colors.text, width=1.5)
    shape = dict(type="path", name="switched off", path=path, opacity=0.75, fillcolor=colors.page, line=line)
    frame["shapes"] = [shape]
    frame["meta"]["description"] += f" Switched off, crossed out: {'; '.join(head.title for *_, head in off)}."


def _light(
    trace: Trace, kind: str, row: int, rows: Rows, margins: tuple[float, float], frame: dict, dark: bool
) -> None:
    """Mark a row of queries in every map by a line on either side. ValueError if the row does not exist."""
    first = trace.map(kind)
    count, (above, gap) = first.weights.shape[1], margins
    within("row", row, 0, count - 1)
    left, right = (-0.5 + (gap + side) / (1 + 2 * gap) for side in (0, 1))
    top, bottom = (-0.5 + (above + (row + side) / count) / (1 + above + gap) for side in (0, 1))
    path = "".join(
        f"M{x + left:.4f},{y + edge:.4f}L{x + right:.4f},{y + edge:.4f}"
        for y, x, _ in placed(rows)
        for edge in (top, bottom)
    )
    line = dict(color=palette(dark).outline, width=1.5)
    frame.setdefault("shapes", []).append(dict(type="path", name="row", path=path, line=line))
    token = labels.shown(trace.queries(first))[row]
    frame["meta"]["description"] += f" Marked in every map: row {row + 1}, {token}."


def _names(means: Collection[int], rows: Rows, dark: bool) -> dict:
    """The names above the maps. means : layers with the mean of their heads alone."""
    places = list(placed(rows))
    return dict(
        type="scatter",
        mode="text",
        x=[x for _, x, _ in places],
        y=[y - 0.5 + LABEL / 2.3 for y, _, _ in places],
        text=[f"{head.layer + 1}·{'mean' if head.layer in means else head.head + 1}" for _, _, head in places],
        textposition="middle center",
        hoverinfo="skip",
        textfont=dict(size=10, color=palette(dark).text),
        cliponaxis=False,
    )


def _shown(trace: Trace, kind: str, rows: Rows, root: bool) -> str:
    """The description of the maps."""
    first = trace.map(kind)
    (queries, keys), sides = first.weights.shape[1:], trace.sides(first)
    blocks, count = block(queries, keys), len(list(placed(rows)))
    text = f"{count} {kind} heads, each a map of {queries} {sides[0]} tokens by {keys} {sides[1]} tokens"
    text += f", a cell the largest weight of {blocks[0]} by {blocks[1]} tokens" if max(blocks) > 1 else ""
    text += ", shaded by the square root of weights" if root else ""
    hidden = any(not trace.visible(m).all() for m in trace.maps if m.kind == kind)
    return text + ("; what a query cannot see is hatched" if hidden else "")


def _arrangement(rows: Rows, order: str | None, columns: dict[str, dict[Head, float]]) -> str:
    if order:
        return f"; sorted from high to low{by_head.extremes(order, columns[order])}"
    return f"; {len(rows)} layers downwards, heads across"


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
    maps: Iterable[Iterable[np.ndarray | None]], theme: Theme, margins: tuple[float, float] = (0, 0), root: bool = False
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
    return _encode(pixels, picture_colors(theme))


def data_url(picture: bytes) -> str:
    """A PNG as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(picture).decode()}"


def shades(weights: np.ndarray, root: bool) -> np.ndarray:
    """The place of each weight in `picture_colors`, uint8."""
    return (np.clip(np.sqrt(weights) if root else weights, 0, 1) * (_SHADES - 1) + 1.5).astype(np.uint8)


def picture_colors(theme: Theme) -> np.ndarray:
    """The palette of a picture, uint8 (n, 3): transparent, the shades of weights, and the two shades of hidden
    cells."""
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
