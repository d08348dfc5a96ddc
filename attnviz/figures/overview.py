"""Every head of a kind at once: small maps in layers and heads, or in the order of a statistic; and one number a head as a map.

Both are a heatmap of heads: `customdata` of a cell is its [layer, head], counted from 0, which is what a click brings. In
words layers and heads count from 1. The maps lie over the cells as one picture (`mosaic`), not as a plot each.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from attnviz.figures import labels, marks, mosaic
from attnviz.figures.charts import name_of
from attnviz.figures.theme import CLEAR, build, colorscale, layout, note, palette, scale_bar
from attnviz.heads import Head
from attnviz.patterns import PATTERNS
from attnviz.trace import Trace

_ROOM, _LEAST, _HIGHEST = 720, 44, 150  # px of all rows together, of the lowest and the highest row
_TOP, _LEFT, _TITLE, _SCALE = 40, 62, 30, 34  # px above the cells and left of them; for a title; for the colour scale
_GAP = 0.035  # round a map, as a share of its side; with a frame twice that
_LABEL = 0.22  # above a map that says which head it is
_FEW = 50  # cells up to which a number is written into each
_NEAR = 0.05  # numbers that lie closer together have a third digit


def arranged(
    trace: Trace, kind: str, table: pd.DataFrame | None = None, order: str | None = None
) -> list[list[Head | None]]:
    """The heads of a kind as the overview lays them out, row by row: a row a layer; or by a column of the table, highest first.

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
        values = _values(table, kind, order)
        heads = sorted(
            (head for layer in layers for head in layer),
            key=lambda head: (math.isnan(value := values.get(head, math.nan)), -value),
        )
        layers = [heads[i : i + across] for i in range(0, len(heads), across)]
    return [row + [None] * (across - len(row)) for row in layers]


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
    dark: bool = False,
) -> go.Figure:
    """All heads of a kind (that of the first map, unless given) as small maps, weights from 0 to 1.

    table : of `heads.table`; order : the column that heads are sorted by, highest first; color : the column that frames show.
    root : shades follow the square root of weights, which lets faint patterns show. off : heads that are switched off, which
    are greyed and crossed out.
    A map of more than 64 tokens a side is pooled, each cell the largest weight of its block; what a query cannot see is
    hatched. ValueError when the table lacks the column, or the trace the kind.
    """
    kind = kind or (trace.maps or [trace.map()])[0].kind
    rows = arranged(trace, kind, table, order)
    maps = {m.layer: m for m in trace.maps if m.kind == kind}
    visible = trace.visible(next(iter(maps.values())))
    pooled = {layer: mosaic.pool(m.weights) for layer, m in maps.items()}
    edges = (_LABEL if order else _GAP * (1 + bool(color)), _GAP * (1 + bool(color)))
    picture = mosaic.png(
        [[head and pooled[head.layer][head.head] for head in row] for row in rows],
        mosaic.pool(visible[None])[0],
        palette(dark),
        edges,
        root,
    )
    columns = {column: _values(table, kind, column) for column in dict.fromkeys((order, color)) if column}
    cells = _cells(rows, columns, dark, color)
    said = _said(
        rows, visible.shape, trace.sides(trace.map(kind)), kind, order and (order, columns[order]), color, root
    )
    frame = _frame(rows, bool(order), bool(color), title, dark, said)
    frame["images"] = [
        dict(
            source=mosaic.address(picture),
            xref="x",
            yref="y",
            x=-0.5,
            y=-0.5,
            sizex=len(rows[0]),
            sizey=len(rows),
            sizing="stretch",
            layer="above",
            xanchor="left",
            yanchor="top",
        )
    ]
    if here := [(y, x) for y, row in enumerate(rows) for x, head in enumerate(row) if head in off]:
        _cross_out(here, rows, cells, frame, dark)
    return build([cells, *([_names(rows, dark)] if order else [])], frame)


