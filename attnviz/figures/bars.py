"""Bars over tokens: the weights of one step, under the columns of a heatmap of the same width; and parts shared by
similar bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnviz.arguments import checked
from attnviz.figures import labels, wording
from attnviz.figures.chart import Chart
from attnviz.figures.maps import Keys, all_labels, check_step, key_axis, value_axis
from attnviz.figures.theme import CLEAR, CORNER, build, layout, lines, note, palette
from attnviz.figures.wording import BLANK, row_sentence, strongest, weight_words
from attnviz.select import Grid

_NUMBERED = dict(textposition="outside", textangle=0, cliponaxis=False, constraintext="none", hoverinfo="text")
_HEIGHT = 196  # px of the bars
_TWO_ROWS = 300  # px of two rows of bars
_LOWER, _UPPER = [0, 0.42], [0.56, 1]  # of the height
_ENDS = (0.02, 0.04, 0.06, 0.08, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)  # of a scale that is not whole


@checked
def step_bars(
    grid: Grid,
    step: int,
    title: str | None = None,
    *,
    window: tuple[float, float] | None = None,
    whole: bool = True,
    written: float | None = None,
    dark: bool = False,
) -> Chart:
    """The weights of one step over the keys, from 0 to 1, under the columns of a heatmap of the same width.

    The highest bar carries its value, and so do bars of at least `written`. whole : False ends the scale a little above
    the highest bar, so that small weights can be told apart. window : of local attention, (centre, reach) in keys from
    0: a dotted line at the predicted place, a band over its window. ValueError if `step` is not a row of the grid.

    >>> figures.step_bars(select.select(trace), step=1)
    Chart('Step 2, ‘chien’: looks at ‘dog’ 0.73, ‘The’ 0.12, ‘black’ 0.11.')
    """
    return build(*_of_step(grid, step, title, window, whole, written, dark))


@checked
def guess_bars(
    grid: Grid, step: int, guess: Sequence[float] | np.ndarray, title: str | None = None, *, dark: bool = False
) -> Chart:
    """The weights of one step as in `step_bars`, with a guess drawn over them as outlines. guess : (K,) shares that sum
    to 1.

    ValueError if `step` is not a row of the grid, or if the number of shares is not the number of keys.

    >>> figures.guess_bars(select.select(trace), 1, [0, 0, 1, 0, 0, 0])
    Chart('Step 2, ‘chien’: looks at ‘dog’ 0.73, ‘The’ 0.12, ‘black’ 0.11. The guess, outlined: ‘dog’ (3) 1.00.')
    """
    shared = np.asarray(guess, dtype=float)
    if shared.shape != (len(grid.keys),):
        raise ValueError(f"guess must have one share per key, {len(grid.keys)}; got shape {shared.shape}")
    data, frame = _of_step(grid, step, title, None, True, None, dark)
    names = wording.placed(grid.keys)
    outlines = dict(
        type="bar",
        name="guess",
        width=0.82,
        y=[round(share, 4) if share else None for share in shared.tolist()],  # a bar of 0 would be a line
        marker=dict(color=CLEAR, line=dict(width=2, color=palette(dark).text)),
        hoverinfo="text",
        hovertext=[f"guess at {key}: {share:.2f}" for key, share in zip(names, shared.tolist())],
    )
    at = [f"{names[place]} {shared[place]:.2f}" for place in np.flatnonzero(shared)]
    frame["meta"]["description"] += f" The guess, outlined: {', '.join(at)}."
    return build([*data, outlines], frame | dict(barmode="overlay"))


def _of_step(
    grid: Grid, step: int, title: str | None, window, whole: bool, written: float | None, dark: bool
) -> tuple[list[dict], dict]:
    """The bars of `step_bars`, and their layout."""
    check_step(grid, step)
    weights = grid.masked[step]
    best = strongest(grid, step)
    left, right, xaxis = key_axis(grid, "bottom")
    frame = layout(dark, _HEIGHT, (left, right, 18, 72), title, row_sentence(grid, step))
    frame |= dict(xaxis=xaxis, yaxis=_weight_axis(dark, 1 if whole or best is None else _end(weights[best])))
    frame["hovermode"] = "x"  # the pointer reads a column: bars of small weights are too small to be met
    frame["meta"] |= all_labels(grid, xaxis)
    frame["meta"]["axes"] = {"x": f"{grid.sides[1]} (attended to)", "y": "attention weight"}
    if window:
        frame["shapes"] = window_shapes(grid, window, dark)
    if best is None:
        frame["annotations"] = [note(BLANK, dark, x=0.5, y=0.5, xref="paper", yref="paper")]
    return [_bars(grid, step, weights, best, written, dark)], frame


@checked
def next_tokens(
    names: Sequence[str],
    probabilities: Sequence[float] | np.ndarray,
    drawn: Sequence[float] | np.ndarray,
    title: str | None = None,
    *,
    dark: bool = False,
) -> Chart:
    """Candidates for the next token: the model's probability, and beside it the probability after temperature and
    cut-offs, both from 0 to 1. ValueError unless every token has both.

    >>> figures.next_tokens(["dog", "cat"], [0.6, 0.3], [1, 0]).description.split("; ")[1]
    'after temperature and cut-offs ‘dog’ is drawn with 1.000, and 1 of these tokens cannot be drawn.'
    """
    probabilities, drawn = (np.asarray(values, dtype=float) for values in (probabilities, drawn))
    if not names or not probabilities.shape == drawn.shape == (len(names),):
        shapes = f"shapes {probabilities.shape} and {drawn.shape}"
        raise ValueError(f"probabilities and drawn must have one number per token, {len(names)}; got {shapes}")
    shown = [labels.plain(name) for name in names]
    likely, frequent = int(np.argmax(probabilities)), int(np.argmax(drawn))
    description = (
        f"{len(names)} tokens that may come next. The most probable is ‘{labels.escape(shown[likely])}’, "
        f"{probabilities[likely]:.3f}; after temperature and cut-offs ‘{labels.escape(shown[frequent])}’ is drawn with "
        f"{drawn[frequent]:.3f}, and {int(np.sum(drawn == 0))} of these tokens cannot be drawn."
    )
    colors, frame = palette(dark), layout(dark, _HEIGHT + 24, (34, 8, 42, 52), title, description)
    ticks = [labels.escape(labels.cut(name)) for name in shown]
    frame["xaxis"] = dict(
        tickvals=list(range(len(names))), ticktext=ticks, fixedrange=True, showgrid=False, tickfont=dict(size=12)
    )
    frame["yaxis"] = value_axis(dark, range=[0, 1.12], tickvals=[0, 0.5, 1], zeroline=False)
    frame |= dict(barmode="overlay", showlegend=True, legend=dict(orientation="h", x=0, y=1, yanchor="bottom"))
    frame["meta"]["axes"] = {"x": "next token", "y": "probability"}
    both = (("of the model", probabilities, colors.muted, -0.2), ("drawn with", drawn, colors.lines[0], 0.2))
    return build([_next_bars(name, shown, values, color, beside) for name, values, color, beside in both], frame)


def _next_bars(name: str, tokens: Sequence[str], values, color: str, beside: float) -> dict:
    """beside : how far from the middle of a token."""
    numbers = [float(value) for value in values]
    return dict(
        type="bar",
        name=name,
        x=[place + beside for place in range(len(tokens))],
        y=[round(value, 4) for value in numbers],
        width=0.38,
        marker=dict(color=color, line=dict(width=0)),
        text=[f"{value:.2f}" for value in numbers],
        textfont=dict(size=10),
        **_NUMBERED,
        hovertext=[f"{labels.escape(token)}, {name}: {value:.4f}" for token, value in zip(tokens, numbers)],
    )


def window_shapes(grid, window: tuple[float, float], dark: bool) -> list[dict]:
    """The predicted place (centre, reach) as a dotted line, and its window as a band; only what lies on the axis."""
    colors, last = palette(dark), len(grid.keys) - 0.5
    centre, reach = window
    ends = dict(x0=max(centre - reach, -0.5), x1=min(centre + reach, last), y0=0, y1=1)
    band = dict(
        type="rect", name="window", **ends, layer="below", fillcolor=colors.grid, opacity=0.5, line=dict(width=0)
    )
    place = dict(x0=centre, x1=centre, y0=0, y1=1, line=dict(color=colors.text, width=2, dash="dot"))
    return [band] + ([dict(type="line", name="predicted place", **place)] if centre <= last else [])


def upper_and_lower(
    tokens: Keys, names: tuple[str, str], end: float, title: str | None, description: str, dark: bool
) -> dict:
    """The layout of two rows of bars over the same tokens: any number in the upper row (y2), 0 to 1 in the lower (y).

    names : of the rows, the upper first. end : of the lower axis.
    """
    left, right, xaxis = key_axis(tokens, "bottom")
    return layout(dark, _TWO_ROWS, (left, right, 24, 72), title, description) | dict(
        xaxis=xaxis | dict(anchor="y"),
        yaxis=value_axis(dark, domain=_LOWER, range=[0, end], tickvals=[0, 0.5, 1]),
        yaxis2=value_axis(dark, domain=_UPPER, nticks=4),
        annotations=[note(name, dark, x=0, y=y, **CORNER) for name, y in zip(names, (1, _LOWER[1]), strict=True)],
    )


def token_bars(values: Sequence[float] | np.ndarray, best: int | None, mechanism: str, dark: bool) -> dict:
    """Bars over tokens in the colour of the mechanism, with the largest value written above its bar."""
    return dict(
        type="bar",
        width=0.82,
        marker=dict(color=lines([mechanism], dark)[mechanism].color, line=dict(width=0)),
        text=[f"{value:.2f}" if place == best else "" for place, value in enumerate(values)],
        textfont=dict(size=12),
        **_NUMBERED,
    )


def _bars(grid, step: int, weights: np.ndarray, best: int | None, written: float | None, dark: bool) -> dict:
    query = wording.placed(grid.queries)[step]
    shown = weights.tolist()
    bars = token_bars(shown, best, grid.mechanism, dark)
    if written is not None:
        bars["text"] = [f"{weight:.2f}" if weight >= written else text for weight, text in zip(shown, bars["text"])]
    return bars | dict(
        y=np.round(weights, 4).astype(np.float32),
        hovertext=[
            f"{query} looks at {key}: {weight_words(weight)}"
            for key, weight in zip(wording.placed(grid.keys), shown, strict=True)
        ],
    )


def _end(largest: float) -> float:
    """The first round number that leaves room above the largest weight for its value."""
    return next((end for end in _ENDS if end >= 1.15 * largest), 1)


def _weight_axis(dark: bool, end: float) -> dict:
    texts = ["0", *(f"{value:g}".removeprefix("0") for value in (end / 2, end))]
    return value_axis(dark, range=[0, end], tickvals=[0, end / 2, end], ticktext=texts, zeroline=False)
