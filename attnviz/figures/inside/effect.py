"""What a change does to each target token: its log-probability, and how far the next-token distribution moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnviz.figures import hover, labels
from attnviz.figures.axes import Keys, key_axis, value_axis
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, layout, note, palette
from attnviz.trace import Token

_HEIGHT, _TITLE = 300, 30  # px of both rows of bars, of a title
_LOWER, _UPPER = [0, 0.42], [0.56, 1]  # of the height: total variation, log-probability
_CORNER = dict(xref="paper", yref="paper", xanchor="left", yanchor="bottom")


def effect_bars(
    tokens: Sequence[Token], changes: np.ndarray, variation: np.ndarray, title: str | None = None, *, dark: bool = False
) -> Chart:
    """tokens : T target tokens. changes (T,) : of their log-probabilities, in nats. variation (T,) : total variation, 0
    to 1. ValueError for other numbers of them.
    """
    if not len(tokens) == len(changes) == len(variation):
        counts = f"{len(changes)} and {len(variation)}"
        raise ValueError(f"changes and variation must have one number per token, {len(tokens)}; got {counts}")
    left, right, xaxis = key_axis(Keys(tokens), "bottom")
    above = _TITLE if title else 0
    frame = layout(
        dark, _HEIGHT + above, (left, right, 24 + above, 72), title and labels.escape(title), _words(tokens, changes)
    )
    frame |= dict(
        xaxis=xaxis | dict(anchor="y"),
        yaxis=value_axis(dark, domain=_LOWER, range=[0, 1.05], tickvals=[0, 0.5, 1]),
        yaxis2=value_axis(dark, domain=_UPPER, nticks=4),
        annotations=[
            note("change of log-probability (nats)", dark, x=0, y=1, **_CORNER),
            note("total variation of the next token", dark, x=0, y=_LOWER[1], **_CORNER),
        ],
    )
    colors = palette(dark)
    signs = [colors.diverging[-1 if value >= 0 else 0] for value in changes]
    bars = [
        _bars(tokens, variation, "y", colors.muted, "total variation at"),
        _bars(tokens, changes, "y2", signs, "change of log-probability of"),
    ]
    return build(bars, frame)


def _words(tokens: Sequence[Token], changes: np.ndarray) -> str:
    least = int(np.argmin(changes))
    return (
        f"Effect on {len(tokens)} target tokens: {float(np.sum(changes)):+.2f} nats in all; most on "
        f"{labels.quoted(tokens[least])}, {float(changes[least]):+.2f}."
    )


def _bars(tokens: Sequence[Token], values: np.ndarray, axis: str, color, said: str) -> dict:
    return dict(
        type="bar",
        y=[round(float(value), 4) for value in values],
        yaxis=axis,
        width=0.82,
        marker=dict(color=color, line=dict(width=0)),
        hoverinfo="text",
        hovertext=[f"{said} {token}: {value:+.3f}" for token, value in zip(hover.placed(tokens), values)],
    )