def head_map(
    frame: pd.DataFrame,
    column: str,
    title: str | None = None,
    *,
    dark: bool = False,
    span: tuple[float, float] | None = None,
) -> go.Figure:
    """One number a head, layers downwards and heads across; around 0 in two colours when some are below 0.

    span : what the colours go from and to; else from the lowest number to the highest.
    frame : with columns kind, of which there must be one, layer, head and `column`; a head with NaN is a gap.
    """
    kinds = list(dict.fromkeys(frame["kind"])) if "kind" in frame else []
    if len(kinds) != 1:
        raise ValueError(f"the frame must hold the heads of one kind; got {', '.join(kinds) or 'none'}")
    values = _values(frame, kinds[0], column)
    layers = sorted({head.layer for head in values})
    across = max(head.head for head in values) + 1
    rows = [[head if (head := Head(kinds[0], layer, i)) in values else None for i in range(across)] for layer in layers]
    cells = _cells(rows, {column: values}, dark, column, span)
    there = [value for value in values.values() if not math.isnan(value)]
    if there and len(layers) * across <= _FEW:
        digits = 2 if max(there) - min(there) >= _NEAR or len(there) == 1 else 3
        cells |= dict(texttemplate=f"%{{z:.{digits}f}}", textfont=dict(size=11))
    said = f"{_title(column)} of {_count(rows)} {kinds[0]} heads{_extremes(column, values)}."
    return build([cells], _frame(rows, False, True, title, dark, said))


def _values(table: pd.DataFrame | None, kind: str, column: str) -> dict[Head, float]:
    """A column of a table, by head."""
    wanted = ("kind", "layer", "head", column)
    if table is None or any(name not in table for name in wanted):
        raise ValueError(
            f"the table must have the columns {', '.join(wanted)}; "
            f"got {'no table' if table is None else ', '.join(table)}"
        )
    chosen = table[table["kind"] == kind]
    return {
        Head(kind, int(layer), int(head)): float(value)
        for layer, head, value in zip(chosen["layer"], chosen["head"], chosen[column])
    }


def _title(column: str) -> str:
    return PATTERNS[column].title if column in PATTERNS else name_of(column)


def _name(head: Head) -> str:
    return f"layer {head.layer + 1}, head {head.head + 1}"


def _count(rows: list) -> int:
    return sum(head is not None for row in rows for head in row)


def _cells(
    rows: list, columns: dict[str, dict[Head, float]], dark: bool, color: str | None, span: tuple | None = None
) -> dict:
    """A heatmap with a cell a head, in the colour of a column or clear; it takes pointer and click."""
    nan = math.nan
    z = np.array([[columns[color].get(head, nan) if color else nan for head in row] for row in rows], dtype=np.float32)
    (scale, found), bar = _scale(z, dark), dict(showscale=False)
    span = span or found
    if np.isnan(z).all():  # clear; but in a heatmap without one number plotly lets the pointer find no cell
        z, scale = (
            np.array([[nan if head is None else 0 for head in row] for row in rows], dtype=np.float32),
            (CLEAR, CLEAR),
        )
    else:
        near, far = (span[0] + share * (span[1] - span[0]) for share in (0.015, 0.985))  # so that no end is cut off
        bar = scale_bar([near, sum(span) / 2, far], [f"{span[0]:.2g}", labels.escape(_title(color)), f"{span[1]:.2g}"])
    spoken = [
        [
            ""
            if head is None
            else f"{_name(head).capitalize()}"
            + "".join(
                f"<br>{labels.escape(_title(name))}: {values.get(head, nan):.3g}" for name, values in columns.items()
            )
            for head in row
        ]
        for row in rows
    ]
    return dict(
        type="heatmap",
        z=z,
        zmin=span[0],
        zmax=span[1],
        colorscale=colorscale(scale),
        xgap=2,
        ygap=2,
        hoverongaps=True,
        hoverinfo="text",
        hovertext=spoken,
        customdata=[[head and [head.layer, head.head] for head in row] for row in rows],
        **bar,
    )


def _scale(z: np.ndarray, dark: bool) -> tuple[tuple[str, ...], tuple[float, float]]:
    """Colours and their span: both sides of 0 when some values are below it, else from the lowest to the highest."""
    colors, there = palette(dark), z[~np.isnan(z)].astype(float)
    if not there.size:
        return colors.diverging[4:1:-1], (0.0, 1.0)
    if there.min() < 0:
        most = float(np.abs(there).max())
        return colors.diverging, (-most, most)
    low, high = float(there.min()), float(there.max())
    return colors.diverging[4:1:-1], (low, high) if high > low else (low - 0.5, low + 0.5)


