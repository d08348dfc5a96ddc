"""Every head of a kind at once: small maps in layers and heads, or in the order of a statistic.

The maps lie over a heatmap of heads (grid.py) as one picture (mosaic.py), not as a plot each.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.figures import labels, marks
from attnviz.figures.by_head import grid, mosaic
from attnviz.figures.by_head.grid import LABEL, Rows, head_name, placed
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, palette
from attnviz.figures.titles import statistic_title
from attnviz.heads import Head
from attnviz.trace import Trace

_GAP = 0.035  # round a map, as a share of its side; with a frame twice that


def arranged(trace: Trace, kind: str, table: pd.DataFrame | None = None, order: str | None = None) -> Rows:
    """The heads of a kind in rows, as the overview shows them: one row for each layer; or sorted by a column of the
    table, highest first.

    None where a layer has fewer heads than another, and after the last head. Heads without a value (NaN) come last.
    """
    trace.map(kind)  # says which kinds there are
    layers = [
        [Head(kind, m.layer, head) for head in range(len(m.weights))]
        for m in sorted(trace.maps, key=lambda m: m.layer)
        if m.kind == kind
    ]
    across = max(map(len, layers))
    if order is not None:
        values = grid.values_by_head(table, kind, order)
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
    A map of more than 64 tokens a side is pooled, each cell the largest weight of its block; what a query cannot see is
    hatched. ValueError when the table lacks the column, or the trace the kind.
    """
    kind = kind or (trace.maps or [trace.map()])[0].kind
    rows = arranged(trace, kind, table, order)
    columns = {name: grid.values_by_head(table, kind, name) for name in dict.fromkeys((order, color)) if name}
    cells = grid.cells(rows, columns, dark, color, off=off)
    said = f"{_shown(trace, kind, rows, root)}{_arrangement(rows, order, columns)}"
    said += f"; frames: {statistic_title(color)}." if color else "."
    frame = grid.frame(rows, bool(order), bool(color), title, dark, said)
    frame["images"] = [_picture(trace, kind, rows, margins(bool(order), bool(color)), root, dark)]
    if places := [(y, x) for y, x, head in placed(rows) if head in off]:
        _cross_out(places, rows, frame, dark)
    if row is not None:
        _light(trace, kind, row, rows, margins(bool(order), bool(color)), frame, dark)
    return build([cells, *([_names(rows, dark)] if order else [])], frame)


def margins(named: bool, framed: bool) -> tuple[float, float]:
    """Above a map and on its other sides, as shares of its side."""
    gap = _GAP * (1 + framed)
    return (LABEL if named else gap, gap)


def small_maps(trace: Trace, kind: str, rows: Rows) -> list[list[np.ndarray | None]]:
    """The pooled map (q, k) of each head of `rows`; NaN where a cell is not visible."""
    pooled = {}
    for attention in (m for m in trace.maps if m.kind == kind):
        seen = mosaic.pool(trace.visible(attention)[None])
        pooled[attention.layer] = np.where(seen, mosaic.pool(attention.weights), np.nan)
    return [[head and pooled[head.layer][head.head] for head in row] for row in rows]


def _picture(trace: Trace, kind: str, rows: Rows, margins: tuple[float, float], root: bool, dark: bool) -> dict:
    """The maps as one image over all cells."""
    picture = mosaic.png(small_maps(trace, kind, rows), palette(dark), margins, root)
    place = dict(xref="x", yref="y", x=-0.5, y=-0.5, xanchor="left", yanchor="top", layer="above")
    size = dict(sizex=len(rows[0]), sizey=len(rows), sizing="stretch")
    return dict(source=mosaic.address(picture)) | place | size


def _cross_out(places: list[tuple[int, int]], rows: Rows, frame: dict, dark: bool) -> None:
    """Show heads (by place) as switched off: marks and description."""
    colors = palette(dark)
    frame["shapes"] = [
        dict(
            type="path",
            name="switched off",
            path=marks.crossed(places),
            opacity=0.75,
            fillcolor=colors.page,
            line=dict(color=colors.text, width=1.5),
        )
    ]
    names = "; ".join(head_name(rows[y][x]) for y, x in places)
    frame["meta"]["description"] += f" Switched off, crossed out: {names}."


def _light(
    trace: Trace, kind: str, row: int, rows: Rows, margins: tuple[float, float], frame: dict, dark: bool
) -> None:
    """Mark a row of queries in every map by a line on either side. ValueError where there is no such row."""
    first = trace.map(kind)
    count, (above, gap) = first.weights.shape[1], margins
    if not 0 <= row < count:
        raise ValueError(f"row must be from 0 to {count - 1}; got {row}")
    left, right = (-0.5 + (gap + side) / (1 + 2 * gap) for side in (0, 1))
    top, bottom = (-0.5 + (above + (row + side) / count) / (1 + above + gap) for side in (0, 1))
    path = "".join(
        f"M{x + left:.4f},{y + edge:.4f}L{x + right:.4f},{y + edge:.4f}"
        for y, x, _ in placed(rows)
        for edge in (top, bottom)
    )
    line = dict(color=palette(dark).outline, width=1.5)
    frame.setdefault("shapes", []).append(dict(type="path", name="row", path=path, line=line))
    token = trace.queries(first)[row]
    frame["meta"]["description"] += f" Marked in every map: row {row + 1}, {labels.plain(token.text)}."


def _names(rows: Rows, dark: bool) -> dict:
    """The names above the maps."""
    places = list(placed(rows))
    return dict(
        type="scatter",
        mode="text",
        x=[x for _, x, _ in places],
        y=[y - 0.5 + LABEL / 2.3 for y, _, _ in places],
        text=[f"{head.layer + 1}·{head.head + 1}" for _, _, head in places],
        textposition="middle center",
        hoverinfo="skip",
        textfont=dict(size=10, color=palette(dark).text),
        cliponaxis=False,
    )


def _shown(trace: Trace, kind: str, rows: Rows, root: bool) -> str:
    """The description: what the maps are."""
    first = trace.map(kind)
    (queries, keys), sides = first.weights.shape[1:], trace.sides(first)
    blocks, count = mosaic.block(queries, keys), len(list(placed(rows)))
    text = f"{count} {kind} heads, each a map of {queries} {sides[0]} tokens by {keys} {sides[1]} tokens"
    text += f", a cell the largest weight of {blocks[0]} by {blocks[1]} tokens" if max(blocks) > 1 else ""
    text += ", shaded by the square root of weights" if root else ""
    hidden = any(not trace.visible(m).all() for m in trace.maps if m.kind == kind)
    return text + ("; what a query cannot see is hatched" if hidden else "")


def _arrangement(rows: Rows, order: str | None, columns: dict[str, dict[Head, float]]) -> str:
    if order:
        return f"; sorted from high to low{grid.extremes(order, columns[order])}"
    return f"; {len(rows)} layers downwards, heads across"
