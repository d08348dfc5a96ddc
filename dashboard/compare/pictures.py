"""Every figure of the page by name, as it is on the page: what is shown and what is downloaded is drawn by the same
lines."""

import functools
from collections.abc import Callable

import plotly.graph_objects as go

from attnviz import figures, select
from attnviz.export import heading
from attnviz.figures.hover import CellTexts
from attnviz.figures.steps import PANEL_STATISTICS, References
from dashboard.compare import percentile
from dashboard.compare.scene import Column, CompareScene
from dashboard.session.memory import Cursor


def cell_texts(column: Column) -> CellTexts | None:
    """What the pointer reads in each cell of the map of a column; None where there is no map."""
    return column.grid and figures.cell_texts(column.grid, _cells(column))


def heatmap(column: Column, dark: bool, texts=None, scale: bool = True, written: bool = True) -> go.Figure:
    """The map of a column, with gold links where there are some. texts : of `cell_texts`, if they are there already.

    written : False leaves it to the page to write them out.
    """
    marks = dict(links=_cells(column), windows=column.windows)
    return figures.heatmap(column.grid, dark=dark, scale=scale, texts=texts, written=written, **marks)


def _cells(column: Column):
    return column.links and column.links.cells


def references(current: CompareScene) -> References:
    """The two baselines, for the columns whose map is the one that was measured: cross-attention of the
    last layer, mean of its heads, of pieces, with special tokens."""
    choices = current.choices
    if choices.words or not choices.special:
        return {}
    levels = {
        column.title: percentile.baselines(column.trace, PANEL_STATISTICS)
        for column in current.mapped
        if column.grid.kind == "cross"
        and (not column.mechanism.multi_head or (column.grid.head is None and _is_last(column)))
    }
    return {name: each for name, each in levels.items() if each}


def _is_last(column: Column) -> bool:
    return column.grid.layer == max(attention.layer for attention in column.trace.maps if attention.kind == "cross")


def difference(a: Column, b: Column, dark: bool) -> go.Figure:
    """Weights of a minus weights of b."""
    return figures.difference(select.difference(a.grid, b.grid), a.grid, (a.title, b.title), dark=dark)


def makers(current: CompareScene, dark: bool, cursor: Cursor) -> dict[str, Callable[[], go.Figure]]:
    """name -> what draws it, with a heading. Nothing is drawn yet. A text that ends before the step shows the bars of
    its last step."""
    result: dict[str, Callable[[], go.Figure]] = {}
    for column in current.mapped:
        result[f"Heatmap {column.title}"] = functools.partial(_saved_map, column, dark)
        result[f"Step bars {column.title}"] = functools.partial(_saved_bars, column, cursor, dark)
    if not current.mapped:
        return result
    result["Statistics by step"] = functools.partial(_saved_statistics, current, dark)
    result["Comparison"] = functools.partial(_saved_comparison, current, dark)
    if cursor.difference in current.differences:
        a, b = (current.columns[i] for i in cursor.difference)
        result[f"Difference {a.title} minus {b.title}"] = functools.partial(_saved_difference, a, b, dark)
    return result


def _saved_map(column: Column, dark: bool) -> go.Figure:
    lines = heading.of_map(column.shown, column.grid, _cells(column), column.windows)
    return heading.above(heatmap(column, dark), lines)


def _saved_bars(column: Column, cursor: Cursor, dark: bool) -> go.Figure:
    step = min(cursor.step, len(column.grid.queries) - 1)
    window = column.windows[step] if column.windows else None
    bars = figures.step_bars(column.grid, step, window=window, dark=dark)
    return heading.above(bars, heading.of_step(column.shown, column.grid, step, window))


def _saved_statistics(current: CompareScene, dark: bool) -> go.Figure:
    traces = {column.title: column.shown for column in current.mapped}
    marks = references(current)
    drawn = figures.by_step(current.frames(), current.keys, references=marks, dark=dark)
    return heading.above(drawn, heading.of_statistics(traces, references=marks))


def _saved_comparison(current: CompareScene, dark: bool) -> go.Figure:
    table = figures.comparison(current.summary().query("statistic != 'argmax'"), dark=dark)
    traces = {column.title: column.shown for column in current.mapped}
    return heading.above(table, heading.of_statistics(traces, "Mean ± standard deviation over the steps"))


def _saved_difference(a: Column, b: Column, dark: bool) -> go.Figure:
    return heading.above(difference(a, b, dark), heading.of_difference(a.shown, b.shown, a.grid))
