"""Total variation under permuted and uniform attention against the maximum weight, a point a target token."""

from __future__ import annotations

import pandas as pd

from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.checks import require
from attnviz.figures.theme import build, layout, palette

_HEIGHT, _TITLE = 320, 30  # px of the panel, of a title
_COLUMNS = ("token", "max_weight", "median", "low", "high", "uniform")


def variation_by_weight(frame: pd.DataFrame, title: str | None = None, *, dark: bool = False) -> Chart:
    """frame : of `faithfulness.variation`. Bars at a point are the quartiles over permutations.

    A point far right and low is a step that looked at one token and did not need to.
    """
    require(frame, _COLUMNS, "frame of the variation")
    colors, above = palette(dark), _TITLE if title else 0
    axis = dict(
        range=[-0.03, 1.03],
        gridcolor=colors.grid,
        zeroline=False,
        fixedrange=True,
        tickfont=dict(size=11, color=colors.muted),
    )
    figure = layout(dark, _HEIGHT + above, (52, 12, 40 + above, 48), title and labels.escape(title), _words(frame))
    figure |= dict(
        xaxis=axis | dict(title=dict(text="maximum weight")),
        yaxis=axis | dict(title=dict(text="total variation")),
        showlegend=True,
        legend=dict(orientation="h", x=0, y=1.02, yanchor="bottom", font=dict(size=12)),
    )
    tokens = [f"‘{labels.escape(labels.plain(token))}’" for token in frame["token"]]
    permuted = _points(frame, "median", "permuted, median", tokens, colors.lines[0], "circle")
    permuted["error_y"] = dict(
        type="data",
        symmetric=False,
        array=(frame["high"] - frame["median"]).round(4).tolist(),
        arrayminus=(frame["median"] - frame["low"]).round(4).tolist(),
        thickness=1,
        width=2,
    )
    return build([permuted, _points(frame, "uniform", "uniform", tokens, colors.lines[1], "diamond-open")], figure)


def _points(frame: pd.DataFrame, column: str, name: str, tokens: list[str], color: str, marker: str) -> dict:
    return dict(
        type="scatter",
        mode="markers",
        name=name,
        x=frame["max_weight"].round(4).tolist(),
        y=frame[column].round(4).tolist(),
        text=tokens,
        marker=dict(color=color, symbol=marker, size=9),
        hovertemplate=f"%{{text}}: weight %{{x:.2f}}, {name} %{{y:.2f}}<extra></extra>",
    )


def _words(frame: pd.DataFrame) -> str:
    least = frame.loc[frame["median"].idxmin()]
    return (
        f"Total variation of the next-token distribution, {len(frame)} target tokens: median over permutations "
        f"{frame['median'].median():.2f}, uniform {frame['uniform'].median():.2f}. Least moved by permutation: "
        f"‘{labels.plain(least['token'])}’, {least['median']:.2f} at a maximum weight of {least['max_weight']:.2f}."
    )
