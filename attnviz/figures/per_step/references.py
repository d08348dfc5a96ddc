"""Two baselines after the last step of each statistic: the untrained model, and shuffled words. The marks of each model
have a place of their own, in the order of the legend, so that a print in grey says the same and none hides another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attnviz import lazy_pandas as pd
from attnviz.figures import labels
from attnviz.figures.theme import Line

PANEL_STATISTICS = ("entropy_nats", "max_weight", "effective_entropy")  # a panel each
REFERENCES = {"untrained": "triangle-up-open", "shuffled": "x-thin-open"}  # -> Plotly's symbol
_PLACE = 0.035  # of the steps' room, that the marks of a model take
References = Mapping[str, Mapping[str, Mapping[str, float]]]  # mechanism -> one of REFERENCES -> statistic -> level


def marks(frames: Mapping[str, pd.DataFrame], references: References, styles: Mapping[str, Line]) -> Iterator[dict]:
    """A trace for each reference of each panel."""
    start, end = steps_span(frames)
    places = {name: end + (place + 0.5) * _PLACE * (end - start) for place, name in enumerate(references)}
    for panel, statistic in enumerate(PANEL_STATISTICS):
        axis = "" if panel == 0 else str(panel + 1)
        for name, levels in references.items():
            for kind, numbers in levels.items():
                color = styles[name].color
                yield dict(
                    type="scatter",
                    mode="markers",
                    name=f"{labels.escape(labels.plain(name))}, {kind}",
                    x=[places[name]],
                    y=[round(numbers[statistic], 4)],
                    xaxis=f"x{axis}",
                    yaxis=f"y{axis}",
                    marker=dict(symbol=REFERENCES[kind], size=10, color=color, line=dict(color=color, width=2)),
                    cliponaxis=False,
                    showlegend=False,
                    hoverinfo="skip",
                )


def steps_span(frames: Mapping[str, pd.DataFrame]) -> tuple[float, float]:
    """Where the room of the steps begins and ends."""
    steps = [frame["step"] for frame in frames.values() if len(frame)]
    first, last = min((each.min() for each in steps), default=0), max((each.max() for each in steps), default=0)
    return float(first) - 0.4, float(last) + 0.4


def steps_axis(frames: Mapping[str, pd.DataFrame], references: References) -> list[float]:
    """The ends of the axis of steps, with room for the marks."""
    start, end = steps_span(frames)
    return [start, end + len(references) * _PLACE * (end - start)]


def highest(references: References, statistic: str) -> float:
    """The end of an axis on which every mark of a statistic fits; 0 without one."""
    return 1.12 * max(
        (numbers[statistic] for levels in references.values() for numbers in levels.values()), default=0.0
    )


def said(references: References) -> str:
    """The marks in words, for the description of a chart."""
    parts = [
        f"{name} {kind} {numbers['entropy_nats']:.2f} nats, maximum {numbers['max_weight']:.2f}, "
        f"{numbers['effective_entropy']:.1f} positions"
        for name, levels in references.items()
        for kind, numbers in levels.items()
    ]
    return f"; marked at the right: {'; '.join(parts)}" if parts else ""
