"""The weights of one query through several score functions: a row each, one column per source token."""

from __future__ import annotations

import numpy as np
import pandas as pd

from attnviz import mechanisms
from attnviz.figures import hover, labels
from attnviz.figures.axes import Keys, key_axis
from attnviz.figures.chart import Chart
from attnviz.figures.checks import require
from attnviz.figures.theme import CLEAR, build, colorscale, layout, palette

_ROW, _TITLE, _TOP, _LEFT = 30, 30, 76, 150  # px of a row, a title, the tokens above, the names of the scores
OWN = "the model’s own"


def score_functions(opened, frame: pd.DataFrame, title: str | None = None, *, dark: bool = False) -> Chart:
    """opened : an `inside.Step`. frame : its `inside.other_scores`. The first row has the model's own weights."""
    require(frame, ("score", "trained_with", "mechanism", "key", "weight"), "frame of other scores")
    names, weights = rows(opened, frame)
    above = _TOP + (_TITLE if title else 0)
    _, right, xaxis = key_axis(Keys(opened.keys), "top")
    height = above + _ROW * len(names) + 12
    figure = layout(
        dark, height, (_LEFT, right, above, 12), title and labels.escape(title), _words(opened, *(names, weights))
    )
    figure |= dict(
        xaxis=xaxis,
        yaxis=dict(
            range=[len(names) - 0.5, -0.5],
            tickvals=list(range(len(names))),
            ticktext=[labels.escape(name) for name in names],
            fixedrange=True,
            showgrid=False,
            zeroline=False,
            ticklen=3,
            tickcolor=CLEAR,
        ),
    )
    return build([_cells(opened, names, weights, dark)], figure)


def rows(opened, frame: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Names of the score functions, and weights (rows, S); the model's own first."""
    names, weights = [OWN], [opened.weights]
    learnt = frame.fillna({"trained_with": "", "mechanism": ""})
    for (score, _, mechanism), part in learnt.groupby(["score", "trained_with", "mechanism"], sort=False):
        names.append(f"{score}, of {_family(mechanism, score)}" if mechanism else score)
        weights.append(part.sort_values("key")["weight"].to_numpy())
    return names, np.stack(weights)


def _family(mechanism: str, score: str) -> str:
    """Whose score it is: `Luong`; `Luong local` where the mechanism is not called after the score."""
    family, _, variant = mechanisms.find(mechanism).title.partition(" · ")
    return family if variant == score else f"{family} {variant}"


def _words(opened, names: list[str], weights: np.ndarray) -> str:
    said = "; ".join(
        f"{name}: {labels.quoted(opened.keys[int(row.argmax())])} {row.max():.2f}" for name, row in zip(names, weights)
    )
    return f"The largest weight of the same query through {len(names)} score functions, {said}."


def _cells(opened, names: list[str], weights: np.ndarray, dark: bool) -> dict:
    keys = hover.placed(opened.keys)
    return dict(
        type="heatmap",
        z=np.round(weights, 4).astype(np.float32),
        zmin=0,
        zmax=1,
        xgap=1,
        ygap=3,
        colorscale=colorscale(palette(dark).sequential),
        showscale=False,
        hoverinfo="text",
        hovertext=[
            [f"{labels.escape(name)}: weight of {key}: {value:.3f}" for key, value in zip(keys, row.tolist())]
            for name, row in zip(names, weights)
        ],
    )
