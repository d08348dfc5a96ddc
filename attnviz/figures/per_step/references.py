"""Two baselines at the end of the axis of each statistic: the untrained model, and shuffled words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attnviz import lazy_pandas as pd
from attnviz.figures import labels
from attnviz.figures.theme import Line

PANEL_STATISTICS = ("entropy_nats", "max_weight", "effective_entropy")  # a panel each
REFERENCES = {"untrained": "triangle-up-open", "shuffled": "x-thin-open"}  # -> Plotly's symbol
References = Mapping[str, Mapping[str, Mapping[str, float]]]  # mechanism -> one of REFERENCES -> statistic -> level


def marks(frames: Mapping[str, pd.DataFrame], references: References, styles: Mapping[str, Line]) -> Iterator[dict]:
    """A trace for each reference of each panel."""
    end = max((frame["step"].max() for frame in frames.values() if len(frame)), default=0) + 0.4
    for panel, statistic in enumerate(PANEL_STATISTICS):
        axis = "" if panel == 0 else str(panel + 1)
        for name, levels in references.items():
            for kind, numbers in levels.items():
                color = styles[name].color
                yield dict(
                    type="scatter",
                    mode="markers",
                    name=f"{labels.escape(labels.plain(name))}, {kind}",
                    x=[end],
                    y=[round(numbers[statistic], 4)],
                    xaxis=f"x{axis}",
                    yaxis=f"y{axis}",
                    marker=dict(symbol=REFERENCES[kind], size=10, color=color, line=dict(color=color, width=2)),
                    cliponaxis=False,
                    showlegend=False,
                    hoverinfo="skip",
                )


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
