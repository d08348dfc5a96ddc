"""The share of each layer's weight by distance, one line per layer. Deeper layers are darker (on
a dark page lighter)."""

from __future__ import annotations

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz.arguments import check_columns, checked
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.theme import CLEAR, TITLE, Theme, build, layout, note, palette

_HEIGHT = 300  # px of the panel
_COLUMNS = ("layer", "distance", "weight")


@checked
def by_distance(
    frame: pd.DataFrame, title: str | None = None, *, reach: int | None = None, dark: bool = False
) -> Chart:
    """frame : of `rollout.by_distance`, columns layer, distance, weight.

    reach : the largest distance shown, all unless given.
    """
    check_columns(frame, _COLUMNS, "frame")
    if frame.empty:
        raise ValueError("the frame must hold at least one layer; got none")
    shown = frame if reach is None else frame[frame["distance"].abs() <= reach]
    layers, above = list(dict.fromkeys(frame["layer"])), TITLE if title else 0
    description = f"Share of each layer's weight by distance from the query's own place: {_peaks(frame)}."
    margin = (44, 12, 34 + above, 44)
    look = layout(dark, _HEIGHT + above, margin, title and labels.escape(title), description) | _axes(dark)
    return build(_lines(shown, layers, palette(dark)), look)


def _lines(frame: pd.DataFrame, layers: list[int], colors: Theme) -> list[dict]:
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


def _axes(dark: bool) -> dict:
    colors = palette(dark)
    axis = dict(gridcolor=colors.grid, zeroline=False, fixedrange=True, tickfont=dict(size=11, color=colors.muted))
    place = dict(x=0.5, y=0, xref="paper", yref="paper", yanchor="top", yshift=-24)
    return dict(
        xaxis=axis | dict(showgrid=False, tickcolor=CLEAR),
        yaxis=axis | dict(rangemode="tozero", tickformat=".0%"),
        showlegend=True,
        hovermode="x unified",
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom", font=dict(size=12)),
        annotations=[note("← keys before the query · 0 · after it →", dark, **place)],
    )


def _away(distance: int) -> str:
    if distance == 0:
        return "its own place"
    return f"{abs(distance)} {'before' if distance < 0 else 'after'}"
