"""Figures of the computation of one step: its scores and weights, the terms of a score, and weighted values with the
context.

Each takes an `inside.Step`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from attnviz.figures import labels, wording
from attnviz.figures.bars import token_bars, upper_and_lower
from attnviz.figures.chart import Chart
from attnviz.figures.maps import Keys, rows_height
from attnviz.figures.theme import NAMES_AXIS, build, grid_axis, layout, map_cells, note, palette
from attnviz.figures.wording import number, signed, weight_words

_ROW, _NAMES = 24, 160  # px a term, of the names with their numbers
_TOP, _BELOW = 22, 34  # px above and below the cells
SHOWN = 24  # dimensions


def score_bars(opened, title: str | None = None, *, temperature: float = 1.0, dark: bool = False) -> Chart:
    """opened : an `inside.Step`. Above: the score of each source token, any real number; below: its weight, 0 to 1.

    temperature : the scores are divided by it before the softmax; 1 is the model. Tokens outside the window of local
    attention have no bar above and weight 0 below; a dotted line is its Gaussian.
    """
    after = "weight, after it" if temperature == 1 else f"weight, after it at temperature {temperature:g}"
    after += " (dotted: Gaussian)" if opened.window else ""
    weights = opened.weights if temperature == 1 else opened.weights_at(temperature)
    scores = np.where(opened.mask, opened.scores, np.nan)
    names, described = ("score, before the softmax", after), describe_scores(opened, weights)
    frame = upper_and_lower(Keys(opened.keys, (opened.token,)), names, 1.25, title, described, dark)
    frame["hovermode"] = "x"  # small weights are met too
    bars = [_score_bars(opened, weights, "y", dark), _score_bars(opened, scores, "y2", dark)]
    _write_above_zero(frame, bars[1], scores, dark)
    return build(bars + ([_gaussian(opened.window, dark)] if opened.window else []), frame)


def _write_above_zero(frame: dict, bars: dict, scores: np.ndarray, dark: bool) -> None:
    """Where all scores are negative, the number of the largest goes above 0: below its bar it would lie on the longer
    bars beside it."""
    best, least = int(np.nanargmax(scores)), float(np.nanmin(scores))
    if scores[best] < 0:
        text, bars["text"][best] = bars["text"][best], ""
        frame["yaxis2"] |= dict(range=[1.05 * least, -0.25 * least])
        place = note(text, dark, x=best, y=0, xref="x", yref="y2", yanchor="bottom")
        frame["annotations"].append(place | dict(font=dict(size=12, color=palette(dark).text)))


def describe_scores(opened, weights: np.ndarray) -> str:
    """The step, and its three largest scores with the weights (S,) on show. Plain text, not escaped."""
    order = np.argsort(-np.where(opened.mask, opened.scores, -np.inf), kind="stable")[:3]
    keys, form = labels.named(opened.keys), f".{_decimals(opened.scores[order], 2)}f"
    largest = ", ".join(
        f"{keys[key]} {number(opened.scores[key], form)} becomes {weights[key]:.2f}"
        for key in order.tolist()
        if opened.mask[key]
    )
    hidden = int((~opened.mask).sum())
    outside = f" {hidden} token{'s are' if hidden > 1 else ' is'} outside the window." if hidden else ""
    return f"Scores and weights of step {opened.step + 1}, {_produced(opened)}; the largest: {largest}.{outside}"


def _gaussian(window, dark: bool) -> dict:
    """The factor by which local attention multiplies each weight before normalising the row."""
    return dict(
        type="scatter",
        mode="lines",
        y=[round(float(value), 4) for value in window.gaussian],
        yaxis="y",
        line=dict(color=palette(dark).text, width=2, dash="dot"),
        hoverinfo="skip",
    )


def _score_bars(opened, values: np.ndarray, axis: str, dark: bool) -> dict:
    best = int(np.nanargmax(values))
    bars = token_bars(values, best, opened.mechanism, dark)
    what, words, decimals = "weight", weight_words, 3
    if axis == "y2":
        what, decimals = "score", _decimals(values)
        words = partial(number, form=f".{decimals}f")
        bars["text"][best] = number(values[best], f".{_decimals(values, 2)}f")
    return bars | dict(
        y=[None if np.isnan(value) else round(float(value), decimals + 1) for value in values],
        yaxis=axis,
        hovertext=[
            f"{key}: outside the window" if np.isnan(value) else f"{what} of {key}: {words(float(value))}"
            for key, value in zip(wording.placed(opened.keys), values, strict=True)
        ],
    )


def _decimals(values: Sequence[float] | np.ndarray, least: int = 3) -> int:
    """How many decimals show two digits of the largest value; at least `least`."""
    most = float(np.nanmax(np.abs(values), initial=0))
    return max(least, 1 - math.floor(math.log10(most))) if 0 < most < math.inf else least


def score_parts(
    opened, key: int, count: int = 10, title: str | None = None, *, reference: str = "mean", dark: bool = False
) -> Chart:
    """opened : an `inside.Step`. A bar for the constant part of one key's score, then bars for the `count` terms that
    differ most from the reference, then the rest. The axis fits the differences: the bar of the constant part is cut at
    its edge where it is longer, and says so. reference : as of `Step.compared`.

    ValueError for a key or a reference that is not there.
    """
    rows = _terms(opened, opened.compared(key, reference), count)
    colors, places = palette(dark), 1 + _decimals([value for _, value in rows[1:] if value is not None])
    names, values = [name for name, _ in rows], [value if value is None else round(value, places) for _, value in rows]
    bar_values = [value for value in values[1:] if value is not None]
    span, constant = _span(bar_values), rows[0][1]
    # of the size of the score; at its scale no difference could be seen
    if constant is None or not span[0] <= constant <= span[1]:
        names[0] += " (bar cut)"
    words = describe_parts(opened, key, reference)
    frame = layout(dark, _ROW * len(rows) + 44, (_NAMES, 12, 8, 36), title, words)
    frame |= _term_axes(names, span, colors)
    return build([_term_bars(values, colors)], frame)


def _term_axes(names: list[str], span: list[float], colors) -> dict:
    return dict(
        xaxis=grid_axis(colors, range=span, zeroline=True, zerolinecolor=colors.muted, nticks=4, tickangle=0),
        yaxis=dict(
            range=[len(names) - 0.5, -0.5],
            tickvals=list(range(len(names))),
            ticktext=names,  # beside a bar a number would lie on the names where the picture is narrow
            fixedrange=True,
            showgrid=False,
            zeroline=False,
        ),
    )


def _produced(opened) -> str:
    """The token of the step, quoted for a sentence."""
    return labels.quoted((*opened.before, opened.token), -1)


def describe_parts(opened, key: int, reference: str = "mean") -> str:
    """The score, the constant part, and the largest three differences. Plain text, not escaped."""
    compared, parts = opened.compared(key, reference), opened.parts
    largest, decimals = compared.largest(3), _decimals([opened.scores[key]])
    digits = _decimals([value for _, value in largest])
    listed = ", ".join(f"{parts.name(place)} {signed(value, digits)}" for place, value in largest)
    differences = f"the differences from it of {parts.words}; the largest: {listed}"
    if parts.whole:
        differences = f"a difference from it of {signed(compared.differences.terms[0, 0], digits)}"
    score = number(opened.scores[key], f".{decimals}f")
    return (
        f"The score of {labels.quoted(opened.keys, key)} at step {opened.step + 1} is {score}: "
        f"{signed(compared.constant, decimals)} as {reference_words(opened, compared)}, and {differences}."
    )


def reference_words(opened, compared) -> str:
    """The reference of the differences, in words: `the mean of all tokens`, `‘dog’ (3)`; not escaped."""
    if compared.other is None:
        return "the mean of all tokens" if opened.mask.all() else "the mean of the tokens in the window"
    return f"{labels.quoted(opened.keys, compared.other)} ({compared.other + 1})"


def _span(values: list[float]) -> list[float]:
    """The axis, a little wider than the longest bars."""
    least, most = min(0.0, *values), max(0.0, *values)
    room = 0.05 * ((most - least) or 1.0)
    return [least - room * (least < 0), most + room]


def _term_bars(values: list[float | None], colors) -> dict:
    return dict(
        type="bar",
        orientation="h",
        x=values,
        y=list(range(len(values))),
        width=0.78,
        marker=dict(
            color=[colors.muted, *(colors.diverging[-1 if (value or 0) >= 0 else 0] for value in values[1:])],
            line=dict(width=0),
        ),
        hoverinfo="skip",
    )


def _terms(opened, compared, count: int) -> list[tuple[str, float | None]]:
    """Names with their numbers, and values of the bars of the terms. The other rows have no bar, because theirs would
    dwarf the terms."""
    shown = compared.largest(count)
    digits = _decimals([value for _, value in shown])
    rows: list[tuple[str, float | None]] = [(f"constant part: {signed(compared.constant, digits)}", compared.constant)]
    rows += [(f"{opened.parts.name(place)}: {signed(value, digits)}", value) for place, value in shown]
    differences = compared.differences.terms[0]
    rest = len(differences) - len(shown)
    if rest:
        others = float(differences.sum()) - sum(value for _, value in shown)
        rows.append((f"{rest} others: {signed(others, digits)}", None))
    if opened.window:
        rows.append((f"ln of the Gaussian: {signed(compared.gaussian)}", compared.gaussian))
    return rows


def weighted_values(
    opened, count: int = SHOWN, title: str | None = None, *, dark: bool = False, scale: bool = True
) -> Chart:
    """opened : an `inside.Step`. Row j: the weight of source token j times its value; last row: their sum, the context.

    Columns are the `count` dimensions with the largest absolute context, the largest first. scale : a text written
    under the cells.
    """
    order = np.argsort(-np.abs(opened.context), kind="stable")[:count]
    cells = np.vstack([opened.weighted[:, order], opened.context[None, order]]).astype(np.float32)
    most = float(np.abs(cells).max()) or 1.0
    names = [*labels.ticks(opened.keys), "<b>context</b>"]
    rows = len(names)
    left = min(max(7 * max(map(labels.width, names[:-1])) + 12, 66), 104)
    height, words = _TOP + rows_height(rows) + _BELOW, describe_values(opened, order)
    frame, axis = layout(dark, height, (left, 12, _TOP, _BELOW), title, words), NAMES_AXIS
    shown = labels.thin(rows, int(rows_height(rows) / 15), keep=rows - 1)
    frame |= dict(
        xaxis=axis | dict(showticklabels=False, ticks="", range=[-0.5, len(order) - 0.5]),
        yaxis=axis | dict(range=[rows - 0.5, -0.5], tickvals=shown, ticktext=[names[place] for place in shown]),
        annotations=[_heading(len(order), len(opened.context), most, dark)] if scale else [],
        shapes=[_line_above_the_context(rows, dark)],
    )
    return build([_cells(opened, cells, order, most, dark)], frame)


def describe_values(opened, order: np.ndarray) -> str:
    """How much of the context's length comes from the token with the largest weight. Plain text, not escaped."""
    best = int(opened.weights.argmax())
    lengths = np.linalg.norm(opened.weighted, axis=-1)
    return (
        f"Weighted values and context of step {opened.step + 1}, {_produced(opened)}: {len(order)} of "
        f"{len(opened.context)} dimensions. {labels.quoted(opened.keys, best)} has weight {opened.weights[best]:.2f}; "
        f"its weighted value has length {lengths[best]:.2f}, the context {float(np.linalg.norm(opened.context)):.2f}."
    )


def _heading(shown: int, dimensions: int, most: float, dark: bool) -> dict:
    text = f"{shown} of {dimensions} dimensions, −{most:.2f} to {most:.2f}"
    return note(text, dark, x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom")


def _line_above_the_context(rows: int, dark: bool) -> dict:
    line = dict(color=palette(dark).muted, width=1)
    return dict(type="line", xref="paper", x0=0, x1=1, yref="y", y0=rows - 1.5, y1=rows - 1.5, line=line)


def _cells(opened, cells: np.ndarray, order: np.ndarray, most: float, dark: bool) -> dict:
    rows, colors = [*wording.placed(opened.keys), "context"], palette(dark).diverging
    texts = [
        [f"{row}, dimension {number + 1}: {value:+.3f}" for number, value in zip(order.tolist(), values.tolist())]
        for row, values in zip(rows, cells)
    ]
    return map_cells(np.round(cells, 4), (-most, most), colors, hoverinfo="text", hovertext=texts)
