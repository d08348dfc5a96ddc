"""What-if figures of a step: its weights with other score functions, dot products of other widths, and the effect of
changed attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from attnviz import mechanisms
from attnviz.arguments import check_columns
from attnviz.figures import labels, theme, wording
from attnviz.figures.bars import upper_and_lower
from attnviz.figures.chart import Chart
from attnviz.figures.maps import Keys, key_axis
from attnviz.figures.theme import NAMES_AXIS, build, grid_axis, layout, note, palette
from attnviz.trace import Token

_ROW, _TOP, _LEFT = 30, 76, 150  # px of a row, the tokens above, the names of the scores
OWN = "the model’s own"
_HEIGHT = 300  # px of the panels
_PANELS = (("deviation", "standard deviation"), ("max_weight", "mean largest weight"))
_SAMPLED = "Sampled: random vectors, no model"


def score_functions(opened, frame: pd.DataFrame, title: str | None = None, *, dark: bool = False) -> Chart:
    """opened : an `inside.Step`. frame : its `inside.other_scores`. The first row has the model's own weights."""
    check_columns(frame, ("score", "trained_with", "mechanism", "key", "weight"), "frame of other scores")
    names, weights = weights_by_score(opened, frame)
    _, right, xaxis = key_axis(Keys(opened.keys), "top")
    height = _TOP + _ROW * len(names) + 12
    figure = layout(dark, height, (_LEFT, right, _TOP, 12), title, _score_words(opened, names, weights))
    figure |= dict(
        xaxis=xaxis,
        yaxis=NAMES_AXIS
        | dict(
            range=[len(names) - 0.5, -0.5],
            tickvals=list(range(len(names))),
            ticktext=[labels.escape(name) for name in names],
        ),
    )
    return build([_cells(opened, names, weights, dark)], figure)


def weights_by_score(opened, frame: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Names of the score functions, and weights (rows, S); the model's own first."""
    names, weights = [OWN], [opened.weights]
    learnt = frame.fillna({"trained_with": "", "mechanism": ""})
    for (score, _, mechanism), part in learnt.groupby(["score", "trained_with", "mechanism"], sort=False):
        title = mechanisms.find(mechanism).title if mechanism else score
        names.append(title if score in title.lower() else f"{score}, of {title}")
        weights.append(part.sort_values("key")["weight"].to_numpy())
    return names, np.stack(weights)


def _score_words(opened, names: list[str], weights: np.ndarray) -> str:
    keys = labels.named(opened.keys)
    largest = "; ".join(f"{name}: {keys[int(row.argmax())]} {row.max():.2f}" for name, row in zip(names, weights))
    return f"The largest weight of the same query through {len(names)} score functions, {largest}."


def _cells(opened, names: list[str], weights: np.ndarray, dark: bool) -> dict:
    keys, z = wording.placed(opened.keys), np.round(weights, 4).astype(np.float32)
    texts = [
        [f"{labels.escape(name)}: weight of {key}: {value:.3f}" for key, value in zip(keys, row.tolist())]
        for name, row in zip(names, weights)
    ]
    return theme.map_cells(z, (0, 1), palette(dark).sequential, ygap=3, hoverinfo="text", hovertext=texts)


def product_spread(frame: pd.DataFrame, title: str | None = None, *, dark: bool = False) -> Chart:
    """frame : of `inside.spread`. Two panels over the width, with and without division by the root; the figure notes
    that the data are sampled."""
    check_columns(frame, ("width", "scaled", *(name for name, _ in _PANELS)), "frame of the spread")
    colors = palette(dark)
    first = frame[~frame["scaled"]].sort_values("width")
    description = (
        f"{_SAMPLED}. From width {first['width'].iloc[0]} to {first['width'].iloc[-1]} dot products spread from "
        f"{first['deviation'].iloc[0]:.1f} to {first['deviation'].iloc[-1]:.1f}; divided by the root of the width they "
        "stay near 1."
    )
    figure = layout(dark, _HEIGHT, (30, 12, 66, 62), title, description) | theme.legend(1.14)
    place = dict(xref="paper", yref="paper", xanchor="left")
    figure["annotations"] = [note(_SAMPLED, dark, x=0, y=0, yanchor="top", yshift=-44, **place)]
    axis = grid_axis(colors)
    data = []
    for panel, (column, name) in enumerate(_PANELS):
        suffix, domain = theme.panel_axis(panel), theme.half(panel)
        figure["annotations"].append(note(name, dark, x=domain[0], y=1, yanchor="bottom", yshift=6, **place))
        ticks = dict(type="log", tickvals=sorted(set(frame["width"].tolist())))
        figure[f"xaxis{suffix}"] = axis | ticks | dict(anchor=f"y{suffix}", domain=domain)
        figure[f"xaxis{suffix}"]["title"] = dict(text="width", standoff=4)
        figure[f"yaxis{suffix}"] = axis | dict(anchor=f"x{suffix}", rangemode="tozero")
        data += [_spread_line(rows, bool(scaled), column, suffix, colors) for scaled, rows in frame.groupby("scaled")]
    return build(data, figure)


def _spread_line(rows: pd.DataFrame, scaled: bool, column: str, suffix: str, colors) -> dict:
    name = "q · k / √d" if scaled else "q · k"
    return theme.in_panel(name, suffix) | dict(
        mode="lines+markers",
        x=rows["width"].tolist(),
        y=rows[column].round(4).tolist(),
        line=dict(color=colors.lines[int(scaled)], dash="dash" if scaled else "solid", width=2),
        marker=dict(symbol="diamond" if scaled else "circle", size=6),
        hovertemplate="%{y:.2f} at width %{x}<extra></extra>",
    )


def effect_bars(
    tokens: Sequence[Token], changes: np.ndarray, variation: np.ndarray, title: str | None = None, *, dark: bool = False
) -> Chart:
    """tokens : T target tokens. changes (T,) : of their log-probabilities, in nats. variation (T,) : total variation, 0
    to 1. ValueError unless the lengths agree.
    """
    if not len(tokens) == len(changes) == len(variation):
        counts = f"{len(changes)} and {len(variation)}"
        raise ValueError(f"changes and variation must have one number per token, {len(tokens)}; got {counts}")
    names = "change of log-probability (nats)", "total variation of the next token"
    frame = upper_and_lower(Keys(tokens), names, 1.05, title, _effect_words(tokens, changes), dark)
    colors = palette(dark)
    signs = [colors.diverging[-1 if value >= 0 else 0] for value in changes]
    bars = [
        _effect_bars(tokens, variation, "y", colors.muted, "total variation at"),
        _effect_bars(tokens, changes, "y2", signs, "change of log-probability of"),
    ]
    return build(bars, frame)


def _effect_words(tokens: Sequence[Token], changes: np.ndarray) -> str:
    least = int(np.argmin(changes))
    return (
        f"Effect on {len(tokens)} target tokens: {float(np.sum(changes)):+.2f} nats in all; most on "
        f"{labels.quoted(tokens, least)}, {float(changes[least]):+.2f}."
    )


def _effect_bars(tokens: Sequence[Token], values: np.ndarray, axis: str, color, what: str) -> dict:
    return dict(
        type="bar",
        y=[round(float(value), 4) for value in values],
        yaxis=axis,
        width=0.82,
        marker=dict(color=color, line=dict(width=0)),
        hoverinfo="text",
        hovertext=[f"{what} {token}: {value:+.3f}" for token, value in zip(wording.placed(tokens), values)],
    )
