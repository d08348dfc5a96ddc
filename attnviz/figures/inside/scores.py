"""The scores of one step and the weights that the softmax makes of them, one above the other, over the same tokens."""

from __future__ import annotations

import numpy as np

from attnviz.figures import hover, labels
from attnviz.figures.axes import Keys, key_axis, value_axis
from attnviz.figures.chart import Chart
from attnviz.figures.per_step.bars import token_bars
from attnviz.figures.theme import build, layout, note, palette
from attnviz.figures.wording import weight_words

_HEIGHT, _TITLE = 300, 30  # px of both rows of bars, of a title
_LOWER, _UPPER = [0, 0.42], [0.56, 1]  # of the height: weights, scores


def score_bars(opened, title: str | None = None, *, temperature: float = 1.0, dark: bool = False) -> Chart:
    """opened : an `inside.Step`. Above: the score of each source token, any real number; below: its weight, 0 to 1.

    temperature : what the scores are divided by before the softmax; 1 is the model. Tokens outside the window of local
    attention have no bar above and weight 0 below; a dotted line is its Gaussian.
    """
    after = "weight, after it" if temperature == 1 else f"weight, after it at temperature {temperature:g}"
    after += " (dotted: Gaussian)" if opened.window else ""
    weights = opened.weights if temperature == 1 else opened.weights_at(temperature)
    scores = np.where(opened.mask, opened.scores, np.nan)
    left, right, xaxis = key_axis(Keys(opened.keys, (opened.token,)), "bottom")
    above = _TITLE if title else 0
    frame = layout(
        dark,
        _HEIGHT + above,
        (left, right, 24 + above, 72),
        title and labels.escape(title),
        describe_scores(opened, weights),
    )
    frame |= dict(
        xaxis=xaxis | dict(anchor="y"),
        yaxis=value_axis(dark, domain=_LOWER, range=[0, 1.25], tickvals=[0, 0.5, 1]),
        yaxis2=value_axis(dark, domain=_UPPER, nticks=4),
        hovermode="x",  # small weights are met too
        annotations=[
            note("score, before the softmax", dark, x=0, y=1, **_CORNER),
            note(after, dark, x=0, y=_LOWER[1], **_CORNER),
        ],
    )
    bars = [_bars(opened, weights, "y", dark), _bars(opened, scores, "y2", dark)]
    return build(bars + ([_gaussian(opened.window, dark)] if opened.window else []), frame)


_CORNER = dict(xref="paper", yref="paper", xanchor="left", yanchor="bottom")


def describe_scores(opened, weights: np.ndarray) -> str:
    """The step, and its three largest scores with the weights (S,) on show. Plain text, not escaped."""
    order = np.argsort(-np.where(opened.mask, opened.scores, -np.inf), kind="stable")[:3]
    largest = ", ".join(
        f"{labels.quoted(opened.keys[key])} {opened.scores[key]:.2f} becomes {weights[key]:.2f}"
        for key in order.tolist()
        if opened.mask[key]
    )
    hidden = int((~opened.mask).sum())
    outside = f" {hidden} token{'s are' if hidden > 1 else ' is'} outside the window." if hidden else ""
    return (
        f"Scores and weights of step {opened.step + 1}, {labels.quoted(opened.token)}; the largest: {largest}.{outside}"
    )


def _gaussian(window, dark: bool) -> dict:
    """What local attention multiplies each weight by before it divides the row by its sum."""
    return dict(
        type="scatter",
        mode="lines",
        y=[round(float(value), 4) for value in window.gaussian],
        yaxis="y",
        line=dict(color=palette(dark).text, width=2, dash="dot"),
        hoverinfo="skip",
    )


def _bars(opened, values: np.ndarray, axis: str, dark: bool) -> dict:
    best = int(np.nanargmax(values))
    said = "weight" if axis == "y" else "score"
    words = weight_words if axis == "y" else "{:.3f}".format
    return token_bars(values, best, opened.mechanism, dark) | dict(
        y=[None if np.isnan(value) else round(float(value), 4) for value in values],
        yaxis=axis,
        hovertext=[
            f"{key}: outside the window" if np.isnan(value) else f"{said} of {key}: {words(float(value))}"
            for key, value in zip(hover.placed(opened.keys), values, strict=True)
        ],
    )
