"""Mechanisms beside each other: entropy, maximum weight and effective positions by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.checks import require
from attnviz.figures.theme import build, layout, lines, note, palette
from attnviz.figures.titles import TITLES
from attnviz.figures.per_step.references import (
    PANEL_STATISTICS,
    References,
    highest,
    marks,
    said,
    steps_axis,
    steps_span,
)
from attnviz.figures.wording import listed

PANELS = tuple(
    (name, TITLES[name], uniform, digits)
    for name, uniform, digits in zip(PANEL_STATISTICS, (math.log, lambda keys: 1 / keys, float), (2, 2, 1), strict=True)
)
_HEIGHT, _TITLE = 300, 30  # px of the panels, of a title
_GAP = 0.075  # between panels, as a share of the width
_LOWER = 0.7  # of the height of a panel, when they stand below each other
_BETWEEN = 76  # px between panels that stand below each other, for the steps of one and the title of the next


@checked
def by_step(
    frames: Mapping[str, pd.DataFrame],
    keys: int | Sequence[int] | None,
    step: int | None = None,
    title: str | None = None,
    *,
    tokens: bool = True,
    references: References = MappingProxyType({}),
    marked: bool = False,
    stacked: bool = False,
    dark: bool = False,
) -> Chart:
    """Entropy, maximum weight and effective positions by step, a line for each mechanism; dotted: uniform attention.

    frames : mechanism -> frame with columns step, token, entropy_nats, max_weight, effective_entropy
    keys : one number, or one a step where steps see more or fewer keys, as in a decoder (0: a gap). None when the maps
        have no number of keys in common; then nothing is dotted.
    references : mechanism -> one of REFERENCES -> statistic -> its level, marked at the end of the axis.
    `step` gets a band behind it. When all frames have the same tokens, these stand under the axes, unless `tokens` is
    False (slanted labels cost a browser more time than the lines). marked : a marker at each step, for a print in grey.
    stacked : the three below each other, for a narrow column.
    """
    _check(frames)
    keys = counts(keys, max(map(len, frames.values())))
    styles = lines(frames, dark)
    traces = [
        _line(name, frame, panel, styles[name], marked)
        for panel in range(len(PANELS))
        for name, frame in frames.items()
    ]
    traces += [*marks(frames, references, styles)]
    shared = tokens and len({tuple(frame["token"]) for frame in frames.values()}) == 1
    above = _TITLE if title else 0
    margin = (40, 12, 66 + above, 76 if shared else 40)
    figure = layout(
        dark, _HEIGHT + above, margin, title and labels.escape(title), _description(frames, keys, references)
    )
    figure.update(_panels(frames, keys, step, shared, references, dark))
    figure["meta"]["axes"] = {"x": "step"}
    return build(traces, _stacked(figure) if stacked else figure)


def _check(frames: Mapping[str, pd.DataFrame]) -> None:
    if not frames:
        raise ValueError("frames must hold at least one mechanism; got none")
    for name, frame in frames.items():
        require(frame, ("step", "token", *(panel[0] for panel in PANELS)), f"frame of {name}")


def _stacked(figure: dict) -> dict:
    """The panels below each other, not beside each other."""
    count, around = len(PANELS), figure["margin"]["t"] + figure["margin"]["b"]
    plot = round(_LOWER * (figure["height"] - around))
    figure["height"] = around + count * plot + (count - 1) * _BETWEEN
    whole = count * plot + (count - 1) * _BETWEEN
    for panel in range(count):
        axis, top = "" if panel == 0 else str(panel + 1), panel * (plot + _BETWEEN)
        figure[f"xaxis{axis}"]["domain"] = [0, 1]
        figure[f"yaxis{axis}"]["domain"] = [1 - (top + plot) / whole, 1 - top / whole]
    return figure


def _description(frames, keys: int | list[int] | None, references: References) -> str:
    words = f"Entropy, maximum weight and effective positions by step for {listed(frames)}"
    if isinstance(keys, int):
        words += (
            f"; the dotted line is uniform attention over {keys} keys: {math.log(keys):.2f} nats, "
            f"maximum {1 / keys:.2f}, {keys} positions"
        )
    elif keys is not None:
        words += f"; the dotted curve is uniform attention over the keys that each step sees, up to {max(keys)}"
    return f"{words}{said(references)}."


def counts(keys: int | Sequence[int] | None, steps: int) -> int | list[int] | None:
    """`keys`, checked; one number when all steps have the same."""
    if keys is None:
        return None
    each = [int(count) for count in keys] if isinstance(keys, Sequence) else [int(keys)]
    if isinstance(keys, Sequence) and len(each) != steps:
        raise ValueError(f"keys must be one number, or one for each of {steps} steps; got {len(each)}")
    if min(each, default=0) < 0 or max(each, default=0) < 1:
        raise ValueError(f"keys must be at least 1; got {keys}")
    return each[0] if len(set(each)) == 1 else each


def _line(name: str, frame: pd.DataFrame, panel: int, style, marked: bool) -> dict:
    statistic, _, _, digits = PANELS[panel]
    axis = "" if panel == 0 else str(panel + 1)
    shown = labels.escape(labels.plain(name))
    steps = frame["step"].to_list()
    spoken = [f"‘{labels.escape(labels.plain(token))}’" for token in frame["token"]]
    return dict(
        type="scatter",
        mode="lines+markers" if marked or len(steps) <= 2 else "lines",
        name=shown,
        legendgroup=shown,
        showlegend=panel == 0,
        x=steps,
        y=frame[statistic].round(4).to_list(),
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        line=dict(color=style.color, dash=style.dash, width=2),
        marker=dict(color=style.color, symbol=style.marker, size=7),
        cliponaxis=not marked,  # a marker at 0 or 1 is drawn whole
        text=[f"step {step + 1}, {token}" for step, token in zip(steps, spoken, strict=True)],
        hovertemplate=f"%{{y:.{digits}f}} at %{{text}}<extra>{shown}</extra>",
    )


def _panels(
    frames, keys: int | list[int] | None, step: int | None, shared: bool, references: References, dark: bool
) -> dict:
    """Axes, panel titles, the uniform reference and the chosen step."""
    colors, longest = palette(dark), max(frames.values(), key=len)
    size = (1 - 2 * _GAP) / 3
    legend = dict(
        orientation="h", x=0, y=1, xref="paper", yref="container", xanchor="left", yanchor="top", font=dict(size=13)
    )
    part = dict(annotations=[], shapes=[], showlegend=True, hovermode="x unified", legend=legend)
    for panel, (statistic, name, uniform, _) in enumerate(PANELS):
        axis = "" if panel == 0 else str(panel + 1)
        start, level = panel * (size + _GAP), levels(uniform, keys)
        part[f"xaxis{axis}"] = _step_axis(longest, shared, colors) | dict(
            anchor=f"y{axis}",
            range=steps_axis(frames, references),
            unifiedhovertitle=dict(text=name),
            domain=[start, min(1, start + size)],
        )
        part[f"yaxis{axis}"] = dict(
            anchor=f"x{axis}",
            range=[0, 1.04 if panel == 1 else max(top(frames, statistic, level), highest(references, statistic))],
            gridcolor=colors.grid,
            zeroline=False,
            fixedrange=True,
            nticks=5,
            tickfont=dict(size=11, color=colors.muted),
        )
        part["annotations"] += _panel_texts(name, level, axis, steps_span(frames)[1], dark)
        part["shapes"] += _panel_shapes(level, step, axis, colors)
    return part


def levels(uniform, keys: int | list[int] | None) -> float | list[float | None] | None:
    """The level of uniform attention: one level, one for each step (None: no keys), or none."""
    return [uniform(count) if count else None for count in keys] if isinstance(keys, list) else keys and uniform(keys)


def top(frames, statistic: str, level) -> float:
    """The end of an axis, so that every line and the reference fit."""
    level = max(height for height in level if height is not None) if isinstance(level, list) else level
    largest = pd.concat([frame[statistic] for frame in frames.values()]).max()
    return max(1.12 * max(level or 0, 0 if pd.isna(largest) else largest), 0.1)


def _panel_texts(name: str, level, axis: str, end: float, dark: bool) -> list[dict]:
    """The panel's title, and the name of the level, which ends where the steps end."""
    title = dict(text=f"<b>{name}</b>", showarrow=False, font=dict(size=13), x=0, y=1, xanchor="left", yshift=4)
    texts = [title | dict(xref=f"x{axis} domain", yref=f"y{axis} domain", yanchor="bottom")]
    if level is not None:
        curve = isinstance(level, list)
        text, y = (
            ("uniform", [height for height in level if height is not None][-1])
            if curve
            else (f"uniform {level:.3g}", level)
        )
        place = dict(xref=f"x{axis}", yref=f"y{axis}", x=end, y=y, xanchor="right", yanchor="bottom")
        texts.append(note(text, dark, **place))
    return texts


