"""One attention map as a picture: rows are queries from top to bottom, columns keys with their tokens along the top.

Axes hold positions, tokens sit in `ticktext`, so repeated tokens never merge and a click gives (key, query) as (x, y).
Cells that a query cannot see are hatched gaps, rows without weights gaps. Steps are counted from 0 in data, from 1 in words.
"""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go

from attnviz.figures import hover, labels, marks
from attnviz.figures.theme import CLEAR, build, colorscale, layout, lines, note, palette, scale_bar
from attnviz.figures.wording import BLANK, describe, links_sentence, row_sentence, strongest

_TOP, _TITLE, _SCALE = 86, 30, 34  # px above the cells for tokens, for a title; below them for the colour scale
_CELL = 24  # px a row, up to 20 rows; later rows get less and the picture grows slowly
_BARS = 196  # px a bar chart is tall
_LINE = 1.26  # height of a line of text, as a share of its size: Source Sans; most fonts take less
_COLUMN = 310  # px of the narrowest column we design for: three beside each other on a screen of 1366 px
_RIGHT = 56  # px of the widest right margin
_SPOKEN = 200_000  # cells up to which each has a sentence for the pointer; more would weigh tens of MB


def heatmap(
    grid,
    step: int | None = None,
    title: str | None = None,
    *,
    dark: bool = False,
    scale: bool = True,
    links=None,
    written: bool = True,
    room: int = _COLUMN,
) -> go.Figure:
    """Weights [queries, keys] of a Grid on a fixed scale from 0 to 1; the row of `step` is outlined.

    links : `alignment.Cells` to lay over it: sure links as solid squares, those that are only possible as dashed ones.
    room : px of the narrowest column that it may stand in: names of columns are left out where they would meet there.
    written : False leaves what the pointer reads in short, as `layout.meta["cells"]` (see hover.py), for who writes it out.
    ValueError if `step` is not a row of the grid, or a link not a cell of it.
    """
    _check_step(grid, step)
    weights = np.where(grid.visible, grid.weights, np.nan)
    bar = scale_bar([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"]) if scale else {}
    said = _said(weights, grid, _number)
    frame = _frame(grid, step, title, dark, scale, describe(grid, step), room)
    if links is not None:
        _lay_over(said, frame, grid, links, dark)
    cells = _cells(weights, palette(dark).sequential, (0, 1), bar)
    return build([cells | _hover(said, written, frame)], frame)


def difference(
    values, grid, names: tuple[str, str] = ("a", "b"), title: str | None = None, *, dark: bool = False
) -> go.Figure:
    """values [queries, keys] = weights of names[0] - weights of names[1]; the scale is -1..1 around 0.

    `grid` gives the tokens (either of the two: they are the same). ValueError if the shapes differ.
    """
    values = np.asarray(values, dtype=np.float32)
    if values.shape != grid.weights.shape:
        raise ValueError(f"values must have the grid's shape {grid.weights.shape}; got {values.shape}")
    values = np.where(grid.visible, values, np.nan)
    first, second = (labels.escape(labels.plain(name)) for name in names)
    bar = scale_bar([-1, -0.5, 0, 0.5, 1], ["−1", f"◂ {second}", "0", f"{first} ▸", "1"])
    cells = _cells(values, palette(dark).diverging, (-1, 1), bar)
    said = _said(values, grid, lambda value: _more(value, first, second))
    summary = f"Weights of {names[0]} minus weights of {names[1]}, {values.shape[0]} rows by {values.shape[1]} columns."
    if np.isfinite(values).any():
        row, column = np.unravel_index(np.nanargmax(np.abs(values)), values.shape)
        query, key = labels.quoted(grid.queries[row]), labels.quoted(grid.keys[column])
        summary += f" Largest: {query} looks at {key}, {_more(float(values[row, column]), *names)}."
    frame = _frame(grid, None, title, dark, True, summary)
    return build([cells | _hover(said, True, frame)], frame)


def step_bars(grid, step: int, title: str | None = None, *, dark: bool = False) -> go.Figure:
    """The weights of one step over the keys, from 0 to 1, under the columns of a heatmap of the same width.

    The highest bar carries its value. ValueError if `step` is not a row of the grid.
    """
    _check_step(grid, step)
    color = lines([grid.mechanism], dark)[grid.mechanism].color
    weights = np.where(grid.visible[step], grid.weights[step], np.nan)
    best = strongest(grid, step)
    query = labels.escape(labels.quoted(grid.queries[step]))
    shown = weights.tolist()
    trace = dict(
        type="bar",
        y=np.round(weights, 4).astype(np.float32),
        width=0.82,
        marker=dict(color=color, line=dict(width=0)),
        text=[f"{weight:.2f}" if i == best else "" for i, weight in enumerate(shown)],
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        constraintext="none",
        textfont=dict(size=12),
        hoverinfo="text",
        hovertext=[
            f"{query} looks at {key}: {_number(w)}" for key, w in zip(hover.spoken(grid.keys), shown, strict=True)
        ],
    )
    left, right, xaxis = _keys(grid, "bottom")
    above = _TITLE if title else 0
    margin = (left, right, 18 + above, 72)
    frame = layout(dark, _BARS + above, margin, title and labels.escape(title), row_sentence(grid, step))
    frame["xaxis"] = xaxis
    frame["yaxis"] = dict(
        range=[0, 1],
        tickvals=[0, 0.5, 1],
        ticktext=["0", ".5", "1"],
        gridcolor=palette(dark).grid,
        zeroline=False,
        fixedrange=True,
        ticklabelstandoff=10,
        tickfont=dict(size=11, color=palette(dark).muted),
    )
    if best is None:
        frame["annotations"] = [note(BLANK, dark, x=0.5, y=0.5, xref="paper", yref="paper")]
    return build([trace], frame)


def _lay_over(said: dict | None, frame: dict, grid, links, dark: bool) -> None:
    """Links as outlines, in what the pointer reads, and in the description."""
    rows, columns = grid.weights.shape
    for query, key in sorted(links.possible | links.sure):
        if not (0 <= query < rows and 0 <= key < columns):
            raise ValueError(f"links must be cells of the map, {rows} by {columns}; got ({query}, {key})")
        if said:
            hover.add(said, query, key, f", a {'sure' if (query, key) in links.sure else 'possible'} link")
    squares = (("sure", links.sure, "solid"), ("possible", links.possible - links.sure, "4px,3px"))
    frame["shapes"] = [
        dict(
            type="path",
            name=f"{name} links",
            path=marks.squares(chosen),
            line=dict(color=color, width=width, dash=dash),
        )
        for name, chosen, dash in squares
        if chosen
        for color, width in (
            (palette(dark).page, 4),
            (palette(dark).text, 2),
        )  # one of the two stands out from any cell
    ] + frame.get("shapes", [])
    frame["meta"]["description"] += f" {links_sentence(grid, links)}"


def _check_step(grid, step: int | None) -> None:
    rows = len(grid.queries)
    if step is not None and not 0 <= step < rows:
        raise ValueError(f"step must be a row of the map, 0 to {rows - 1}; got {step}")


def _cells(values: np.ndarray, colors: tuple, span: tuple, bar: dict) -> dict:
    gap = 1 if max(values.shape) <= 64 else 0
    return dict(
        type="heatmap",
        z=np.round(values, 4).astype(np.float32),
        zmin=span[0],
        zmax=span[1],
        xgap=gap,
        ygap=gap,
        colorscale=colorscale(colors),
        hoverongaps=True,
        **(bar or dict(showscale=False)),
    )


def _said(values: np.ndarray, grid, words) -> dict | None:
    """What the pointer reads, in short; None in a map so large that it has no sentences."""
    return hover.short(values, grid, words) if values.size <= _SPOKEN else None


def _hover(said: dict | None, written: bool, frame: dict) -> dict:
    """What of it the trace has; when it is not to be written out, `frame` gets it in short."""
    if said is None:
        return dict(hovertemplate="query %{y:d}, key %{x:d}, counted from 0: %{z:.2f}<extra></extra>")
    if written:
        return dict(hovertext=hover.sentences(said), hoverinfo="text")
    frame["meta"]["cells"] = said
    return dict(hoverinfo="text")


def _frame(grid, step, title, dark: bool, scale: bool, description: str, room: int = _COLUMN) -> dict:
    colors, (rows, columns) = palette(dark), grid.weights.shape
    left, right, xaxis = _keys(grid, "top", room)
    above, below = _TOP + (_TITLE if title else 0), _SCALE if scale else 8
    height = above + _rows_height(rows) + below
    frame = layout(dark, height, (left, right, above, below), title and labels.escape(title), description)
    frame["xaxis"] = xaxis
    frame["yaxis"] = _query_axis(grid, step)
    frame["annotations"] = [
        note(
            f"{grid.sides[1]} →<br>{grid.sides[0]} ↓",
            dark,
            x=0,
            y=1,
            xref="paper",
            yref="paper",
            xanchor="right",
            yanchor="bottom",
            xshift=-6,
            yshift=4,
            align="right",
        )
    ]
    if not grid.visible.all():
        frame["meta"]["description"] += " What a query cannot see is hatched."
        frame["shapes"] = [
            dict(
                type="path",
                name="hidden",
                path=marks.hatched(~grid.visible),
                opacity=0.55,
                line=dict(color=colors.muted, width=1),
            )
        ]
    if step is not None:
        frame["shapes"] = frame.get("shapes", []) + [
            dict(
                type="rect",
                x0=-0.5,
                x1=columns - 0.5,
                y0=step - 0.5,
                y1=step + 0.5,
                line=dict(color=colors.outline, width=2),
            )
        ]
    return frame


def _keys(grid, side: str, room: int = _COLUMN) -> tuple[int, int, dict]:
    """Left and right margin in px, and the axis of the keys: the same for a heatmap and its bars.

    The margins leave room for the rows' labels and for slanted last columns. In the narrowest column no two labels meet:
    they slant where that fits, else they stand upright, then smaller, and some are left out where nothing else helps.
    """
    texts, count = labels.ticks(grid.keys), len(grid.keys)
    widest = max(map(labels.width, labels.ticks(grid.queries)), default=0)
    left = min(max(7 * widest + 12, 66), 104)
    cell = (room - left - _RIGHT) / max(count, 1)
    for angle, size in ((50, 12), (90, 11), (90, 10)):
        lean, rise = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        reach = [lean * 7 * labels.width(text) - (count - i - 0.5) * cell for i, text in enumerate(texts)]
        right = min(max(int(max(reach, default=0)) + 10, 10), _RIGHT)
        most = int((room - left - right) * rise / (_LINE * size))
        if most >= count:
            break
    shown = labels.thin(count, most)
    return (
        left,
        right,
        dict(
            side=side,
            range=[-0.5, count - 0.5],
            tickvals=shown,
            ticktext=[texts[i] for i in shown],
            fixedrange=True,
            showgrid=False,
            zeroline=False,
            tickangle=-angle,
            ticklabeloverflow="allow",
            ticklen=3,
            tickcolor=CLEAR,
            tickfont=dict(size=size),
        ),
    )


def _query_axis(grid, step: int | None) -> dict:
    count = len(grid.queries)
    texts = labels.ticks(grid.queries)
    size = 12 if count <= 30 else 11
    shown = labels.thin(count, max(1, int(_rows_height(count) / (_LINE * size))), keep=step)
    return dict(
        tickangle=0,
        ticklabeloverflow="allow",  # or Plotly measures each label, a third of a large map's time
        range=[count - 0.5, -0.5],
        tickvals=shown,
        fixedrange=True,
        showgrid=False,
        zeroline=False,
        ticklen=3,
        ticktext=[f"<b>{texts[i]}</b>" if i == step else texts[i] for i in shown],
        tickcolor=CLEAR,
        tickfont=dict(size=size),
    )


def _rows_height(n_rows: int) -> int:
    return _CELL * n_rows if n_rows <= 20 else min(_CELL * 20 + 3 * (n_rows - 20), 900)


def _number(weight: float) -> str:
    return "under 0.01" if 0 < weight < 0.005 else f"{weight:.2f}"


def _more(value: float, first: str, second: str) -> str:
    if abs(value) < 0.005:
        return f"the same in {first} and {second}"
    more, less = (first, second) if value > 0 else (second, first)
    return f"{abs(value):.2f} more in {more} than in {less}"
