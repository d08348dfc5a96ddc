"""Pictures for slides and papers, as SVG, PDF, PNG or TeX: drawn by matplotlib, so no browser is needed.

`of_figure` prints any figure of `attnviz.figures`, `of_figures` several beside each other, and `many` those of an
appendix, with one process per core; the others make the figure of a trace and the lines above it.

Each has its title, the sentence and the translation above it. In SVG and PDF shapes are shapes and text is text.
Colours of maps change evenly in lightness, lines differ in dash and marker, and negative differences carry a dash, so a
grey print shows the same. matplotlib embeds fonts in PDF, takes each character from the first font that has it, and
saves PNG by the same code.

A px of a figure's layout is a twelfth of the type. What does not fit follows one rule, whatever the figure: the lines
above it wrap, get smaller and are cut; the type gets smaller; names get smaller, down to the smallest type of the
sheet; then every second, third … name is drawn. A map whose columns all have names but whose rows do not continues over
several sheets of a PDF, and so do several figures that are too small on one.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from attnviz import figures, storage
from attnviz.export import heading
from attnviz.export.printed import letters
from attnviz.export.printed.fit import Page
from attnviz.export.printed.letters import plain
from attnviz.export.printed.sheet import FORMATS, SIZES, Sheet, Style, described, settings
from attnviz.figures.chart import Chart
from attnviz.select import Grid
from attnviz.trace import Trace

__all__ = [
    "FORMATS",
    "SIZES",
    "Sheet",
    "Style",
    "many",
    "of_difference",
    "of_figure",
    "of_figures",
    "of_map",
    "of_maps",
    "of_overview",
    "of_statistics",
    "of_step",
    "side_by_side",
]

_WRITTEN = 0.1  # weights from here on are written over their bars: nobody can point at a bar on paper


def of_figure(figure: Chart, lines: Sequence[str] = (), style: Style = Style()) -> Sheet:
    """A figure of `attnviz.figures`, light or dark as it was made; `style.dark` is ignored.

    lines : above it, the first is the title; `export.heading` makes them of a trace. Without any, the figure's own
        title, or its description. A map of more than `plotlyjs.MOST_RECTANGLES` cells (300,000) is one image.

    >>> printed.of_figure(figures.step_bars(select.select(trace), 1)).title
    'Step 2, ‘chien’: looks at ‘dog’ 0.73, ‘The’ 0.12, ‘black’ 0.11.'
    """
    own = plain(figure.plain_layout.get("title", {}).get("text") or "")
    return of_figures([figure], lines or [own or figure.description], style)


def of_figures(
    figures: Sequence[Chart], lines: Sequence[str], style: Style = Style(), names: Sequence[str] = ()
) -> Sheet:
    """Figures beside each other on one sheet, below each other in a column; all light or all dark.

    lines : above them. names : one above each figure. ValueError without figures, or if the numbers of names and
    figures differ.

    >>> bars = [figures.step_bars(select.select(trace), step) for step in (0, 1)]
    >>> printed.of_figures(bars, ["Two steps"], names=["Le", "chien"]).title
    'Two steps'
    """
    if not figures or (names and len(names) != len(figures)):
        raise ValueError(f"there must be a figure or more, and a name for each; got {len(figures)} and {len(names)}")
    style = replace(style, dark=figures[0].dark)
    data = [[trace.to_plotly_json() for trace in figure.data] for figure in figures]
    layouts = [figure.plain_layout for figure in figures]
    lines = [style.title, *lines[1:]] if style.title else lines
    families, missing = letters.families("".join([*lines, *names, *letters.texts([data, layouts])]), style.family)
    if missing:
        letters.warn_once(missing)
    title, description = described(list(lines), " ".join(figure.description for figure in figures))
    with settings(style, families):
        page = Page(style, tuple(lines if style.heading else ()), tuple(names), tuple(zip(data, layouts)))
        figure, _, notes = page.whole
        cuts, groups = page.cuts, page.groups
        count = sum(len(group.cuts) or 1 for group in groups)
    if cuts:
        notes.append(f"In a PDF the rows go on over {len(cuts)} sheets, each row with its name.")
    if groups:
        notes.append(f"In a PDF the {len(page.figures)} figures stand on {count} sheets, larger.")
    further = functools.partial(getattr, page, "sheets") if cuts or groups else None
    notes += [letters.no_font(missing)] if missing else []
    return Sheet(figure, style, families, title, description, tuple(notes), further)


def side_by_side(
    figures: Sequence[Chart], names: Sequence[str] = (), lines: Sequence[str] = (), style: Style = Style()
) -> Sheet:
    """Panels (a), (b) … of one figure of a paper. names : the caption of each panel, after its letter. lines : above
    them, none unless given. ValueError as in `of_figures`, and for more than 26 panels.

    >>> bars = [figures.step_bars(select.select(trace), step) for step in (0, 1)]
    >>> [text.get_text() for text in printed.side_by_side(bars, ["Le", "chien"]).figure.texts]
    ['(a) Le', '(b) chien']
    """
    if len(figures) > 26 or (names and len(names) != len(figures)):
        raise ValueError(
            f"there must be 1 to 26 panels, and a name for each or none; got {len(figures)} and {len(names)}"
        )
    lettered = [
        f"({letter}) {name}".rstrip()
        for letter, name in zip("abcdefghijklmnopqrstuvwxyz", names or [""] * len(figures))
    ]
    return of_figures(figures, lines, style, lettered)


def many(
    pictures: Mapping[str | Path, Chart | Sequence[Chart]],
    style: Style = Style(),
    *,
    lines: Mapping[str | Path, Sequence[str]] | None = None,
    processes: int | None = None,
) -> list[Path]:
    """Save all pictures of an appendix: file -> a figure, or several beside each other.

    lines : above the pictures, by file, as in `of_figure`. processes : one per core unless given. With more than one,
    the calling program needs `if __name__ == "__main__":`, as multiprocessing requires. Returns the files. ValueError
    for an ending that is none of FORMATS (before anything is written), and for a picture that cannot be drawn.
    RuntimeError if a process died.

    >>> bars = {f"step {step}.svg": figures.step_bars(select.select(trace), step) for step in (0, 1)}
    >>> [place.name for place in printed.many(bars, printed.Style("column"), processes=1)]
    ['step 0.svg', 'step 1.svg']
    """
    above = lines or {}
    jobs = [
        (Path(place), [picture] if isinstance(picture, Chart) else list(picture), list(above.get(place, ())), style)
        for place, picture in pictures.items()
    ]
    for place, *_ in jobs:
        if place.suffix.lower().removeprefix(".") not in FORMATS:
            raise ValueError(f"a file must end in .{', .'.join(FORMATS)}; got {place.name!r:.80}")
    count = min(processes or os.cpu_count() or 1, len(jobs))
    if count < 2:
        return [_saved(*job) for job in jobs]
    try:
        with ProcessPoolExecutor(count, get_context("spawn")) as pool:
            return list(pool.map(_saved, *zip(*jobs), chunksize=max(1, len(jobs) // (8 * count))))
    except BrokenProcessPool:
        raise RuntimeError(
            'a process died: memory ran out, or the program has no `if __name__ == "__main__":` above its own code '
            "(processes=1 needs none)"
        ) from None


def _saved(place: Path, charts: list[Chart], lines: list[str], style: Style) -> Path:
    sheet = of_figure(charts[0], lines, style) if len(charts) == 1 else of_figures(charts, lines, style)
    content = sheet.save(place.suffix.lower().removeprefix("."))
    storage.replace(place, lambda temporary: temporary.write_bytes(content))
    return place


def of_map(
    trace: Trace,
    grid: Grid,
    style: Style = Style(),
    *,
    step: int | None = None,
    links=None,
    windows: Sequence[tuple[float, float]] = (),
) -> Sheet:
    """A map of `trace`. step, links, windows : as in `figures.heatmap`, with its errors.

    >>> printed.of_map(trace, select.select(trace)).title
    'Bahdanau · additive (en-fr/bahdanau): cross-attention'
    """
    chart = figures.heatmap(grid, step, links=links, windows=windows, dark=style.dark)
    return of_figure(chart, heading.of_map(trace, grid, links, windows), style)


def of_maps(maps: Mapping[str, tuple[Trace, Grid]], style: Style = Style()) -> Sheet:
    """Maps of one sentence beside each other, in a column below each other; each with its name and, where translations
    differ, its own. ValueError without maps.

    >>> maps = {"pieces": (trace, select.select(trace)), "words": (trace, select.select(trace, words=True))}
    >>> printed.of_maps(maps).title
    'Attention maps (en-fr/bahdanau, en-fr/bahdanau)'
    """
    traces = {name: trace for name, (trace, _) in maps.items()}
    charts = [figures.heatmap(grid, dark=style.dark) for _, grid in maps.values()]
    if not charts:
        raise ValueError("there must be at least one map; got none")
    return of_figures(charts, heading.of_statistics(traces, "Attention maps"), style, list(maps))


def of_difference(
    first: Trace, second: Trace, values: np.ndarray, grid: Grid, names: tuple[str, str], style: Style = Style()
) -> Sheet:
    """values (queries, keys) = weights of `first` - weights of `second` (`select.difference`), on a scale from -1 to 1.

    grid : the map of either. names : of both traces, for the colour scale. ValueError if the shapes differ.

    >>> grid = select.select(trace)
    >>> printed.of_difference(trace, trace, select.difference(grid, grid), grid, ("a", "b")).title.split(" minus ")
    ['Bahdanau · additive (en-fr/bahdanau)', 'Bahdanau · additive (en-fr/bahdanau): cross-attention']
    """
    chart = figures.difference(values, grid, names, dark=style.dark)
    return of_figure(chart, heading.of_difference(first, second, grid), style)


def of_step(
    trace: Trace, grid: Grid, step: int, style: Style = Style(), *, window: tuple[float, float] | None = None
) -> Sheet:
    """The weights of row `step` (from 0) of a map of `trace`, one bar per key. window : as in `figures.step_bars`, with
    its errors.

    >>> printed.of_step(trace, select.select(trace), 1).description.splitlines()[1]
    'Step 2 of 6: ‘chien’'
    """
    chart = figures.step_bars(grid, step, window=window, written=_WRITTEN, dark=style.dark)
    return of_figure(chart, heading.of_step(trace, grid, step, window), style)


def of_statistics(
    traces: Mapping[str, Trace],
    frames: Mapping[str, pd.DataFrame],
    keys: int | Sequence[int] | None,
    style: Style = Style(),
) -> Sheet:
    """Entropy, maximum weight and effective positions by step, one line per trace; below each other in a column.

    traces, frames : by name, the same names; frames as `stats.of_grid` returns them. keys : as in `figures.by_step`.

    >>> printed.of_statistics({"Bahdanau": trace}, {"Bahdanau": stats.of_grid(select.select(trace))}, keys=6).title
    'Attention by step (en-fr/bahdanau)'
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
    """All heads of a kind as small maps; arguments and errors as in `figures.overview`.

    Neighbouring cells of one shade are one rectangle. If there are more than `plotlyjs.MOST_RECTANGLES` (300,000), all
    cells are one image.

    >>> printed.of_overview(trace).title
    'Bahdanau · additive (en-fr/bahdanau): cross-attention, all heads'
    """
    kind = kind or (trace.maps or [trace.map()])[0].kind
    chart = figures.overview(trace, kind, table, order, color, root=root, dark=style.dark)
    lines = [line for line in heading.of_heads(trace, kind) if line != heading.MARKS["hidden"]]
    return of_figure(chart, [*lines, chart.description], style)  # which names what is hidden
