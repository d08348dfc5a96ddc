"""Figures of many sentences: the distribution of a statistic, scatter plots, quality by length, estimated risks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz.arguments import check_columns, checked
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.steps import REFERENCES, reference_mark
from attnviz.figures.theme import build, grid_axis, layout, legend, lines, note, palette
from attnviz.figures.wording import listed

BINS = 30
_HEIGHT = 320  # px
_FEW = 8  # whole numbers that all get a tick
_MARGIN = (56, 12, 40, 48)
_PANEL = 300  # px of the panel


def distribution(
    values: Mapping[str, Sequence[float]],
    title: str,
    *,
    references: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    uniform: float | None = None,
    dark: bool = False,
) -> Chart:
    """The share of sentences in each of BINS equal bins, one line per name. values : name -> one number per sentence.

    references : name -> one of REFERENCES -> a number, marked on the axis in the colour of the name. uniform : the
    number of uniform attention, a dotted line. NaN is left out. ValueError when there is no number at all.
    """
    samples = {name: _numbers(numbers) for name, numbers in values.items()}
    everything = np.concatenate([*samples.values(), np.empty(0)])
    if not len(everything):
        raise ValueError("values must hold at least one number; got none")
    edges = np.histogram_bin_edges(everything, BINS)
    styles = lines(samples, dark)
    traces = [_steps(name, numbers, edges, styles[name]) for name, numbers in samples.items() if len(numbers)]
    traces += [
        _mark(name, kind, value, styles[name])
        for name, marks in references.items()
        if name in styles
        for kind, value in marks.items()
    ]
    means = ", ".join(f"{name} {numbers.mean():.2f}" for name, numbers in samples.items() if len(numbers))
    reference_values = "".join(
        f" {kind.capitalize()}: {', '.join(f'{name} {marks[kind]:.2f}' for name, marks in references.items())}."
        for kind in REFERENCES
        if references and all(kind in marks for marks in references.values())
    )
    reference_values += "" if uniform is None else f" Uniform attention: {uniform:.2f}."
    frame = layout(
        dark, _HEIGHT, _MARGIN, None, f"{title} of the sentences, by mechanism. Means: {means}.{reference_values}"
    )
    frame |= _axes(title, "Share of sentences", dark) | legend(1.02, 13)
    frame["yaxis"] |= dict(tickformat=".0%", rangemode="tozero")
    return build(traces, frame | _uniform(uniform, dark))


def scatter(
    points: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    titles: tuple[str, str],
    texts: Mapping[str, Sequence[str]],
    *,
    dark: bool = False,
) -> Chart:
    """A point a sentence. points : name -> (x, y). titles : of x and y. texts : name -> hover texts."""
    styles = lines(points, dark)
    traces = [
        dict(
            type="scatter",
            mode="markers",
            name=labels.escape(labels.plain(name)),
            x=np.asarray(x, dtype=np.float32),
            y=np.asarray(y, dtype=np.float32),
            marker=dict(color=styles[name].color, symbol=styles[name].marker, size=6, opacity=0.6),
            hovertext=[labels.escape(labels.plain(text)) for text in texts[name]],
            hoverinfo="text+x+y",
        )
        for name, (x, y) in points.items()
    ]
    count = max((len(x) for x, _ in points.values()), default=0)
    words = f"{titles[1]} against {titles[0]} of {count} sentences, for {listed(points)}."
    frame = layout(dark, _HEIGHT, _MARGIN, None, words) | _axes(*titles, dark) | legend(1.02, 13)
    for axis, values in zip(("xaxis", "yaxis"), zip(*points.values()), strict=False):
        frame[axis] |= _whole_ticks(np.concatenate([_numbers(numbers) for numbers in values]))
    if not count:
        frame["annotations"] = [note("no sentence", dark, x=0.5, y=0.5, xref="paper", yref="paper")]
    return build(traces, frame)


def _numbers(numbers: Sequence[float]) -> np.ndarray:
    numbers = np.asarray(numbers, dtype=float)
    return numbers[~np.isnan(numbers)]


def _steps(name: str, numbers: np.ndarray, edges: np.ndarray, style) -> dict:
    shares = np.histogram(numbers, edges)[0] / len(numbers)
    return dict(
        type="scatter",
        mode="lines",
        name=labels.escape(labels.plain(name)),
        x=edges.round(4),
        y=np.append(shares, 0).round(4),
        line=dict(color=style.color, dash=style.dash, width=2, shape="hv"),
        hovertemplate=f"%{{y:.1%}} from %{{x}}<extra>{labels.escape(labels.plain(name))}</extra>",
    )


def _mark(name: str, kind: str, value: float, style) -> dict:
    """A reference on the axis of a distribution."""
    words = f"{kind}: %{{x}}<extra>{labels.escape(labels.plain(name))}</extra>"
    return reference_mark(name, kind, round(value, 4), 0, style.color, 11) | dict(hovertemplate=words)


def _uniform(value: float | None, dark: bool) -> dict:
    """A dotted line at the number of uniform attention."""
    if value is None:
        return {}
    line = dict(color=palette(dark).muted, width=1.5, dash="dot")
    shape = dict(type="line", x0=value, x1=value, y0=0, y1=1, yref="y domain", layer="below", line=line)
    place = dict(x=value, y=1, yref="y domain", xanchor="right", yanchor="top")
    return dict(shapes=[shape], annotations=[note(f"uniform {value:.3g}", dark, **place)])


def _axes(x: str, y: str, dark: bool) -> dict:
    look = grid_axis(palette(dark))
    return {
        axis: look | dict(title=dict(text=labels.escape(name), font=dict(size=12)))
        for axis, name in (("xaxis", x), ("yaxis", y))
    }


def _whole_ticks(numbers: np.ndarray) -> dict:
    """Ticks at whole numbers, where Plotly would put some in between: no sentence has 8.5 tokens."""
    counts = len(numbers) and not (numbers % 1).any() and np.ptp(numbers) <= _FEW
    return dict(tick0=0, dtick=1) if counts else {}


def by_length(frame: pd.DataFrame, title: str | None = None, *, dark: bool = False) -> Chart:
    """frame : columns mechanism, words (mean length of the source), bleu; a row for each model and length."""
    check_columns(frame, ("mechanism", "words", "bleu"), "frame of quality by length")
    styles, axis = lines(frame["mechanism"], dark), grid_axis(palette(dark), rangemode="tozero")
    figure = layout(dark, _PANEL, (48, 12, 44, 48), title, _length_words(frame)) | legend(1.02)
    figure["xaxis"] = axis | dict(title=dict(text="words of the source"))
    figure["yaxis"] = axis | dict(title=dict(text="BLEU"))
    data = [
        _length_line(name, rows.sort_values("words"), styles[name])
        for name, rows in frame.groupby("mechanism", sort=False)
    ]
    return build(data, figure)


def _length_line(name: str, rows: pd.DataFrame, style) -> dict:
    return dict(
        type="scatter",
        mode="lines+markers",
        name=labels.escape(name),
        x=rows["words"].round(1).tolist(),
        y=rows["bleu"].round(2).tolist(),
        line=dict(color=style.color, dash=style.dash, width=2),
        marker=dict(symbol=style.marker, size=9),
        hovertemplate="%{y:.1f} BLEU at %{x:.0f} words<extra></extra>",
    )


def _length_words(frame: pd.DataFrame) -> str:
    parts = []
    for name, rows in frame.sort_values("words").groupby("mechanism", sort=False):
        first, last = rows.iloc[0], rows.iloc[-1]
        parts.append(
            f"{name}: {first['bleu']:.1f} at {first['words']:.0f} words, {last['bleu']:.1f} at {last['words']:.0f}"
        )
    return f"BLEU by length of the source. {'; '.join(parts)}."


@checked
def reliability(bins: Sequence[tuple[float, float, int]], title: str | None = None, *, dark: bool = False) -> Chart:
    """bins : mean predicted risk, share that is poor, number of sentences (`Calibration.bins`; a card has
    them under `confidence`). Points on the dotted diagonal are calibrated. ValueError without bins.

    >>> figures.reliability([(0.1, 0.05, 40), (0.6, 0.7, 10)])
    Chart('Share of poor translations by their estimated risk: 5% at a risk of 10%, 70% at a risk of 60%.')
    """
    if not bins:
        raise ValueError("there must be at least one bin; got none")
    colors = palette(dark)
    axis = grid_axis(colors, range=[-0.02, 1.02], tickformat=".0%")
    figure = layout(dark, _PANEL, (56, 12, 14, 48), title, _risk_words(bins))
    figure["xaxis"] = axis | dict(title=dict(text="risk, estimated"))
    figure["yaxis"] = axis | dict(title=dict(text="actually poor"))
    diagonal = dict(
        type="scatter", mode="lines", x=[0, 1], y=[0, 1], line=dict(color=colors.muted, dash="dot"), hoverinfo="skip"
    )
    return build([diagonal, _risk_points(bins, colors.lines[0])], figure)


def _risk_points(bins: Sequence[tuple[float, float, int]], color: str) -> dict:
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


def _risk_words(bins: Sequence[tuple[float, float, int]]) -> str:
    parts = [f"{poor:.0%} at a risk of {risk:.0%}" for risk, poor, _ in bins]
    return f"Share of poor translations by their estimated risk: {', '.join(parts)}."
