"""The weights of one step as bars, under the columns of a heatmap of the same width."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from attnviz.figures import hover, labels
from attnviz.figures.axes import check_step, key_axis, value_axis
from attnviz.figures.theme import build, layout, lines, note
from attnviz.figures.wording import BLANK, row_sentence, strongest, weight_words

_HEIGHT, _TITLE = 196, 30  # px of the bars, of a title


def step_bars(grid, step: int, title: str | None = None, *, dark: bool = False) -> go.Figure:
    """The weights of one step over the keys, from 0 to 1, under the columns of a heatmap of the same width.

    The highest bar carries its value. ValueError if `step` is not a row of the grid.
    """
    check_step(grid, step)
    weights = np.where(grid.visible[step], grid.weights[step], np.nan)
    best = strongest(grid, step)
    left, right, xaxis = key_axis(grid, "bottom")
    above = _TITLE if title else 0
    margin = (left, right, 18 + above, 72)
    frame = layout(dark, _HEIGHT + above, margin, title and labels.escape(title), row_sentence(grid, step))
    frame |= dict(
        xaxis=xaxis,
        yaxis=value_axis(dark, range=[0, 1], tickvals=[0, 0.5, 1], ticktext=["0", ".5", "1"], zeroline=False),
    )
    if best is None:
        frame["annotations"] = [note(BLANK, dark, x=0.5, y=0.5, xref="paper", yref="paper")]
    return build([_bars(grid, step, weights, best, dark)], frame)


def _bars(grid, step: int, weights: np.ndarray, best: int | None, dark: bool) -> dict:
    query = labels.escape(labels.quoted(grid.queries[step]))
    shown = weights.tolist()
    return dict(
        type="bar",
        y=np.round(weights, 4).astype(np.float32),
        width=0.82,
        marker=dict(color=lines([grid.mechanism], dark)[grid.mechanism].color, line=dict(width=0)),
        text=[f"{weight:.2f}" if i == best else "" for i, weight in enumerate(shown)],
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        constraintext="none",
        textfont=dict(size=12),
        hoverinfo="text",
        hovertext=[
            f"{query} looks at {key}: {weight_words(weight)}"
            for key, weight in zip(hover.spoken(grid.keys), shown, strict=True)
        ],
    )