def _cross_out(off: list[tuple[int, int]], rows: list, cells: dict, frame: dict, dark: bool) -> None:
    """Heads that are switched off, by place: as marks, in what the pointer reads, and in the description."""
    colors = palette(dark)
    frame["shapes"] = [
        dict(
            type="path",
            name="switched off",
            path=marks.crossed(off),
            opacity=0.75,
            fillcolor=colors.page,
            line=dict(color=colors.text, width=1.5),
        )
    ]
    for y, x in off:
        cells["hovertext"][y][x] += "<br>Switched off"
    frame["meta"]["description"] += f" Switched off, crossed out: {'; '.join(_name(rows[y][x]) for y, x in off)}."


def _names(rows: list, dark: bool) -> dict:
    """Which head each map is, above it."""
    places = [(x, y, head) for y, row in enumerate(rows) for x, head in enumerate(row) if head]
    return dict(
        type="scatter",
        mode="text",
        x=[x for x, _, _ in places],
        y=[y - 0.5 + _LABEL / 2.3 for _, y, _ in places],
        text=[f"{head.layer + 1}·{head.head + 1}" for _, _, head in places],
        textposition="middle center",
        hoverinfo="skip",
        textfont=dict(size=10, color=palette(dark).text),
        cliponaxis=False,
    )


def _frame(rows: list, ordered: bool, scale: bool, title: str | None, dark: bool, said: str) -> dict:
    down, across = len(rows), len(rows[0])
    tall = min(max(_ROOM / down, _LEAST), _HIGHEST) * (1 + _LABEL * ordered)
    above, below = (8 if ordered else _TOP) + (_TITLE if title else 0), _SCALE if scale else 8
    frame = layout(
        dark,
        round(down * tall) + above + below,
        (8 if ordered else _LEFT, 8, above, below),
        title and labels.escape(title),
        said,
    )
    axis = dict(fixedrange=True, showgrid=False, zeroline=False, tickcolor=CLEAR, ticklen=3, showticklabels=not ordered)
    layers = [next(head.layer for head in row if head) for row in rows]
    frame["xaxis"] = axis | dict(
        side="top",
        range=[-0.5, across - 0.5],
        tickvals=list(range(across)),
        ticktext=[str(i + 1) for i in range(across)],
    )
    frame["yaxis"] = axis | dict(
        range=[down - 0.5, -0.5], tickvals=list(range(down)), ticktext=[str(i + 1) for i in layers]
    )
    if not ordered:
        frame["annotations"] = [
            note(
                "head →<br>layer ↓",
                dark,
                x=0,
                y=1,
                xref="paper",
                yref="paper",
                xanchor="right",
                yanchor="bottom",
                xshift=-6,
                yshift=2,
                align="right",
            )
        ]
    return frame


def _said(
    rows: list, shape: tuple[int, int], sides: tuple[str, str], kind: str, order, color: str | None, root: bool
) -> str:
    """The overview in words; order : a column and its values."""
    blocks = mosaic.block(*shape)
    text = f"{_count(rows)} {kind} heads, each a map of {shape[0]} {sides[0]} tokens by {shape[1]} {sides[1]} tokens"
    text += f", a cell the largest weight of {blocks[0]} by {blocks[1]} tokens" if max(blocks) > 1 else ""
    text += ", shaded by the square root of weights" if root else ""
    text += "; what a query cannot see is hatched" if kind == "decoder" else ""
    text += (
        f"; sorted from high to low{_extremes(*order)}" if order else f"; {len(rows)} layers downwards, heads across"
    )
    return f"{text}; frames: {_title(color)}." if color else f"{text}."


def _extremes(column: str, values: dict[Head, float]) -> str:
    there = {head: value for head, value in values.items() if not math.isnan(value)}
    if not there:
        return ""
    low, high = min(there, key=there.get), max(there, key=there.get)
    return f"; {_title(column)}: highest in {_name(high)}, {there[high]:.3g}, lowest in {_name(low)}, {there[low]:.3g}"
