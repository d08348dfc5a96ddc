"""Figures of tests of attention: permutations, attributions beside it and their agreement, erased tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from attnviz.arguments import check_columns
from attnviz.figures import labels, theme, wording
from attnviz.figures.chart import Chart
from attnviz.figures.maps import Keys, key_axis, query_axis, rows_height, value_axis
from attnviz.figures.theme import CORNER, build, grid_axis, layout, lines, note, palette, scale_bar
from attnviz.figures.wording import listed
from attnviz.trace import Token

_VARIATION = 320  # px of the panel
_COLUMNS = ("step", "max_weight", "median", "low", "high", "uniform")
_TOP, _SCALE = 86, 34  # px above the cells, below them for the colour scale
_AGREEMENT = 240  # px of the bars
_ERRORS = 1.96  # standard deviations on either side hold 95% of a normal distribution
_ERASURE = 290  # px of the panels
_PANELS = (("comprehensiveness", "lost without them"), ("sufficiency", "lost with them alone"))


def variation_by_weight(
    tokens: Sequence[Token], frame: pd.DataFrame, title: str | None = None, *, dark: bool = False
) -> Chart:
    """tokens : T target tokens. frame : of `faithfulness.variation`. Bars at a point: the quartiles over permutations.

    A point far right and low is a step with a large weight whose permutation changed little.
    """
    check_columns(frame, _COLUMNS, "frame of the variation")
    colors = palette(dark)
    axis = grid_axis(colors, range=[-0.03, 1.03])
    figure = layout(dark, _VARIATION, (52, 12, 40, 48), title, _variation_words(tokens, frame)) | theme.legend(1.02)
    figure["xaxis"] = axis | dict(title=dict(text="maximum weight"))
    figure["yaxis"] = axis | dict(title=dict(text="total variation"))
    names = [wording.placed(tokens)[step] for step in frame["step"]]
    permuted = _points(frame, "median", "permuted, median", names, colors.lines[0], "circle")
    permuted["error_y"] = dict(
        type="data",
        symmetric=False,
        array=(frame["high"] - frame["median"]).round(4).tolist(),
        arrayminus=(frame["median"] - frame["low"]).round(4).tolist(),
        thickness=1,
        width=2,
    )
    return build([permuted, _points(frame, "uniform", "uniform", names, colors.lines[1], "diamond-open")], figure)


def _points(frame: pd.DataFrame, column: str, name: str, names: list[str], color: str, marker: str) -> dict:
    return dict(
        type="scatter",
        mode="markers",
        name=name,
        x=frame["max_weight"].round(4).tolist(),
        y=frame[column].round(4).tolist(),
        text=names,
        marker=dict(color=color, symbol=marker, size=9),
        hovertemplate=f"%{{text}}: weight %{{x:.2f}}, {name} %{{y:.2f}}<extra></extra>",
    )


def _variation_words(tokens: Sequence[Token], frame: pd.DataFrame) -> str:
    least = frame.loc[frame["median"].idxmin()]
    return (
        f"Total variation of the next-token distribution, {len(frame)} target tokens: median over permutations "
        f"{frame['median'].median():.2f}, uniform {frame['uniform'].median():.2f}. Least moved by permutation: "
        f"{labels.quoted(tokens, int(least['step']))}, {least['median']:.2f} at a maximum weight of "
        f"{least['max_weight']:.2f}."
    )


def saliency(grid, values, method: str, title: str | None = None, *, dark: bool = False) -> Chart:
    """values [queries, keys] of one method, beside `figures.heatmap(grid)`; the scale is symmetric about 0, up to the
    largest.

    grid : the attention of the same tokens. Blue makes the target token more probable, orange less. ValueError if
    shapes differ.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != grid.weights.shape:
        raise ValueError(f"values must have the grid's shape {grid.weights.shape}; got {values.shape}")
    most = float(np.abs(values).max()) or 1.0
    left, right, xaxis = key_axis(grid, "top")
    height, description = _TOP + rows_height(len(grid.queries)) + _SCALE, _saliency_words(grid, values, method)
    frame = layout(dark, height, (left, right, _TOP, _SCALE), title, description)
    frame |= dict(xaxis=xaxis, yaxis=query_axis(grid, None))
    frame["meta"]["axes"] = {"colour": f"attribution by {method}"}
    bar = scale_bar([-most, 0, most], [f"−{most:.2g}", "0", f"{most:.2g}"])
    z, hover = np.round(values, 5).astype(np.float32), dict(hoverinfo="text", hovertext=_hover(grid, values))
    return build([theme.map_cells(z, (-most, most), palette(dark).diverging, bar, **hover)], frame)


def _hover(grid, values: np.ndarray) -> list[list[str]]:
    keys = wording.placed(grid.keys)
    return [
        [f"{key} {'for' if value >= 0 else 'against'} {query}: {value:+.3f}" for key, value in zip(keys, row)]
        for query, row in zip(wording.placed(grid.queries), values.tolist(), strict=True)
    ]


def _saliency_words(grid, values: np.ndarray, method: str) -> str:
    row, column = np.unravel_index(np.abs(values).argmax(), values.shape)
    query, key = labels.quoted(grid.queries, row), labels.quoted(grid.keys, column)
    side = "for" if values[row, column] >= 0 else "against"
    return (
        f"Attributions by {method}, {values.shape[0]} target by {values.shape[1]} source tokens. Largest: {key} speaks "
        f"{side} {query}, {values[row, column]:+.3f}."
    )


