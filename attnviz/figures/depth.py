"""How far each layer looks: the share of its weight by distance, a line a layer, the deeper the darker (lighter on dark)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from attnviz.figures import labels
from attnviz.figures.theme import CLEAR, build, layout, note, palette

_HEIGHT, _TITLE = 300, 30


def by_distance(
    frame: pd.DataFrame, title: str | None = None, *, reach: int | None = None, dark: bool = False
) -> go.Figure:
    """frame : of `rollout.by_distance`, columns layer, distance, weight. reach : the largest distance shown, all unless given."""
    if missing := [name for name in ("layer", "distance", "weight") if name not in frame]:
        raise ValueError(f"the frame must have the columns layer, distance, weight; {', '.join(missing)} missing")
    if frame.empty:
        raise ValueError("the frame must hold at least one layer; got none")
    shown = frame if reach is None else frame[frame["distance"].abs() <= reach]
    colors, layers = palette(dark), list(dict.fromkeys(frame["layer"]))
    ramp = np.linspace(2, len(colors.sequential) - 1, len(layers)).round().astype(int)
    data = [
        dict(
            type="scatter",
            mode="lines+markers",
            name=f"layer {layer + 1}",
            x=part["distance"].to_list(),
            y=part["weight"].round(4).to_list(),
            line=dict(color=colors.sequential[place], width=2),
            marker=dict(size=4),
            hovertemplate="%{y:.1%}",
        )
        for layer, place in zip(layers, ramp)
        for part in [shown[shown["layer"] == layer]]
    ]
    best = frame.loc[frame.groupby("layer", sort=False)["weight"].idxmax()]
    peaks = "; ".join(
        f"layer {row.layer + 1} most at {_away(row.distance)}, {row.weight:.0%}" for row in best.itertuples()
    )
    above = _TITLE if title else 0
    frame_ = layout(
        dark,
        _HEIGHT + above,
        (44, 12, 34 + above, 44),
        title and labels.escape(title),
        f"Share of each layer's weight by distance from the query's own place: {peaks}.",
    )
    axis = dict(gridcolor=colors.grid, zeroline=False, fixedrange=True, tickfont=dict(size=11, color=colors.muted))
    frame_ |= dict(
        xaxis=axis | dict(showgrid=False, tickcolor=CLEAR),
        yaxis=axis | dict(rangemode="tozero", tickformat=".0%"),
        showlegend=True,
        hovermode="x unified",
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom", font=dict(size=12)),
        annotations=[
            note(
                "← keys before the query · 0 · after it →",
                dark,
                x=0.5,
                y=0,
                xref="paper",
                yref="paper",
                yanchor="top",
                yshift=-24,
            )
        ],
    )
    return build(data, frame_)


def _away(distance: int) -> str:
    if distance == 0:
        return "its own place"
    return f"{abs(distance)} {'before' if distance < 0 else 'after'}"