def _panel_shapes(level, step: int | None, axis: str, colors) -> list[dict]:
    if isinstance(level, list):
        place = dict(type="path", xref=f"x{axis}", path=_path(level))
    else:
        place = dict(type="line", xref=f"x{axis} domain", x0=0, x1=1, y0=level, y1=level)
    look = dict(yref=f"y{axis}", layer="below", line=dict(color=colors.muted, width=1.5, dash="dot"))
    uniform = [] if level is None else [place | look]
    chosen = (
        []
        if step is None
        else [
            dict(
                type="rect",
                xref=f"x{axis}",
                yref=f"y{axis} domain",
                x0=step - 0.4,
                x1=step + 0.4,
                y0=0,
                y1=1,
                layer="below",
                fillcolor=colors.grid,
                line=dict(width=0),
            )
        ]
    )
    return uniform + chosen


def _path(levels: list[float | None]) -> str:
    """An SVG path through the level of each step, broken where there is none."""
    points = [("L" if step and levels[step - 1] is not None else "M", step, level) for step, level in enumerate(levels)]
    return " ".join(f"{move}{step},{level:.4f}" for move, step, level in points if level is not None)


def _step_axis(frame: pd.DataFrame, shared: bool, colors) -> dict:
    steps = frame["step"].to_list()
    room = 22 if shared else 8
    shown = [steps[i] for i in labels.thin(len(steps), room)]
    tokens = [labels.escape(labels.short(token)) for token in frame["token"]]
    texts = dict(zip(steps, tokens, strict=True)) if shared else {step: str(step + 1) for step in steps}
    return dict(
        tickvals=shown,
        fixedrange=True,
        ticktext=[texts[step] for step in shown],
        tickangle=-50 if shared else 0,
        showgrid=False,
        zeroline=False,
        tickfont=dict(size=11),
        linecolor=colors.muted,
        showline=True,
        ticks="outside",
        ticklen=3,
        tickcolor=colors.muted,
    )