def agreement_bars(
    tokens: Sequence[Token], frame: pd.DataFrame, spread: float, title: str | None = None, *, dark: bool = False
) -> Chart:
    """tokens : T target tokens. frame : the rows of one method of `faithfulness.agreement`, one a token. spread :
    standard deviation of τ between random orders (`faithfulness.spread_of_tau`); the band is 1.96 of it either way.

    A bar is full if both agree on the top source token, else pale. ValueError unless there is one row per token.
    """
    check_columns(frame, ("tau_b", "top1"), "frame of the agreement")
    if len(frame) != len(tokens):
        raise ValueError(f"frame must have one row per token, {len(tokens)}; got {len(frame)}")
    left, right, xaxis = key_axis(Keys(tokens), "bottom")
    words = _agreement_words(tokens, frame, spread)
    figure = layout(dark, _AGREEMENT, (left, right, 24, 72), title, words)
    edge, colors = min(_ERRORS * spread, 1), palette(dark)
    band = dict(fillcolor=colors.grid, line=dict(width=0))
    figure |= dict(
        xaxis=xaxis | dict(anchor="y"),
        yaxis=value_axis(dark, range=[-1.05, 1.05], tickvals=[-1, -0.5, 0, 0.5, 1]),
        shapes=[dict(type="rect", xref="paper", x0=0, x1=1, y0=-edge, y1=edge, layer="below") | band],
        annotations=[note("τ-b; grey: 95% of random orders", dark, x=0, y=1, **CORNER)],
    )
    return build([_bars(tokens, frame, colors.diverging[-1])], figure)


def _bars(tokens: Sequence[Token], frame: pd.DataFrame, color: str) -> dict:
    agreement = {True: "same first source token", False: "another first source token"}
    return dict(
        type="bar",
        y=[None if pd.isna(value) else round(float(value), 4) for value in frame["tau_b"]],
        width=0.82,
        marker=dict(color=color, opacity=[1.0 if same else 0.45 for same in frame["top1"]], line=dict(width=0)),
        hoverinfo="text",
        hovertext=[
            f"{token}: τ-b {tau:+.2f}, {agreement[bool(same)]}"
            for token, tau, same in zip(wording.placed(tokens), frame["tau_b"], frame["top1"])
        ],
    )


def _agreement_words(tokens: Sequence[Token], frame: pd.DataFrame, spread: float) -> str:
    least, mean = int(frame["tau_b"].fillna(2).to_numpy().argmin()), frame["tau_b"].mean()
    return (
        f"Kendall’s τ-b of attention and attributions for {len(tokens)} target tokens: mean {mean:+.2f}; "
        f"random orders are expected to have 0 ± {spread:.2f} for each. Lowest: {labels.quoted(tokens, least)}, "
        f"{frame['tau_b'].iloc[least]:+.2f}. The same first source token for {int(frame['top1'].sum())} of them."
    )


def erasure_curves(frames: Mapping[str, pd.DataFrame], title: str | None = None, *, dark: bool = False) -> Chart:
    """frames : order of tokens (attention, gradients, random …) -> a frame of `faithfulness.erasure`; means over
    target tokens.

    Good order: the left lines are high (those tokens were needed), the right ones low (they are enough).
    """
    if not frames:
        raise ValueError("frames must hold at least one order of tokens; got none")
    for name, frame in frames.items():
        check_columns(frame, ("share", *(column for column, _ in _PANELS)), f"frame of {name}")
    means = {name: frame.groupby("share").mean(numeric_only=True) for name, frame in frames.items()}
    colors, styles = palette(dark), lines(frames, dark)
    figure = layout(dark, _ERASURE, (46, 12, 78, 46), title, _erasure_words(means)) | theme.legend(1.2)
    axis = grid_axis(colors)
    data, figure["annotations"] = [], []
    for panel, (column, meaning) in enumerate(_PANELS):
        suffix, domain = theme.panel_axis(panel), theme.half(panel)
        shares = dict(title=dict(text="share of tokens"), tickformat=".0%", domain=domain)
        figure[f"xaxis{suffix}"] = axis | shares | dict(anchor=f"y{suffix}")
        figure[f"yaxis{suffix}"] = axis | dict(anchor=f"x{suffix}")
        name, place = f"{column.capitalize()}:<br>{meaning}", dict(x=domain[0], y=1, **CORNER)
        figure["annotations"].append(dict(text=name, showarrow=False, align="left", font=dict(size=11), **place))
        data += [_erasure_line(name, mean[column], styles[name], suffix) for name, mean in means.items()]
    return build(data, figure)


def _erasure_line(name: str, values: pd.Series, style, suffix: str) -> dict:
    shown = labels.escape(labels.plain(name))
    return theme.in_panel(shown, suffix) | dict(
        mode="lines+markers",
        x=values.index.tolist(),
        y=values.round(4).tolist(),
        line=dict(color=style.color, dash=style.dash, width=2),
        marker=dict(symbol=style.marker, size=7),
        hovertemplate=f"%{{y:.3f}} at %{{x:.0%}}<extra>{shown}</extra>",
    )


def _erasure_words(means: Mapping[str, pd.DataFrame]) -> str:
    at_shares = [
        f"{name}: comprehensiveness {mean['comprehensiveness'].mean():.2f}, "
        f"sufficiency {mean['sufficiency'].mean():.2f}"
        for name, mean in means.items()
    ]
    return f"Source tokens erased in the order of {listed(means)}; means over the shares. {'; '.join(at_shares)}."
