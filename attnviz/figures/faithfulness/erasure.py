"""Comprehensiveness and sufficiency by the share of source tokens erased or kept, a line for each order of tokens."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.checks import require
from attnviz.figures.theme import build, layout, lines, palette
from attnviz.figures.wording import listed

_HEIGHT, _TITLE = 290, 30  # px of the panels, of a title
_PANELS = (("comprehensiveness", "lost without them"), ("sufficiency", "lost with them alone"))


def erasure_curves(frames: Mapping[str, pd.DataFrame], title: str | None = None, *, dark: bool = False) -> Chart:
    """frames : order of tokens (attention, gradients, random …) -> a frame of `faithfulness.erasure`; means over
    target tokens.

    Good order: the left lines are high (those tokens were needed), the right ones low (they are enough).
    """
    if not frames:
        raise ValueError("frames must hold at least one order of tokens; got none")
    for name, frame in frames.items():
        require(frame, ("share", *(column for column, _ in _PANELS)), f"frame of {name}")
    means = {name: frame.groupby("share").mean(numeric_only=True) for name, frame in frames.items()}
    colors, styles, above = palette(dark), lines(frames, dark), _TITLE if title else 0
    figure = layout(dark, _HEIGHT + above, (46, 12, 78 + above, 46), title and labels.escape(title), _words(means))
    figure |= dict(showlegend=True, legend=dict(orientation="h", x=0, y=1.2, yanchor="bottom", font=dict(size=12)))
    axis = dict(gridcolor=colors.grid, zeroline=False, fixedrange=True, tickfont=dict(size=11, color=colors.muted))
    data, figure["annotations"] = [], []
    for panel, (column, said) in enumerate(_PANELS):
        suffix = "" if panel == 0 else "2"
        start = panel * 0.54
        shares = dict(title=dict(text="share of tokens"), tickformat=".0%", domain=[start, start + 0.46])
        figure[f"xaxis{suffix}"] = axis | shares | dict(anchor=f"y{suffix}")
        figure[f"yaxis{suffix}"] = axis | dict(anchor=f"x{suffix}")
        place = dict(x=start, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom")
        name = f"{column.capitalize()}:<br>{said}"
        figure["annotations"].append(dict(text=name, showarrow=False, align="left", font=dict(size=11), **place))
        data += [_line(name, mean[column], styles[name], suffix) for name, mean in means.items()]
    return build(data, figure)


def _line(name: str, values: pd.Series, style, suffix: str) -> dict:
    shown = labels.escape(labels.plain(name))
    return dict(
        type="scatter",
        mode="lines+markers",
        name=shown,
        legendgroup=shown,
        showlegend=not suffix,
        x=values.index.tolist(),
        y=values.round(4).tolist(),
        xaxis=f"x{suffix}",
        yaxis=f"y{suffix}",
        line=dict(color=style.color, dash=style.dash, width=2),
        marker=dict(symbol=style.marker, size=7),
        hovertemplate=f"%{{y:.3f}} at %{{x:.0%}}<extra>{shown}</extra>",
    )


def _words(means: Mapping[str, pd.DataFrame]) -> str:
    said = [
        f"{name}: comprehensiveness {mean['comprehensiveness'].mean():.2f}, "
        f"sufficiency {mean['sufficiency'].mean():.2f}"
        for name, mean in means.items()
    ]
    return f"Source tokens erased in the order of {listed(list(means))}; means over the shares. {'; '.join(said)}."
