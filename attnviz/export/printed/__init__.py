"""Pictures for slides and papers, as SVG, PDF or PNG: drawn by matplotlib, so no browser is needed.

    >>> printed.of_map(trace, select.select(trace), printed.Style("column")).save("pdf")

`of_figure` prints any figure of `attnviz.figures`, `of_figures` several beside each other; the others make the figure
of a trace and the lines above it.

Each has its title, the sentence and the translation above it. In SVG and PDF shapes are shapes and text is text.
Colours of maps climb evenly in lightness, lines differ in dash and marker, and negative differences carry a dash, so a
print in grey says the same. matplotlib and not a writer of our own: it embeds fonts in PDF, takes each character from
the first font that has it, and saves PNG by the same lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from attnviz import figures
from attnviz.export import heading
from attnviz.export.printed.figure import of_figure, of_figures
from attnviz.export.printed.sheet import FORMATS, SIZES, Sheet, Style
from attnviz.select import Grid
from attnviz.trace import Trace

__all__ = [
    "FORMATS",
    "SIZES",
    "Sheet",
    "Style",
    "of_difference",
    "of_figure",
    "of_figures",
    "of_map",
    "of_maps",
    "of_overview",
    "of_statistics",
    "of_step",
]

_WRITTEN = 0.1  # weights from here on are written over their bars: nobody can point at a bar on paper


def of_map(
    trace: Trace,
    grid: Grid,
    style: Style = Style(),
    *,
    step: int | None = None,
    links=None,
    windows: Sequence[tuple[float, float]] = (),
) -> Sheet:
    """A map of `trace`. step, links, windows : as of `figures.heatmap`, with its errors."""
    chart = figures.heatmap(grid, step, links=links, windows=windows, dark=style.dark)
    return of_figure(chart, heading.of_map(trace, grid, links, windows), style)


def of_maps(maps: Mapping[str, tuple[Trace, Grid]], style: Style = Style()) -> Sheet:
    """Maps of one sentence beside each other, in a column below each other; each with its name and, where translations
    differ, its own. ValueError without maps."""
    traces = {name: trace for name, (trace, _) in maps.items()}
    charts = [figures.heatmap(grid, dark=style.dark) for _, grid in maps.values()]
    if not charts:
        raise ValueError("there must be at least one map; got none")
    return of_figures(charts, heading.of_statistics(traces, "Attention maps"), style, list(maps))


def of_difference(
    first: Trace, second: Trace, values: np.ndarray, grid: Grid, names: tuple[str, str], style: Style = Style()
) -> Sheet:
    """values (queries, keys) = weights of `first` - weights of `second` (`select.difference`), on a scale from -1 to 1.

    grid : the map of either. names : of the two in the scale. ValueError if the shapes differ.
    """
    chart = figures.difference(values, grid, names, dark=style.dark)
    return of_figure(chart, heading.of_difference(first, second, grid), style)


def of_step(
    trace: Trace, grid: Grid, step: int, style: Style = Style(), *, window: tuple[float, float] | None = None
) -> Sheet:
    """The weights of row `step` (from 0) of a map of `trace`, a bar a key. window : as of `figures.step_bars`, with its
    errors."""
    chart = figures.step_bars(grid, step, window=window, written=_WRITTEN, dark=style.dark)
    return of_figure(chart, heading.of_step(trace, grid, step, window), style)


def of_statistics(
    traces: Mapping[str, Trace],
    frames: Mapping[str, pd.DataFrame],
    keys: int | Sequence[int] | None,
    style: Style = Style(),
) -> Sheet:
    """Entropy, maximum weight and effective positions by step, a line a trace; below each other in a column.

    traces, frames : by name, the same names; frames as `stats.of_grid` gives them. keys : as of `figures.by_step`.
    """
    if list(traces) != list(frames) or not frames:
        raise ValueError(f"traces and frames must have the same names; got {list(traces)} and {list(frames)}")
    chart = figures.by_step(frames, keys, tokens=False, marked=True, stacked=style.size == "column", dark=style.dark)
    return of_figure(chart, heading.of_statistics(traces), style)


def of_overview(
    trace: Trace,
    kind: str | None = None,
    style: Style = Style(),
    *,
    table: pd.DataFrame | None = None,
    order: str | None = None,
    color: str | None = None,
    root: bool = False,
) -> Sheet:
    """All heads of a kind as small maps; arguments and errors as of `figures.overview`.

    Neighbouring cells of one shade are one rectangle. If there are more than `plotlyjs.MOST_RECTANGLES` (300,000), all
    cells are one image.
    """
    kind = kind or (trace.maps or [trace.map()])[0].kind
    chart = figures.overview(trace, kind, table, order, color, root=root, dark=style.dark)
    return of_figure(chart, [*heading.of_heads(trace, kind), chart.description], style)
