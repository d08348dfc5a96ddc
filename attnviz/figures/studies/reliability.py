"""Reliability diagram: is a translation as often poor as its estimated risk says?"""

from __future__ import annotations

from collections.abc import Sequence

from attnviz.arguments import checked
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, layout, palette

_HEIGHT, _TITLE = 300, 30  # px of the panel, of a title


@checked
def reliability(bins: Sequence[tuple[float, float, int]], title: str | None = None, *, dark: bool = False) -> Chart:
    """bins : mean predicted risk, share that is poor, number of sentences (`confidence.Calibration.bins`; a card has
    them under `confidence`). Points on the dotted diagonal are right. ValueError without bins."""
    if not bins:
        raise ValueError("there must be at least one bin; got none")
    colors, above = palette(dark), _TITLE if title else 0
    axis = dict(
        range=[-0.02, 1.02],
        tickformat=".0%",
        gridcolor=colors.grid,
        zeroline=False,
        fixedrange=True,
        tickfont=dict(size=11, color=colors.muted),
    )
    figure = layout(dark, _HEIGHT + above, (56, 12, 14 + above, 48), title and labels.escape(title), _words(bins))
    figure |= dict(
        xaxis=axis | dict(title=dict(text="risk, estimated")),
        yaxis=axis | dict(title=dict(text="actually poor")),
        showlegend=False,
    )
    diagonal = dict(
        type="scatter", mode="lines", x=[0, 1], y=[0, 1], line=dict(color=colors.muted, dash="dot"), hoverinfo="skip"
    )
    return build([diagonal, _points(bins, colors.lines[0])], figure)


def _points(bins: Sequence[tuple[float, float, int]], color: str) -> dict:
    risks, poor, counts = zip(*bins)
    return dict(
        type="scatter",
        mode="lines+markers",
        x=list(risks),
        y=list(poor),
        customdata=list(counts),
        line=dict(color=color, width=2),
        marker=dict(size=9),
        hovertemplate="risk %{x:.0%}: %{y:.0%} of %{customdata} are poor<extra></extra>",
    )


def _words(bins: Sequence[tuple[float, float, int]]) -> str:
    parts = [f"{poor:.0%} at a risk of {risk:.0%}" for risk, poor, _ in bins]
    return f"Share of poor translations by their estimated risk: {', '.join(parts)}."
