"""Agreement of attention and attributions, one bar per target token, and the band in which random orders mostly lie."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from attnviz.figures import hover, labels
from attnviz.figures.axes import Keys, key_axis, value_axis
from attnviz.figures.chart import Chart
from attnviz.figures.checks import require
from attnviz.figures.theme import build, layout, note, palette
from attnviz.trace import Token

_HEIGHT, _TITLE = 240, 30  # px of the bars, of a title
_ERRORS = 1.96  # standard deviations on either side hold 95% of a normal distribution


def agreement_bars(
    tokens: Sequence[Token], frame: pd.DataFrame, spread: float, title: str | None = None, *, dark: bool = False
) -> Chart:
    """tokens : T target tokens. frame : the rows of one method of `faithfulness.agreement`, one a token. spread :
    standard deviation of τ between random orders (`faithfulness.spread_of_tau`); the band is 1.96 of it either way.

    Tokens on whose first source token both agree have a full bar, others a pale one. ValueError for other numbers of
    rows.
    """
    require(frame, ("tau_b", "top1"), "frame of the agreement")
    if len(frame) != len(tokens):
        raise ValueError(f"frame must have one row per token, {len(tokens)}; got {len(frame)}")
    left, right, xaxis = key_axis(Keys(tokens), "bottom")
    above = _TITLE if title else 0
    margin = (left, right, 24 + above, 72)
    figure = layout(dark, _HEIGHT + above, margin, title and labels.escape(title), _words(tokens, frame, spread))
    edge, colors = min(_ERRORS * spread, 1), palette(dark)
    figure |= dict(
        xaxis=xaxis | dict(anchor="y"),
        yaxis=value_axis(dark, range=[-1.05, 1.05], tickvals=[-1, -0.5, 0, 0.5, 1]),
        shapes=[dict(type="rect", xref="paper", x0=0, x1=1, y0=-edge, y1=edge, layer="below", line=dict(width=0))],
        annotations=[note("τ-b; grey: 95% of random orders", dark, x=0, y=1, **_CORNER)],
    )
    figure["shapes"][0]["fillcolor"] = colors.grid
    return build([_bars(tokens, frame, colors.diverging[-1])], figure)


_CORNER = dict(xref="paper", yref="paper", xanchor="left", yanchor="bottom")


def _bars(tokens: Sequence[Token], frame: pd.DataFrame, color: str) -> dict:
    said = {True: "same first source token", False: "another first source token"}
    return dict(
        type="bar",
        y=[None if pd.isna(value) else round(float(value), 4) for value in frame["tau_b"]],
        width=0.82,
        marker=dict(color=color, opacity=[1.0 if same else 0.45 for same in frame["top1"]], line=dict(width=0)),
        hoverinfo="text",
        hovertext=[
            f"{token}: τ-b {tau:+.2f}, {said[bool(same)]}"
            for token, tau, same in zip(hover.placed(tokens), frame["tau_b"], frame["top1"])
        ],
    )


def _words(tokens: Sequence[Token], frame: pd.DataFrame, spread: float) -> str:
    least, mean = int(frame["tau_b"].fillna(2).to_numpy().argmin()), frame["tau_b"].mean()
    return (
        f"Kendall’s τ-b of attention and attributions for {len(tokens)} target tokens: mean {mean:+.2f}; "
        f"random orders are expected to have 0 ± {spread:.2f} for each. Lowest: {labels.quoted(tokens[least])}, "
        f"{frame['tau_b'].iloc[least]:+.2f}. The same first source token for {int(frame['top1'].sum())} of them."
    )
