"""Statistics of attention by step, a line for each mechanism, and their means in a table.

Two baselines stand after the last step: the untrained model, and shuffled words. Every model's marks have their own
place, in the order of the legend, so that no mark hides another and a grey print shows the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz.arguments import check_columns, checked
from attnviz.figures import labels, theme
from attnviz.figures.chart import Chart
from attnviz.figures.wording import TITLES, listed, statistic_title

_HEIGHT = 300  # px of the panels
_GAP = 0.075  # between panels, as a share of the width
_LOWER = 0.7  # of the height of a panel, when they stand below each other
_BETWEEN = 76  # px between panels that stand below each other, for the steps of one and the title of the next
PANEL_STATISTICS = ("entropy_nats", "max_weight", "effective_entropy")  # a panel each
_UNIFORM: tuple[Callable[[int], float], ...] = math.log, lambda keys: 1 / keys, float  # of uniform attention
PANELS = tuple(
    (name, TITLES[name], uniform, digits)
    for name, uniform, digits in zip(PANEL_STATISTICS, _UNIFORM, (2, 2, 1), strict=True)
)
REFERENCES = {"untrained": "triangle-up-open", "shuffled": "x-thin-open"}  # -> Plotly's symbol
_PLACE = 0.035  # of the steps' room, that the marks of a model take
References = Mapping[str, Mapping[str, Mapping[str, float]]]  # mechanism -> one of REFERENCES -> statistic -> level
_ROW = 30  # px of a table row


@checked
def by_step(
    frames: Mapping[str, pd.DataFrame | Mapping],
    keys: int | Sequence[int] | None,
    step: int | None = None,
    title: str | None = None,
    *,
    queries: Mapping[str, Sequence] = MappingProxyType({}),
    tokens: bool = True,
    references: References = MappingProxyType({}),
    marked: bool = False,
    stacked: bool = False,
    dark: bool = False,
) -> Chart:
    """Entropy, maximum weight and effective positions by step, a line for each mechanism.

    frames : mechanism -> frame, or mapping, with columns step, token, entropy_nats, max_weight, effective_entropy.
    keys : one number, or one a step (0: a gap); None when the maps have none in common: then nothing is dotted.
    queries : mechanism -> the tokens of its steps, to mark them as in maps. tokens : under the axes, if all frames have
    the same. references : mechanism -> one of REFERENCES -> statistic -> its level, marked at the end of the axis.
    marked : a marker at each step, for grey prints. stacked : below each other. `step` gets a band behind it.

    >>> figures.by_step({"Bahdanau": stats.of_grid(select.select(trace))}, keys=6)
    Chart('Entropy, maximum weight and effective positions by step for Bahdanau; the dotted line is uniform attention
    over 6 keys: 1.79 nats, maximum 0.17, 6 positions.')
    """
    frames = _plain(frames, queries)
    keys = counts(keys, max(len(frame["step"]) for frame in frames.values()))
    styles = theme.lines(frames, dark)
    places = itertools.product(range(len(PANELS)), frames.items())
    traces = [_line(name, frame, panel, styles[name], marked) for panel, (name, frame) in places]
    traces += [*reference_marks(frames, references, styles)]
    shared = tokens and len({tuple(frame["token"]) for frame in frames.values()}) == 1
    margin = (40, 12, 66, 76 if shared else 40)
    figure = theme.layout(dark, _HEIGHT, margin, title, _description(frames, keys, references))
    figure.update(_panels(frames, keys, step, shared, references, dark))
    figure["meta"]["axes"] = {"x": "step"}
    return theme.build(traces, _stacked(figure) if stacked else figure)


Columns = Mapping[str, list]  # what is drawn of a frame


def _plain(frames: Mapping[str, pd.DataFrame | Mapping], queries: Mapping[str, Sequence]) -> dict[str, Columns]:
    """The drawn columns as lists, with tokens as they are shown. ValueError if a column is missing, or if the numbers
    of queries and steps differ."""
    if not frames:
        raise ValueError("frames must hold at least one mechanism; got none")
    drawn: dict[str, Columns] = {}
    for name, frame in frames.items():
        check_columns(frame, ("step", "token", *PANEL_STATISTICS), f"frame of {name}")
        if name in queries and len(queries[name]) != len(frame["step"]):
            raise ValueError(f"queries of {name} must be {len(frame['step'])} tokens; got {len(queries[name])}")
        tokens = labels.shown(queries[name]) if name in queries else list(map(labels.plain, frame["token"]))
        columns = {column: np.asarray(frame[column], dtype=object).tolist() for column in ("step", *PANEL_STATISTICS)}
        drawn[name] = columns | {"token": tokens}
    return drawn


def _stacked(figure: dict) -> dict:
    """The panels below each other, not beside each other."""
    count, around = len(PANELS), figure["margin"]["t"] + figure["margin"]["b"]
    plot = round(_LOWER * (figure["height"] - around))
    figure["height"] = around + count * plot + (count - 1) * _BETWEEN
    whole = count * plot + (count - 1) * _BETWEEN
    for panel in range(count):
        axis, top = theme.panel_axis(panel), panel * (plot + _BETWEEN)
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
    return f"{words}{reference_words(references)}."


def counts(keys: int | Sequence[int] | None, steps: int) -> int | list[int] | None:
    """`keys`, checked; one number when all steps have the same."""
    if keys is None:
        return None
    key_counts = [int(count) for count in keys] if isinstance(keys, Sequence) else [int(keys)]
    if isinstance(keys, Sequence) and len(key_counts) != steps:
        raise ValueError(f"keys must be one number, or one for each of {steps} steps; got {len(key_counts)}")
    if min(key_counts, default=0) < 0 or max(key_counts, default=0) < 1:
        raise ValueError(f"keys must be at least 1; got {keys}")
    return key_counts[0] if len(set(key_counts)) == 1 else key_counts


def _line(name: str, frame: Columns, panel: int, style, marked: bool) -> dict:
    statistic, _, _, digits = PANELS[panel]
    shown = labels.escape(labels.plain(name))
    steps = frame["step"]
    spoken = [f"‘{labels.escape(token)}’" for token in frame["token"]]
    return theme.in_panel(shown, theme.panel_axis(panel)) | dict(
        mode="lines+markers" if marked or len(steps) <= 2 else "lines",
        x=steps,
        y=np.round(np.array(frame[statistic], dtype=float), 4).tolist(),
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
    colors, longest = theme.palette(dark), max(frames.values(), key=lambda frame: len(frame["step"]))
    size = (1 - 2 * _GAP) / 3
    legend = dict(
        orientation="h", x=0, y=1, xref="paper", yref="container", xanchor="left", yanchor="top", font=dict(size=13)
    )
    part: dict[str, Any] = dict(annotations=[], shapes=[], showlegend=True, hovermode="x unified", legend=legend)
    for panel, (statistic, name, uniform, _) in enumerate(PANELS):
        axis, start, level = theme.panel_axis(panel), panel * (size + _GAP), levels(uniform, keys)
        part[f"xaxis{axis}"] = _step_axis(longest, shared, colors) | dict(
            anchor=f"y{axis}",
            range=steps_axis(frames, references),
            unifiedhovertitle=dict(text=name),
            domain=[start, min(1, start + size)],
        )
        most = 1.04 if panel == 1 else max(top(frames, statistic, level), highest_reference(references, statistic))
        part[f"yaxis{axis}"] = theme.grid_axis(colors, anchor=f"x{axis}", range=[0, most], nticks=5)
        part["annotations"] += _panel_texts(name, level, axis, steps_span(frames)[1], dark)
        part["shapes"] += _panel_shapes(level, step, axis, colors)
    return part


def levels(uniform, keys: int | list[int] | None) -> float | list[float | None] | None:
    """The level of uniform attention: one level, one for each step (None: no keys), or none."""
    return [uniform(count) if count else None for count in keys] if isinstance(keys, list) else keys and uniform(keys)


def top(frames, statistic: str, level) -> float:
    """The end of an axis, so that every line and the reference fit."""
    level = max(height for height in level if height is not None) if isinstance(level, list) else level
    values = [value for frame in frames.values() for value in frame[statistic] if not math.isnan(value)]
    return max(1.12 * max(level or 0, max(values, default=0)), 0.1)


def _panel_texts(name: str, level, axis: str, end: float, dark: bool) -> list[dict]:
    """The panel's title, and the name of the level, right-aligned at the last step."""
    title = dict(text=f"<b>{name}</b>", showarrow=False, font=dict(size=13), x=0, y=1, xanchor="left", yshift=4)
    texts = [title | dict(xref=f"x{axis} domain", yref=f"y{axis} domain", yanchor="bottom")]
    if level is not None:
        curve = isinstance(level, list)
        text = "uniform" if curve else f"uniform {level:.3g}"
        y = [height for height in level if height is not None][-1] if curve else level
        place = dict(xref=f"x{axis}", yref=f"y{axis}", x=end, y=y, xanchor="right", yanchor="bottom")
        texts.append(theme.note(text, dark, **place))
    return texts


def _panel_shapes(level, step: int | None, axis: str, colors) -> list[dict]:
    shapes = []
    if level is not None:
        place = dict(type="line", xref=f"x{axis} domain", x0=0, x1=1, y0=level, y1=level)
        if isinstance(level, list):
            place = dict(type="path", xref=f"x{axis}", path=_path(level))
        line = dict(color=colors.muted, width=1.5, dash="dot")
        shapes.append(place | dict(yref=f"y{axis}", layer="below", line=line))
    if step is not None:
        place = dict(xref=f"x{axis}", yref=f"y{axis} domain", x0=step - 0.4, x1=step + 0.4, y0=0, y1=1)
        shapes.append(dict(type="rect", **place, layer="below", fillcolor=colors.grid, line=dict(width=0)))
    return shapes


def _path(levels: list[float | None]) -> str:
    """An SVG path through the level of each step, broken where there is none."""
    points = [("L" if step and levels[step - 1] is not None else "M", step, level) for step, level in enumerate(levels)]
    return " ".join(f"{move}{step},{level:.4f}" for move, step, level in points if level is not None)


def _step_axis(frame: Columns, shared: bool, colors) -> dict:
    steps = frame["step"]
    room = 22 if shared else 8
    shown = [steps[i] for i in labels.thin(len(steps), room)]
    texts = {
        step: labels.escape(labels.cut(token)) if shared else str(step + 1)
        for step, token in zip(steps, frame["token"], strict=True)
    }
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


def reference_marks(
    frames: Mapping[str, Columns], references: References, styles: Mapping[str, theme.LineStyle]
) -> Iterator[dict]:
    """A trace for each reference of each panel."""
    start, end = steps_span(frames)
    places = {name: end + (place + 0.5) * _PLACE * (end - start) for place, name in enumerate(references)}
    for panel, statistic in enumerate(PANEL_STATISTICS):
        axis = theme.panel_axis(panel)
        for name, levels in references.items():
            for kind, numbers in levels.items():
                mark = reference_mark(name, kind, places[name], numbers[statistic], styles[name].color, 10)
                yield mark | dict(xaxis=f"x{axis}", yaxis=f"y{axis}", hoverinfo="skip")


def reference_mark(name: str, kind: str, x: float, y: float, color: str, size: int) -> dict:
    """The mark of one of REFERENCES of a model. size : px."""
    return dict(
        type="scatter",
        mode="markers",
        name=f"{labels.escape(labels.plain(name))}, {kind}",
        x=[x],
        y=[round(y, 4)],
        marker=dict(symbol=REFERENCES[kind], size=size, color=color, line=dict(color=color, width=2)),
        cliponaxis=False,
        showlegend=False,
    )


def steps_span(frames: Mapping[str, Columns]) -> tuple[float, float]:
    """The first and last position of the steps on the axis, with a margin of 0.4 steps."""
    steps = [step for frame in frames.values() for step in frame["step"]]
    return float(min(steps, default=0)) - 0.4, float(max(steps, default=0)) + 0.4


def steps_axis(frames: Mapping[str, Columns], references: References) -> list[float]:
    """The ends of the axis of steps, with room for the marks."""
    start, end = steps_span(frames)
    return [start, end + len(references) * _PLACE * (end - start)]


def highest_reference(references: References, statistic: str) -> float:
    """The end of an axis on which every mark of a statistic fits; 0 without one."""
    return 1.12 * max(
        (numbers[statistic] for levels in references.values() for numbers in levels.values()), default=0.0
    )


def reference_words(references: References) -> str:
    """The marks in words, for the description of a chart."""
    parts = [
        f"{name} {kind} {numbers['entropy_nats']:.2f} nats, maximum {numbers['max_weight']:.2f}, "
        f"{numbers['effective_entropy']:.1f} positions"
        for name, levels in references.items()
        for kind, numbers in levels.items()
    ]
    return f"; marked at the right: {'; '.join(parts)}" if parts else ""


@checked
def comparison(frame: pd.DataFrame, title: str | None = None, *, threshold: float = 0.1, dark: bool = False) -> Chart:
    """A table of mean ± standard deviation; frame has mechanism, statistic, mean, std. One column per mechanism.

    threshold : the threshold passed to `stats`.

    >>> figures.comparison(stats.summary(trace)).data[0].cells.values[1][:2]
    ['1.08 ± 0.20', '1.56 ± 0.29']
    """
    check_columns(frame, ("mechanism", "statistic", "mean", "std"), "frame")
    cells = {
        (row.statistic, row.mechanism): "–" if pd.isna(row.mean) else f"{row.mean:.2f} ± {row.std:.2f}"
        for row in frame[["mechanism", "statistic", "mean", "std"]].itertuples(index=False)
    }
    mechanisms, statistics = (list(dict.fromkeys(frame[column])) for column in ("mechanism", "statistic"))
    colors = theme.palette(dark)
    columns = [[labels.escape(statistic_title(name, threshold)) for name in statistics]]
    columns += [[cells.get((statistic, mechanism), "–") for statistic in statistics] for mechanism in mechanisms]
    align = ["left", *["right"] * len(mechanisms)]
    look = dict(align=align, height=_ROW, line=dict(color=colors.grid, width=1))
    # a table shows no other markup
    head = ["", *(f"<b>{labels.escape(labels.plain(name))}</b>" for name in mechanisms)]
    table = dict(
        type="table",
        columnwidth=[1.7, *[1] * len(mechanisms)],
        header=dict(values=head, fill=dict(color=colors.panel), font=dict(color=colors.text, size=13), **look),
        cells=dict(values=columns, fill=dict(color=theme.CLEAR), font=dict(color=colors.text, size=13), **look),
    )
    description = f"Mean ± standard deviation over the steps of {len(statistics)} statistics for {listed(mechanisms)}."
    return theme.build(
        [table], theme.layout(dark, _ROW * (len(statistics) + 1) + 24, (1, 34, 2, 2), title, description)
    )
