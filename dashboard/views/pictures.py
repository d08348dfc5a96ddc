"""Every figure of the page by name, as it is on the page: what is shown and what is taken away are drawn by the same lines."""

import functools
import itertools
from collections.abc import Callable

import plotly.graph_objects as go

from attnviz import figures, select
from dashboard.scene import Part, Scene


def difference(a: Part, b: Part, dark: bool) -> go.Figure:
    """Weights of a minus weights of b."""
    return figures.difference(select.difference(a.grid, b.grid), a.grid, (a.title, b.title), dark=dark)


def makers(current: Scene, dark: bool, step: int) -> dict[str, Callable[[], go.Figure]]:
    """name -> what draws it. Nothing is drawn yet. step : counted from 0; its row is outlined."""
    result: dict[str, Callable[[], go.Figure]] = {}
    for part in current.parts:
        row = step if step < len(part.grid.queries) else None
        result[f"Heatmap {part.title}"] = functools.partial(figures.heatmap, part.grid, row, part.title, dark=dark)
        if row is not None:
            result[f"Step bars {part.title}"] = functools.partial(figures.step_bars, part.grid, row, part.title, dark=dark)
    result["Statistics by step"] = functools.partial(figures.by_step, current.frames(), current.keys, step, dark=dark)
    result["Comparison"] = lambda: figures.comparison(current.summary(), dark=dark)
    if current.shared:
        for a, b in itertools.combinations(current.parts, 2):
            result[f"Difference {a.title} minus {b.title}"] = functools.partial(difference, a, b, dark)
    return result
