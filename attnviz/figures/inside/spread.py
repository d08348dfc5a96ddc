"""Why dot products are divided by the root of their width: how far they spread, and what the softmax makes of it."""

from __future__ import annotations

import pandas as pd

from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.checks import require
from attnviz.figures.theme import build, layout, note, palette

_HEIGHT, _TITLE = 300, 30  # px of the panels, of a title
_PANELS = (("deviation", "standard deviation"), ("max_weight", "mean largest weight"))
_SAMPLED = "Sampled: random vectors, no model"


def product_spread(frame: pd.DataFrame, title: str | None = None, *, dark: bool = False) -> Chart:
    """frame : of `inside.spread`. Two panels over the width, with the root and without; the figure says that it is
    sampled."""
    require(frame, ("width", "scaled", *(name for name, _ in _PANELS)), "frame of the spread")
    colors, above = palette(dark), _TITLE if title else 0
    first = frame[~frame["scaled"]].sort_values("width")
    description = (
        f"{_SAMPLED}. From width {first['width'].iloc[0]} to {first['width'].iloc[-1]} dot products spread from "
        f"{first['deviation'].iloc[0]:.1f} to {first['deviation'].iloc[-1]:.1f}; divided by the root of the width they "
        "stay "
        "near 1."
    )
    figure = layout(dark, _HEIGHT + above, (30, 12, 66 + above, 62), title and labels.escape(title), description)
    figure |= dict(showlegend=True, legend=dict(orientation="h", x=0, y=1.14, yanchor="bottom", font=dict(size=12)))
    place = dict(xref="paper", yref="paper", xanchor="left")
    figure["annotations"] = [note(_SAMPLED, dark, x=0, y=0, yanchor="top", yshift=-44, **place)]
    axis = dict(gridcolor=colors.grid, zeroline=False, fixedrange=True, tickfont=dict(size=11, color=colors.muted))
    data = []
    for panel, (column, name) in enumerate(_PANELS):
        suffix = "" if panel == 0 else "2"
        domain = [panel * 0.54, panel * 0.54 + 0.46]
        figure["annotations"].append(note(name, dark, x=domain[0], y=1, yanchor="bottom", yshift=6, **place))
        ticks = dict(type="log", tickvals=sorted(set(frame["width"].tolist())))
        figure[f"xaxis{suffix}"] = axis | ticks | dict(anchor=f"y{suffix}", domain=domain)
        figure[f"xaxis{suffix}"]["title"] = dict(text="width", standoff=4)
        figure[f"yaxis{suffix}"] = axis | dict(anchor=f"x{suffix}", rangemode="tozero")
        data += [_line(rows, bool(scaled), column, suffix, colors) for scaled, rows in frame.groupby("scaled")]
    return build(data, figure)


def _line(rows: pd.DataFrame, scaled: bool, column: str, suffix: str, colors) -> dict:
    name = "q · k / √d" if scaled else "q · k"
    return dict(
        type="scatter",
        mode="lines+markers",
        name=name,
        legendgroup=name,
        showlegend=not suffix,
        x=rows["width"].tolist(),
        y=rows[column].round(4).tolist(),
        xaxis=f"x{suffix}",
        yaxis=f"y{suffix}",
        line=dict(color=colors.lines[int(scaled)], dash="dash" if scaled else "solid", width=2),
        marker=dict(symbol="diamond" if scaled else "circle", size=6),
        hovertemplate="%{y:.2f} at width %{x}<extra></extra>",
    )
