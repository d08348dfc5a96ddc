"""What heads and layers do, as figures. Heads are the cells of a heatmap: layers downwards, heads across, or in the
order of a statistic. The weight of layers by distance is one line per layer; deeper layers are darker (on a dark page
lighter).

`customdata` of a cell is its [layer, head], counted from 0; a click returns it. Texts count layers and heads from 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz.arguments import check_columns, checked, listed
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.theme import CLEAR, Theme, build, grid_axis, layout, legend, map_cells, note, palette, scale_bar
from attnviz.figures.wording import number, statistic_title
from attnviz.heads import Head

LABEL = 0.22  # of a map's side: the room above it that says which head it is
_ROOM, _LEAST, _HIGHEST = 720, 44, 150  # px of all rows together, of the lowest and the highest row
_TOP, _LEFT, _SCALE = 40, 62, 34  # px above the cells and left of them; below them for the colour scale
Rows = list[list[Head | None]]  # the heads as they are laid out; None for a place without one
_CELL = (104, 56)  # px of a cell at most: it holds one number
_WRITTEN = 50  # cells up to which a number is written into each
_NEAR = 0.05  # numbers that lie closer together have a third digit
_LINES = 300  # px of the panel of lines


def values_by_head(table: pd.DataFrame | None, kind: str, column: str) -> dict[Head, float]:
    """A column of a table of heads. ValueError when the table lacks it."""
    wanted = ("kind", "layer", "head", column)
    if table is None or any(name not in table for name in wanted):
        raise ValueError(
            f"the table must have the columns {listed(wanted)}; "
            f"got {'no table' if table is None else listed(map(str, table))}"
        )
    chosen = table[table["kind"] == kind]
    return {
        Head(kind, int(layer), int(head)): float(value)
        for layer, head, value in zip(chosen["layer"], chosen["head"], chosen[column])
    }


def placed(rows: Rows) -> Iterator[tuple[int, int, Head]]:
    """Row, column and head of each place that has a head."""
    return ((y, x, head) for y, row in enumerate(rows) for x, head in enumerate(row) if head is not None)


def extremes(column: str, values: dict[Head, float]) -> str:
    """The heads with the highest and the lowest value, in words; "" if no head has a value."""
    finite = {head: value for head, value in values.items() if not math.isnan(value)}
    if not finite:
        return ""
    low, high = min(finite, key=finite.__getitem__), max(finite, key=finite.__getitem__)
    return (
        f"; {statistic_title(column)}: highest in {high.title}, {number(finite[high], '.3g')}, "
        f"lowest in {low.title}, {number(finite[low], '.3g')}"
    )


def head_cells(
    rows: Rows,
    columns: dict[str, dict[Head, float]],
    dark: bool,
    color: str | None = None,
    span: tuple[float, float] | None = None,
    off: Collection[Head] = (),
) -> dict:
    """One cell for each head, in the colour of a column of `columns`, or transparent. It reacts to pointer and click.

    columns : name -> value of each head; the hover text has all of them. span : the values at the ends of the colour
        scale; off : heads that are switched off, which the hover text says.
    """
    values: Mapping[Any, float] = columns[color] if color else {}
    z = np.array([[values.get(head, math.nan) for head in row] for row in rows], dtype=np.float32)
    scale, range_ = _scale(z, dark)
    low, high = span or range_
    if np.isnan(z).all():  # clear; but in a heatmap without one number plotly lets the pointer find no cell
        z = np.array([[math.nan if head is None else 0 for head in row] for row in rows], dtype=np.float32)
        scale, bar = (CLEAR, CLEAR), None
    else:
        near, far = (low + share * (high - low) for share in (0.015, 0.985))  # so that no end is cut off
        ends = [number(low, ".2g"), labels.escape(statistic_title(color or "")), number(high, ".2g")]
        bar = scale_bar([near, (low + high) / 2, far], ends)
    texts = [[_spoken(head, columns, head in off) for head in row] for row in rows]
    places = [[head and [head.layer, head.head] for head in row] for row in rows]
    look = dict(xgap=2, ygap=2, hoverongaps=True, hoverinfo="text", hovertext=texts, customdata=places)
    return map_cells(z, (low, high), scale, bar, **look)


def _spoken(head: Head | None, columns: dict[str, dict[Head, float]], off: bool) -> str:
    """The hover text: the head, its value in each column, and whether it is switched off."""
    if head is None:
        return ""
    values = (
        f"<br>{labels.escape(statistic_title(name))}: {number(by_head.get(head, math.nan), '.3g')}"
        for name, by_head in columns.items()
    )
    return head.title.capitalize() + "".join(values) + ("<br>Switched off" if off else "")


def _scale(z: np.ndarray, dark: bool) -> tuple[tuple[str, ...], tuple[float, float]]:
    """Colours and their span: diverging around 0 if some values are negative, else from the lowest to the highest."""
    colors, finite = palette(dark), z[~np.isnan(z)].astype(float)
    if not finite.size:
        return colors.diverging[4:1:-1], (0.0, 1.0)
    low, high = float(finite.min()), float(finite.max())
    if low < 0:
        most = max(-low, high)
        return colors.diverging, (-most, most)
    return colors.diverging[4:1:-1], (low, high) if high > low else (low - 0.5, low + 0.5)


def side_margins(frame: dict) -> int:
    """Px left and right of the cells."""
    return frame["margin"]["l"] + frame["margin"]["r"]


def head_frame(
    rows: Rows,
    ordered: bool,
    scale: bool,
    title: str | None,
    dark: bool,
    description: str,
    highest: float = _HIGHEST,
    averaged: bool = False,
) -> dict:
    """The layout. ordered : heads have their names above them, not layers and heads along the axes.

    scale : with a colour scale. highest : the largest height of a row in px. averaged : the one column is of means.
    """
    down, across = len(rows), len(rows[0])
    tall = min(max(_ROOM / down, _LEAST), highest) * (1 + LABEL * ordered)
    above, below = 8 if ordered else _TOP, _SCALE if scale else 8
    margin = (8 if ordered else _LEFT, 8, above, below)
    look = layout(dark, round(down * tall) + above + below, margin, title, description)
    axis = dict(fixedrange=True, showgrid=False, zeroline=False, tickcolor=CLEAR, ticklen=3, showticklabels=not ordered)
    heads, layers = range(across), [next(head.layer for head in row if head) for row in rows]
    look["xaxis"] = axis | dict(
        side="top",
        range=[-0.5, across - 0.5],
        tickvals=list(heads),
        ticktext=["mean of heads"] if averaged else [str(i + 1) for i in heads],
    )
    look["yaxis"] = axis | dict(
        range=[down - 0.5, -0.5], tickvals=list(range(down)), ticktext=[str(i + 1) for i in layers]
    )
    if not ordered:
        place = dict(xref="paper", yref="paper", xanchor="right", yanchor="bottom", xshift=-6, yshift=2)
        look["annotations"] = [
            note("layer ↓" if averaged else "head →<br>layer ↓", dark, x=0, y=1, align="right", **place)
        ]
    return look


@checked
def head_map(
    frame: pd.DataFrame,
    column: str,
    title: str | None = None,
    *,
    dark: bool = False,
    span: tuple[float, float] | None = None,
) -> Chart:
    """One number for each head, layers downwards and heads across; in two colours around 0 if some are negative.

    span : the numbers at the ends of the colour scale; by default the lowest and the highest.
    frame : with columns kind, of which there must be one, layer, head and `column`; a head with NaN is a gap.

    >>> figures.head_map(heads.table(trace), "max_weight").data[0].text
    (['0.61'],)
    """
    kinds = list(dict.fromkeys(frame["kind"])) if "kind" in frame else []
    if len(kinds) != 1:
        raise ValueError(f"the frame must hold the heads of one kind; got {', '.join(kinds) or 'none'}")
    kind, values = kinds[0], values_by_head(frame, kinds[0], column)
    layers, across = sorted({head.layer for head in values}), max(head.head for head in values) + 1
    places = [[Head(kind, layer, i) for i in range(across)] for layer in layers]
    rows = [[head if head in values else None for head in row] for row in places]
    cells = head_cells(rows, {column: values}, dark, column, span)
    numbers = {head: value for head, value in values.items() if not math.isnan(value)}
    finite = list(numbers.values())
    if finite and len(layers) * across <= _WRITTEN:
        digits = 2 if max(finite) - min(finite) >= _NEAR or len(finite) == 1 else 3
        text = [[number(numbers[head], f".{digits}f") if head in numbers else "" for head in row] for row in rows]
        cells |= dict(text=text, texttemplate="%{text}", textfont=dict(size=11))
    description = f"{statistic_title(column)} of {len(values)} {kind} heads{extremes(column, values)}."
    frame = head_frame(rows, False, True, title, dark, description, _CELL[1])
    frame["meta"]["widest"] = side_margins(frame) + _CELL[0] * across  # px: a page makes it no wider
    return build([cells], frame)


@checked
def by_distance(
    frame: pd.DataFrame, title: str | None = None, *, reach: int | None = None, dark: bool = False
) -> Chart:
    """frame : of `rollout.by_distance`, columns layer, distance, weight.

    reach : the largest distance shown, all unless given.

    >>> figures.by_distance(rollout.by_distance(trace, "cross"), reach=2).data[0].x
    (-2, -1, 0, 1, 2)
    """
    check_columns(frame, ("layer", "distance", "weight"), "frame")
    if frame.empty:
        raise ValueError("the frame must hold at least one layer; got none")
    shown = frame if reach is None else frame[frame["distance"].abs() <= reach]
    layers = list(dict.fromkeys(frame["layer"]))
    description = f"Share of each layer's weight by distance from the query's own place: {_peaks(frame)}."
    look = layout(dark, _LINES, (44, 12, 34, 44), title, description) | _distance_axes(dark)
    return build(_layer_lines(shown, layers, palette(dark)), look)


def _layer_lines(frame: pd.DataFrame, layers: list[int], colors: Theme) -> list[dict]:
    shades = np.linspace(2, len(colors.sequential) - 1, len(layers)).round().astype(int)
    parts = [frame[frame["layer"] == layer] for layer in layers]
    return [
        dict(
            type="scatter",
            mode="lines+markers",
            name=f"layer {layer + 1}",
            x=part["distance"].to_list(),
            y=part["weight"].round(4).to_list(),
            line=dict(color=colors.sequential[shade], width=2),
            marker=dict(size=4),
            hovertemplate="%{y:.1%}",
        )
        for layer, part, shade in zip(layers, parts, shades, strict=True)
    ]


def _peaks(frame: pd.DataFrame) -> str:
    """The distance with most weight in each layer, in words."""
    best = frame.loc[frame.groupby("layer", sort=False)["weight"].idxmax()]
    return "; ".join(
        f"layer {row.layer + 1} most at {_away(row.distance)}, {row.weight:.0%}" for row in best.itertuples()
    )


def _distance_axes(dark: bool) -> dict:
    colors = palette(dark)
    axis = grid_axis(colors)
    place = dict(x=0.5, y=0, xref="paper", yref="paper", yanchor="top", yshift=-24)
    return dict(
        xaxis=axis | dict(showgrid=False, tickcolor=CLEAR),
        yaxis=axis | dict(rangemode="tozero", tickformat=".0%"),
        hovermode="x unified",
        annotations=[note("← keys before the query · 0 · after it →", dark, **place)],
        **legend(1),
    )


def _away(distance: int) -> str:
    if distance == 0:
        return "its own place"
    return f"{abs(distance)} {'before' if distance < 0 else 'after'}"
