"""Token-to-token lines: queries on the left, keys on the right, and a line for each weight that is large enough to see.

A larger weight has a stronger line. All lines of one head and one strength are one path, so a picture has few paths.
Lines of the chosen query stand out. Up to four heads, in different colours and dashes, so that a grey print shows the
same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnviz.arguments import checked
from attnviz.figures import labels, maps, wording
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, layout, note, palette
from attnviz.figures.wording import row_sentence, row_sentences
from attnviz.select import Grid

HEADS = 4  # as many colours as stay apart when they overlap
_NAMED = 2  # heads a row of the legend
_DASHES = (("solid", "━━━"), ("dash", "━ ━"), ("dot", "• • •"), ("dashdot", "━ •"))  # of several heads; in the legend
_STRENGTHS = 6  # of lines
_LIMITS, _SEEN = (0.05, 0.02, 0.01, 0.005), 1500  # weights from which on lines are drawn; lines that can be told apart
# px a token, of all tokens while they have no less than _LEAST each, of all
_ROW, _TALLEST, _LEAST, _MOST = 20, 1400, 15, 1950
_WRAPPED, _WIDEST = 32, 12  # px a token where one is wrapped, which it is after as many columns of text
_TOP, _LINE = 30, 18


@checked
def token_lines(
    grids: Sequence[Grid],
    step: int | None = None,
    title: str | None = None,
    *,
    least: float | None = None,
    dark: bool = False,
) -> Chart:
    """Lines of one to four heads (Grids of the same tokens) for weights of at least `least`.

    least : None for `line_threshold(grids)`.
    step : the query whose lines stand out; the others are faint. A click on a token on the left returns its query as
    `customdata`. ValueError if the tokens of the grids differ, `step` is not a query, or `least` is not above 0 and at
    most 1.

    >>> figures.token_lines([select.select(trace)], least=0.5)
    Chart('4 lines from 6 target tokens to 6 source tokens for weights of at least 0.5, which hold 47% of all weight:
    layer 1, mean of heads.')
    """
    _check(grids, step, 1 if least is None else least)
    least = line_threshold(grids) if least is None else least
    colors, first = palette(dark), grids[0]
    rows, columns = first.weights.shape
    reach = rows / columns  # keys are spread over the height of the queries
    paths, count = [], 0
    for grid, color, (dash, _) in zip(grids, colors.lines, _DASHES):
        queries, keys = np.nonzero(np.nan_to_num(grid.masked) >= least)
        count += len(queries)
        paths += _paths(grid, queries, keys, reach, dict(color=color, dash=dash), step)
    share = np.mean([_share_drawn(grid, least) for grid in grids])
    names = " and ".join(grid.title for grid in grids)
    description = (
        f"{_counted(count, 'line')} from {_counted(rows, f'{first.sides[0]} token')} to "
        f"{_counted(columns, f'{first.sides[1]} token')} for weights of at least {least:g}, which hold {share:.0%} of "
        f"all weight: {names}."
    )
    if step is not None:
        description += f" {row_sentence(first, step)}"
    frame = _frame(grids, step, title, dark, description) | {"shapes": sorted(paths, key=lambda path: path["opacity"])}
    return build([_tokens(grids, side, step, dark) for side in (0, 1)], frame)


@checked
def line_threshold(grids: Sequence[Grid]) -> float:
    """The smallest weight that gets a line: 0.05; less if attention is so flat that most queries would have no line,
    unless there would then be too many lines.

    >>> figures.line_threshold([select.select(trace)])
    0.05
    """
    weights = [np.nan_to_num(grid.masked) for grid in grids]
    for least in _LIMITS:
        if sum(int((visible >= least).sum()) for visible in weights) > _SEEN:
            break
        if all((visible >= least).any(-1).mean() >= 0.5 for visible in weights):
            return least
    return _LIMITS[0]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _check(grids: Sequence, step: int | None, least: float) -> None:
    if not 1 <= len(grids) <= HEADS:
        raise ValueError(f"there must be 1 to {HEADS} grids; got {len(grids)}")
    if any((grid.kind, grid.queries, grid.keys) != (grids[0].kind, grids[0].queries, grids[0].keys) for grid in grids):
        raise ValueError("all grids must be of one kind and have the same queries and keys")
    if step is not None and not 0 <= step < len(grids[0].queries):
        raise ValueError(f"step must be a row of the map, 0 to {len(grids[0].queries) - 1}; got {step}")
    if not 0 < least <= 1:
        raise ValueError(f"least must be above 0 and at most 1; got {least}")


def _paths(grid, queries: np.ndarray, keys: np.ndarray, reach: float, look: dict, step: int | None) -> list[dict]:
    """Lines in groups of similar strength, one shape for each group, which Plotly draws fast; x from 0 to 1, y in query
    positions. look : the style of this head's lines."""
    weights = grid.weights[queries, keys]
    strength = np.ceil(weights * _STRENGTHS)
    other = np.zeros(len(queries), dtype=bool) if step is None else queries != step
    paths = []
    for faint in (True, False):
        for level in range(1, _STRENGTHS + 1):
            chosen = (strength == level) & (other == faint)
            if not chosen.any():
                continue
            ends = zip(queries[chosen].tolist(), ((keys[chosen] + 0.5) * reach - 0.5).tolist())
            share = level / _STRENGTHS
            paths.append(
                dict(
                    type="path",
                    path="".join(f"M0,{query}L1,{key:.6g}" for query, key in ends),
                    layer="below",
                    line=look | dict(width=0.8 + 2.4 * share),
                    opacity=(0.1 if faint else 0.95) * share**0.8 + 0.04,
                )
            )
    return paths


def _tokens(grids: Sequence, side: int, step: int | None, dark: bool) -> dict:
    """A mark for each token, for hover text and clicks; side : 0 for the queries, 1 for the keys."""
    tokens, colors = (grids[0].queries, grids[0].keys)[side], palette(dark)
    spoken = (_spoken_queries, _spoken_keys)[side](grids)
    marks = [colors.outline if side == 0 and i == step else colors.muted for i in range(len(tokens))]
    return dict(
        type="scatter",
        mode="markers",
        x=[side] * len(tokens),
        y=list(range(len(tokens))),
        yaxis=("y", "y2")[side],
        marker=dict(size=6, color=marks),
        hoverinfo="text",
        hovertext=spoken,
        cliponaxis=False,
        **({"customdata": list(range(len(tokens)))} if side == 0 else {}),
    )


def _spoken_queries(grids: Sequence) -> list[str]:
    """Where each query looks, one line of text for each head."""
    steps = range(len(grids[0].queries))
    sentences = [
        [f"{grid.title.capitalize()}<br>{labels.escape(text)}" for text in row_sentences(grid, steps)] for grid in grids
    ]
    return ["<br>".join(heads) for heads in zip(*sentences)]


def _spoken_keys(grids: Sequence) -> list[str]:
    """Which query looks most at each key, one line of text for each head."""
    spoken, queries = wording.placed(grids[0].keys), wording.placed(grids[0].queries)
    for grid in grids:
        name, weights = grid.title.capitalize(), np.nan_to_num(grid.masked)
        for key, (best, most) in enumerate(zip(weights.argmax(0), weights.max(0))):
            spoken[key] += f"<br>{name}: {queries[best]} looks at it most, {most:.2f}"
    return spoken


def _share_drawn(grid, least: float) -> float:
    weights = np.nan_to_num(grid.weights)
    return float(weights[weights >= least].sum() / max(weights.sum(), 1e-9))


def _frame(grids: Sequence, step: int | None, title: str | None, dark: bool, description: str) -> dict:
    first, several = grids[0], len(grids) > 1
    above = _TOP + _LINE * several * -(-len(grids) // _NAMED)
    height, texts = _labelled(first)
    sides = [max(map(labels.width, side), default=0) for side in texts]
    left, right = (min(max(8 * widest + 14, 50), 120) for widest in sides)
    frame = layout(dark, height + above + 8, (left, right, above, 8), title, description)
    frame["meta"]["tokens"] = list(first.weights.shape)  # on either side: what the pointer finds there is for the page
    frame["xaxis"] = dict(range=[-0.02, 1.02], visible=False, fixedrange=True)
    frame["yaxis"] = _axis(texts[0], height, step)
    frame["yaxis2"] = _axis(texts[1], height, None) | dict(overlaying="y", side="right")
    query, key = first.sides
    place = dict(xref="paper", yref="paper", y=1, yanchor="bottom", yshift=4)
    frame["annotations"] = [
        note(query, dark, x=0, xanchor="right", xshift=-6, **place),
        note(key, dark, x=1, xanchor="left", xshift=6, **place),
    ]
    if several:
        named = [
            f'<span style="color:{color}"><b>{dashes}</b></span> {grid.title}'
            for grid, color, (_, dashes) in zip(grids, palette(dark).lines, _DASHES)
        ]
        legend = "<br>".join("   ".join(named[i : i + _NAMED]) for i in range(0, len(named), _NAMED))
        frame["annotations"].append(note(legend, dark, x=0.5, xanchor="center", **place | dict(yshift=4 + _LINE)))
    return frame


def _labelled(grid) -> tuple[int, list[list[str]]]:
    """Height of all tokens in px, and the labels of queries and of keys, on two lines if they are long and there is
    room."""
    most, sides = max(grid.weights.shape), (grid.queries, grid.keys)
    wrapped = [labels.ticks(tokens, _WIDEST, lines=2) for tokens in sides]
    cut = [labels.ticks(tokens, _WIDEST) for tokens in sides]
    if wrapped != cut and _WRAPPED * most <= _TALLEST:
        return _WRAPPED * most, wrapped
    return max(min(_ROW * most, _TALLEST), min(_LEAST * most, _MOST)), cut


def _axis(texts: list[str], height: int, step: int | None) -> dict:
    shown = labels.thin(len(texts), max(1, height // _LEAST), keep=step)
    return maps.tokens_down(texts, shown, step, size=12)
