"""Every figure of the page by name, as it is on the page: what is shown and what is taken away are drawn by the same lines."""

import functools
from collections.abc import Callable

import plotly.graph_objects as go

from attnviz import figures, select
from dashboard.compare.scene import Part, Scene
from dashboard.session.state import Place


def heatmap(part: Part, dark: bool, row: int | None = None, title: str | None = None) -> go.Figure:
    """The map of a part, with the links that were set by hand where there are some."""
    return figures.heatmap(part.grid, row, title, dark=dark, links=part.links and part.links.cells)


def difference(a: Part, b: Part, dark: bool) -> go.Figure:
    """Weights of a minus weights of b."""
    return figures.difference(select.difference(a.grid, b.grid), a.grid, (a.title, b.title), dark=dark)


def makers(current: Scene, dark: bool, place: Place) -> dict[str, Callable[[], go.Figure]]:
    """name -> what draws it. Nothing is drawn yet. The row of the step is outlined; a text that ends before it shows the
    bars of its last step."""
    result: dict[str, Callable[[], go.Figure]] = {}
    for part in current.mapped:
        last = len(part.grid.queries) - 1
        row, bars = place.step if place.step <= last else None, min(place.step, last)
        result[f"Heatmap {part.title}"] = functools.partial(heatmap, part, dark, row, part.title)
        result[f"Step bars {part.title}"] = functools.partial(figures.step_bars, part.grid, bars, part.title, dark=dark)
    result["Statistics by step"] = functools.partial(figures.by_step, current.frames(), current.keys, dark=dark)
    result["Comparison"] = lambda: figures.comparison(current.summary().query("statistic != 'argmax'"), dark=dark)
    if place.difference in current.pairs:
        a, b = (current.parts[i] for i in place.difference)
        result[f"Difference {a.title} minus {b.title}"] = functools.partial(difference, a, b, dark)
    return result
