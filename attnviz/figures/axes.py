"""The axes of a map: tokens of keys along the top or bottom, tokens of queries down the left. Labels never overlap."""

from __future__ import annotations

import math

from attnviz.figures import labels
from attnviz.figures.theme import CLEAR, palette

COLUMN = 310  # px of the narrowest column we design for: three beside each other on a screen of 1366 px
_CELL = 24  # px a row, up to 20 rows; later rows get less and the picture grows slowly
_LINE = 1.26  # height of a line of text, as a share of its size: Source Sans; most fonts take less
_RIGHT = 56  # px of the widest right margin
_FULL = 60  # columns of text of a label where there is room


def key_axis(grid, side: str, room: int = COLUMN) -> tuple[int, int, dict]:
    """Left and right margin in px, and the axis of the keys: the same for a heatmap and its bars.

    The margins leave room for the rows' labels and for slanted last columns. Labels do not overlap even in the
    narrowest column: they are slanted if that is enough, else upright, then smaller, and at last some are left out.
    """
    texts, count = labels.ticks(grid.keys), len(grid.keys)
    widest = max(map(labels.width, labels.ticks(grid.queries)), default=0)
    left = min(max(7 * widest + 12, 66), 104)
    cell = (room - left - _RIGHT) / max(count, 1)
    for angle, size in ((50, 12), (90, 11), (90, 10)):
        lean, rise = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        reach = [lean * 7 * labels.width(text) - (count - i - 0.5) * cell for i, text in enumerate(texts)]
        right = min(max(int(max(reach, default=0)) + 10, 10), _RIGHT)
        most = int((room - left - right) * rise / (_LINE * size))
        if most >= count:
            break
    shown = labels.thin(count, most)
    return (
        left,
        right,
        dict(
            side=side,
            range=[-0.5, count - 0.5],
            tickvals=shown,
            ticktext=[texts[i] for i in shown],
            fixedrange=True,
            showgrid=False,
            zeroline=False,
            tickangle=-angle,
            ticklabeloverflow="allow",
            ticklen=3,
            tickcolor=CLEAR,
            tickfont=dict(size=size),
        ),
    )


def query_axis(grid, step: int | None) -> dict:
    """The axis of the queries, from top to bottom; the label of `step` is bold and never left out."""
    count = len(grid.queries)
    texts = labels.ticks(grid.queries)
    size = 12 if count <= 30 else 11
    shown = labels.thin(count, max(1, int(rows_height(count) / (_LINE * size))), keep=step)
    return tokens_down(texts, shown, step, size)


def tokens_down(texts: list[str], shown: list[int], step: int | None, size: int) -> dict:
    """An axis of tokens from top to bottom, with labels at the places `shown`; that of `step` is bold. size : px."""
    return dict(
        tickangle=0,
        ticklabeloverflow="allow",  # or Plotly measures each label, a third of a large map's time
        range=[len(texts) - 0.5, -0.5],
        tickvals=shown,
        fixedrange=True,
        showgrid=False,
        zeroline=False,
        ticklen=3,
        ticktext=[f"<b>{texts[i]}</b>" if i == step else texts[i] for i in shown],
        tickcolor=CLEAR,
        tickfont=dict(size=size),
    )


class Keys:
    """The columns of a picture that has no rows of tokens, for `key_axis`; rows : tokens that name rows, if any."""

    def __init__(self, keys, rows=()):
        self.keys, self.queries = tuple(keys), tuple(rows)


def value_axis(dark: bool, **look) -> dict:
    """The axis of bars that stand over tokens; `look` adds to it."""
    colors = palette(dark)
    return (
        dict(
            gridcolor=colors.grid,
            zeroline=True,
            zerolinecolor=colors.muted,
            fixedrange=True,
            ticklabelstandoff=10,
            tickfont=dict(size=11, color=colors.muted),
        )
        | look
    )


def all_labels(grid, xaxis: dict, yaxis: dict | None = None) -> dict:
    """For `layout.meta`, of a map or its bars: `ticks`, every label in full, where the axes cut or leave out some.

    A page can then show the figure large with all of them.
    """
    sides = {"x": (grid.keys, xaxis)} | ({"y": (grid.queries, yaxis)} if yaxis else {})
    full = {side: labels.ticks(tokens, limit=_FULL) for side, (tokens, _) in sides.items()}
    short = {side: labels.ticks(tokens) for side, (tokens, _) in sides.items()}
    left_out = any(len(axis["tickvals"]) < len(tokens) for tokens, axis in sides.values())
    return {"labels": True} | ({"ticks": full} if left_out or full != short else {})


def rows_height(n_rows: int) -> int:
    """Px of all rows of a map."""
    return _CELL * n_rows if n_rows <= 20 else min(_CELL * 20 + 3 * (n_rows - 20), 900)


def check_step(grid, step: int | None) -> None:
    """ValueError when `step` is not a row of the map."""
    rows = len(grid.queries)
    if step is not None and not 0 <= step < rows:
        raise ValueError(f"step must be a row of the map, 0 to {rows - 1}; got {step}")
