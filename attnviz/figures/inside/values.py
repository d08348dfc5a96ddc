"""Values times their weights, and the context that they sum to: a row each, one column per dimension."""

from __future__ import annotations

import numpy as np

from attnviz.figures import hover, labels
from attnviz.figures.axes import rows_height
from attnviz.figures.chart import Chart
from attnviz.figures.theme import CLEAR, build, colorscale, layout, note, palette

_TITLE, _TOP, _BELOW = 30, 22, 34  # px of a title; above and below the cells
SHOWN = 24  # dimensions


def weighted_values(
    opened, count: int = SHOWN, title: str | None = None, *, dark: bool = False, scale: bool = True
) -> Chart:
    """opened : an `inside.Step`. Row j: the weight of source token j times its value; last row: their sum, the context.

    Columns are the `count` dimensions in which the context is furthest from 0, the furthest first. scale : written
    under the cells.
    """
    order = np.argsort(-np.abs(opened.context), kind="stable")[:count]
    cells = np.vstack([opened.weighted[:, order], opened.context[None, order]]).astype(np.float32)
    most = float(np.abs(cells).max()) or 1.0
    names = [*labels.ticks(opened.keys), "<b>context</b>"]
    above, rows = _TOP + (_TITLE if title else 0), len(names)
    left = min(max(7 * max(map(labels.width, names[:-1])) + 12, 66), 104)
    frame = layout(
        dark,
        above + rows_height(rows) + _BELOW,
        (left, 12, above, _BELOW),
        title and labels.escape(title),
        describe_values(opened, order),
    )
    axis = dict(fixedrange=True, showgrid=False, zeroline=False, ticklen=3, tickcolor=CLEAR)
    shown = labels.thin(rows, int(rows_height(rows) / 15), keep=rows - 1)
    frame |= dict(
        xaxis=axis | dict(showticklabels=False, ticks="", range=[-0.5, len(order) - 0.5]),
        yaxis=axis | dict(range=[rows - 0.5, -0.5], tickvals=shown, ticktext=[names[place] for place in shown]),
        annotations=[_heading(len(order), len(opened.context), most, dark)] if scale else [],
        shapes=[_line_above_the_context(rows, dark)],
    )
    return build([_cells(opened, cells, order, most, dark)], frame)


def describe_values(opened, order: np.ndarray) -> str:
    """How much of the context's length comes from the token with the largest weight. Plain text, not escaped."""
    best = int(opened.weights.argmax())
    lengths = np.linalg.norm(opened.weighted, axis=-1)
    return (
        f"Weighted values and context of step {opened.step + 1}, {labels.quoted(opened.token)}: {len(order)} of "
        f"{len(opened.context)} dimensions. {labels.quoted(opened.keys[best])} has weight {opened.weights[best]:.2f}; "
        f"its weighted value has length {lengths[best]:.2f}, the context {float(np.linalg.norm(opened.context)):.2f}."
    )


def _heading(shown: int, dimensions: int, most: float, dark: bool) -> dict:
    text = f"{shown} of {dimensions} dimensions, −{most:.2f} to {most:.2f}"
    return note(text, dark, x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom")


def _line_above_the_context(rows: int, dark: bool) -> dict:
    line = dict(color=palette(dark).muted, width=1)
    return dict(type="line", xref="paper", x0=0, x1=1, yref="y", y0=rows - 1.5, y1=rows - 1.5, line=line)


def _cells(opened, cells: np.ndarray, order: np.ndarray, most: float, dark: bool) -> dict:
    rows = [*hover.placed(opened.keys), "context"]
    return dict(
        type="heatmap",
        z=np.round(cells, 4),
        zmin=-most,
        zmax=most,
        xgap=1,
        ygap=1,
        colorscale=colorscale(palette(dark).diverging),
        showscale=False,
        hoverinfo="text",
        hovertext=[
            [f"{row}, dimension {number + 1}: {value:+.3f}" for number, value in zip(order.tolist(), values.tolist())]
            for row, values in zip(rows, cells)
        ],
    )
