"""Every figure of the page by name, as it is on the page: what is shown and what is downloaded is drawn by the same
lines."""

import functools
from collections.abc import Callable

import plotly.graph_objects as go

from attnviz import figures, select
from attnviz.figures.hover import CellTexts
from dashboard.compare.scene import Column, CompareScene
from dashboard.session.memory import Cursor


def cell_texts(column: Column) -> CellTexts | None:
    """What the pointer reads in each cell of the map of a column; None where there is no map."""
    return column.grid and figures.cell_texts(column.grid, _cells(column))


def heatmap(
    column: Column, dark: bool, row: int | None = None, title: str | None = None, texts=None, scale: bool = True
) -> go.Figure:
    """The map of a column, with gold links where there are some. texts : of `cell_texts`, if they are there already."""
    marks = dict(links=_cells(column), windows=column.windows)
    return figures.heatmap(column.grid, row, title, dark=dark, scale=scale, texts=texts, **marks)


def _cells(column: Column):
    return column.links and column.links.cells


def difference(a: Column, b: Column, dark: bool) -> go.Figure:
    """Weights of a minus weights of b."""
    return figures.difference(select.difference(a.grid, b.grid), a.grid, (a.title, b.title), dark=dark)


def makers(current: CompareScene, dark: bool, cursor: Cursor) -> dict[str, Callable[[], go.Figure]]:
    """name -> what draws it. Nothing is drawn yet. The row of the step is outlined; a text that ends before it shows
    the bars of its last step."""
    result: dict[str, Callable[[], go.Figure]] = {}
    for column in current.mapped:
        last, name = len(column.grid.queries) - 1, column.title
        row, bars = cursor.step if cursor.step <= last else None, min(cursor.step, last)
        result[f"Heatmap {name}"] = functools.partial(heatmap, column, dark, row, name)
        window = column.windows[bars] if column.windows else None
        result[f"Step bars {name}"] = functools.partial(
            figures.step_bars, column.grid, bars, name, window=window, dark=dark
        )
    result["Statistics by step"] = functools.partial(figures.by_step, current.frames(), current.keys, dark=dark)
    result["Comparison"] = lambda: figures.comparison(current.summary().query("statistic != 'argmax'"), dark=dark)
    if cursor.difference in current.differences:
        a, b = (current.columns[i] for i in cursor.difference)
        result[f"Difference {a.title} minus {b.title}"] = functools.partial(difference, a, b, dark)
    return result
