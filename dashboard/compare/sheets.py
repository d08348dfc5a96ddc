"""Every picture of the page for a slide or a paper, by name: with a heading, in the size and type that is asked for."""

import functools
from collections.abc import Callable

from attnviz import select
from dashboard.compare.scene import Column, CompareScene
from dashboard.session.memory import Cursor


def makers(current: CompareScene, cursor: Cursor, framed: bool = False) -> dict[str, Callable]:
    """name -> what draws it in a style (`printed.Style` -> `printed.Sheet`). Nothing is drawn yet.

    The names are those of `pictures.makers`, and one for all maps together. framed : outline the row of the step in
    each map. The step is that of the time of drawing; a text that ends before it shows the bars of its last step.
    """
    result: dict[str, Callable] = {}
    for column in current.mapped:
        result[f"Heatmap {column.title}"] = functools.partial(_map, column, cursor if framed else None)
        result[f"Step bars {column.title}"] = functools.partial(_bars, column, cursor)
    if len(current.mapped) > 1:
        result["Maps beside each other"] = functools.partial(_maps, current)
    if current.mapped:
        result["Statistics by step"] = functools.partial(_statistics, current)
    if cursor.difference in current.differences:
        a, b = (current.columns[i] for i in cursor.difference)
        result[f"Difference {a.title} minus {b.title}"] = functools.partial(_difference, a, b)
    return result


# matplotlib takes half a second to import: only for those who print.
def _map(column: Column, framed: Cursor | None, style):
    from attnviz.export import printed

    step = framed.step if framed and framed.step < len(column.grid.queries) else None
    links = column.links and column.links.cells
    return printed.of_map(column.shown, column.grid, style, step=step, links=links, windows=column.windows)


def _maps(current: CompareScene, style):
    from attnviz.export import printed

    return printed.of_maps({column.title: (column.shown, column.grid) for column in current.mapped}, style)


def _bars(column: Column, cursor: Cursor, style):
    from attnviz.export import printed

    step = min(cursor.step, len(column.grid.queries) - 1)
    window = column.windows[step] if column.windows else None
    return printed.of_step(column.shown, column.grid, step, style, window=window)


def _statistics(current: CompareScene, style):
    from attnviz.export import printed

    traces = {column.title: column.shown for column in current.mapped}
    return printed.of_statistics(traces, current.frames(), current.keys, style)


def _difference(a: Column, b: Column, style):
    from attnviz.export import printed

    values = select.difference(a.grid, b.grid)
    return printed.of_difference(a.shown, b.shown, values, a.grid, (a.title, b.title), style)
