"""Figures of models that learn: curves over the batches, and maps of one sequence at several moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from attnviz.figures import labels, theme, wording
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, grid_axis, layout, lines, note, palette, scale_bar
from attnviz.figures.wording import listed
from attnviz.select import Grid

_HEIGHT, _ROWS = 230, 2  # px of a row of panels; how many rows
_BETWEEN = 62  # px between the rows
_CELL, _GAP, _NAMES = 15, 2, 2  # px of a cell of a strip; cells between maps, and above each row for names
PANELS = {
    "alignment_error": "Alignment error",
    "loss": "Loss (nats a letter)",
    "exact": "Exact match",
    "entropy": "Entropy (nats)",
}
_TOKEN_LETTERS = 6  # letters of a token beside a map
Course = Mapping[str, Sequence[float | None]]  # name of a number -> its value at each moment


def over_time(
    courses: Mapping[str, Course],
    title: str | None = None,
    *,
    panels: Mapping[str, str] = MappingProxyType(PANELS),
    unit: str = "batch",
    marks: Mapping[str, Mapping[str, float | None]] = MappingProxyType({}),
    at: float | None = None,
    dark: bool = False,
) -> Chart:
    """Measurements of models at the moments of their training: one panel per measurement, one line per model.

    courses : model -> `unit` and each of `panels` -> a value at each moment; None is a gap. panels : name -> title.
    marks : model -> panel -> the position of a star, such as the first batch with an alignment. at : a line across all
    panels. A panel without any value is left out. ValueError without a moment.
    """
    if not courses or not all(len(course[unit]) for course in courses.values()):
        raise ValueError("courses must hold at least one moment")
    panels = {key: name for key, name in panels.items() if any({*course[key]} - {None} for course in courses.values())}
    colors, styles = palette(dark), lines(courses, dark)
    height = 34 + _ROWS * _HEIGHT + _BETWEEN + 44
    frame = layout(dark, height, (46, 12, 34, 44), title, _words(courses, panels, unit))
    frame |= theme.legend(1.04)
    frame["meta"]["axes"] = {"x": unit}
    frame["annotations"], frame["shapes"], data = [], [], []
    for place, (key, name) in enumerate(panels.items()):
        axis = theme.panel_axis(place)
        _panel(frame, place, axis, name, unit, colors, dark)
        if at is not None:
            frame["shapes"].append(_line_at(at, axis, colors))
        for model, course in courses.items():
            data.append(_line(model, course, key, unit, axis, styles[model]))
            if (star := marks.get(model, {}).get(key)) is not None:
                data.append(_star(model, course, key, unit, axis, star, styles[model]))
    return build(data, frame)


def _panel(frame: dict, place: int, axis: str, name: str, unit: str, colors, dark: bool) -> None:
    """Two axes of a panel and its title."""
    row, column = divmod(place, 2)
    whole = _ROWS * _HEIGHT + _BETWEEN
    top = 1 - row * (_HEIGHT + _BETWEEN) / whole
    look = grid_axis(colors)
    frame[f"xaxis{axis}"] = look | dict(anchor=f"y{axis}", domain=theme.half(column), title=dict(text=unit, standoff=4))
    frame[f"yaxis{axis}"] = look | dict(anchor=f"x{axis}", domain=[top - _HEIGHT / whole, top], rangemode="tozero")
    text = f"<b>{labels.escape(name)}</b>"
    spot = dict(x=0, xref=f"x{axis} domain", y=1, yref=f"y{axis} domain")
    frame["annotations"].append(note(text, dark, xanchor="left", yanchor="bottom", yshift=4, **spot))


def _line_at(at: float, axis: str, colors) -> dict:
    place = dict(xref=f"x{axis}", yref=f"y{axis} domain", x0=at, x1=at, y0=0, y1=1)
    return dict(type="line", name="shown", line=dict(color=colors.outline, width=1.5), **place)


def _line(model: str, course: Course, key: str, unit: str, axis: str, style) -> dict:
    name = labels.escape(model)
    return theme.in_panel(name, axis) | dict(
        mode="lines",
        x=list(course[unit]),
        y=[None if value is None else round(value, 4) for value in course[key]],
        line=dict(color=style.color, dash=style.dash, width=2),
        hovertemplate=f"{name}: %{{y:.2f}} at {unit} %{{x}}<extra></extra>",
    )


def _star(model: str, course: Course, key: str, unit: str, axis: str, at: float, style) -> dict:
    value = course[key][list(course[unit]).index(at)]
    name = labels.escape(model)
    return theme.in_panel(name, axis) | dict(
        mode="markers",
        showlegend=False,
        x=[at],
        y=[value],
        marker=dict(symbol="star", size=13, color=style.color),
        hovertemplate=f"{name}: first there at {unit} {at:g}<extra></extra>",
        cliponaxis=False,
    )


def _words(courses: Mapping[str, Course], panels: Mapping[str, str], unit: str) -> str:
    ends = []
    for model, course in courses.items():
        last = [f"{name} {course[key][-1]:.2f}" for key, name in panels.items() if course[key][-1] is not None]
        ends.append(f"{model} at {unit} {course[unit][-1]:g}: {', '.join(last)}")
    return f"{listed(panels.values())} over the training, a line for each model. {'. '.join(ends)}."


def maps_over_time(
    grids: Mapping[str, Sequence[Grid]], moments: Sequence[str], title: str | None = None, *, dark: bool = False
) -> Chart:
    """Maps of one sequence, a row of maps for each model and a column for each moment, weights from 0 to 1.

    grids : model -> a Grid for each of `moments`, all of the same tokens. moments : the titles of the columns.
    ValueError without maps, or if the maps differ in tokens or number.
    """
    every = [grid for row in grids.values() for grid in row]
    if not every or any(len(row) != len(moments) for row in grids.values()):
        raise ValueError(f"there must be a map for each of {len(moments)} moments and each model")
    first = every[0]
    if any((grid.queries, grid.keys) != (first.queries, first.keys) for grid in every):
        raise ValueError("all maps must be of the same tokens")
    rows, columns = len(first.queries) + _NAMES, len(first.keys) + _GAP
    size = len(grids) * rows, len(moments) * columns - _GAP
    widest = max(map(labels.width, labels.ticks(first.keys, _TOKEN_LETTERS)))
    above = 44 if widest == 1 else 38 + 8 * widest
    text = (
        f"{len(grids)} by {len(moments)} maps of {len(first.queries)} by {len(first.keys)} tokens: models downwards, "
        f"moments from {moments[0]} to {moments[-1]} across. Rows are {first.sides[0]} tokens, columns "
        f"{first.sides[1]} tokens."
    )
    frame = layout(dark, above + size[0] * _CELL + 40, (60, 12, above, 40), title, text)
    frame["meta"]["axes"] = {"colour": "attention weight"}
    _token_axes(frame, first, len(grids), len(moments), dark)
    frame["annotations"] = [
        note(text, dark, x=place * columns - 0.5, y=i * rows + line, xanchor="left", yanchor="middle")
        for i, model in enumerate(grids)
        for place, line, text in [(0, 0, f"<b>{labels.escape(model)}</b>"), *_titles(moments)]
    ]
    return build([_cells(grids, moments, (rows, columns), size, dark)], frame)


def _titles(moments: Sequence[str]) -> list[tuple[int, int, str]]:
    """Above each map its moment: column, line below the model's name, text. A word with which all begin, such as
    "batch", stands above the first map only, because maps may be narrow."""
    words = [moment.split(" ", 1) for moment in moments]
    same = len({first for first, *_ in words}) == 1 and all(len(parts) == 2 for parts in words)
    shown = [moments[0], *(parts[1] if same else moment for parts, moment in zip(words[1:], moments[1:]))]
    return [(place, 1, labels.escape(text)) for place, text in enumerate(shown) if text]


def _token_axes(frame: dict, first: Grid, down: int, across: int, dark: bool) -> None:
    """The tokens beside and above every map."""
    queries, keys = labels.ticks(first.queries, _TOKEN_LETTERS), labels.ticks(first.keys, _TOKEN_LETTERS)
    rows, columns = len(queries) + _NAMES, len(keys) + _GAP
    look = dict(
        showgrid=False, zeroline=False, fixedrange=True, ticks="", tickfont=dict(size=10, color=palette(dark).text)
    )
    frame["yaxis"] = look | dict(
        range=[down * rows - 0.5, -0.5],
        tickvals=[i * rows + _NAMES + row for i in range(down) for row in range(len(queries))],
        ticktext=queries * down,
        title=dict(text=first.sides[0], standoff=4),
    )
    frame["xaxis"] = look | dict(
        side="top",
        range=[-0.5, across * columns - _GAP - 0.5],
        tickvals=[j * columns + column for j in range(across) for column in range(len(keys))],
        ticktext=keys * across,
        tickangle=0 if max(map(labels.width, keys)) == 1 else -90,
        title=dict(text=first.sides[1], standoff=4),
    )


def _cells(
    grids: Mapping[str, Sequence[Grid]],
    moments: Sequence[str],
    step: tuple[int, int],
    size: tuple[int, int],
    dark: bool,
) -> dict:
    """All maps as one heatmap with gaps."""
    values, texts = np.full(size, np.nan, dtype=np.float32), [[""] * size[1] for _ in range(size[0])]
    for i, (model, row) in enumerate(grids.items()):
        for j, (grid, moment) in enumerate(zip(row, moments)):
            top, left = i * step[0] + _NAMES, j * step[1]
            weights = grid.masked
            values[top : top + weights.shape[0], left : left + weights.shape[1]] = weights
            queries, keys = wording.placed(grid.queries), wording.placed(grid.keys)
            for t, s in np.ndindex(weights.shape):
                words = f"{labels.escape(model)}, {labels.escape(moment)}<br>{queries[t]} looks at {keys[s]}"
                texts[top + t][left + s] = f"{words}: {weights[t, s]:.2f}"
    look = dict(xgap=0.5, ygap=0.5, hoverinfo="text", hovertext=texts, hoverongaps=False)
    bar = scale_bar([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
    return theme.map_cells(np.round(values, 4), (0, 1), palette(dark).sequential, bar, **look)
