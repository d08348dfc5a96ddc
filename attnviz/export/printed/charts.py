"""The weights of one step as bars, and statistics by step as lines, printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnviz.export.printed.maps import texts
from attnviz.export.printed.sheet import LEADING, Sheet, Style, label_keys, sheet
from attnviz.export import heading
from attnviz.figures.per_step import steps
from attnviz.figures.axes import check_step
from attnviz.figures.theme import lines
from attnviz.select import Grid
from attnviz.trace import Trace

_WRITTEN = 0.1  # weights from here on are written over their bars
# Plotly's names for dashes and markers, in matplotlib's words.
_DASHES = {
    "solid": "-",
    "dash": (0, (5, 2)),
    "dashdot": (0, (5, 2, 1, 2)),
    "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 3, 1, 3)),
    "5px,2px": (0, (3, 1.5)),
    "8px,2px,2px,2px": (0, (7, 2, 2, 2)),
    "12px,3px": (0, (12, 3)),
}
_MARKERS = {
    "circle": "o",
    "diamond": "D",
    "square": "s",
    "triangle-up": "^",
    "x": "x",
    "star": "*",
    "cross": "P",
    "hexagon": "h",
}


def of_step(
    trace: Trace,
    grid: Grid,
    step: int,
    style: Style = Style(),
    *,
    window: tuple[float, float] | None = None,
) -> Sheet:
    """The weights of row `step` (from 0) of a map of `trace`, a bar a key. ValueError if it is no row of the map.

    window : of local attention, (centre, reach) in keys from 0: a dotted line at the predicted place, a band over its
        window; as `figures.step_bars`.
    """
    check_step(grid, step)
    weights = np.where(grid.visible[step], grid.weights[step], np.nan)
    color = lines([grid.mechanism], style.dark)[grid.mechanism].color

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot(facecolor=style.colors.page)
        axes.bar(range(len(weights)), np.nan_to_num(weights), width=0.82, color=color)
        size = min(0.85 * style.points, max(4, 0.4 * style.width / len(weights)))
        for key, weight in enumerate(weights):
            if weight >= _WRITTEN:
                axes.text(key, weight, f"{weight:.2f}", ha="center", va="bottom", size=size, color=style.colors.text)
        axes.set(xlim=(-0.5, len(weights) - 0.5), ylim=(0, 1.08))
        if window:
            _window(axes, window, style)
        axes.set_yticks([0, 0.5, 1], labels=["0", ".5", "1"])
        label_keys(axes, texts(grid.keys), style)
        _frame(axes, style, f"{grid.sides[1]} (attended to)", "attention weight")

    return sheet(heading.of_step(trace, grid, step, window), style, style.points * (16 + 4 * LEADING), draw)


def _window(axes, window: tuple[float, float], style: Style) -> None:
    """What lies beyond the axis is cut."""
    centre, reach = window
    axes.axvspan(centre - reach, centre + reach, color=style.colors.grid, alpha=0.6, zorder=0, linewidth=0)
    axes.axvline(centre, color=style.colors.text, linestyle=":", linewidth=0.15 * style.points)
    axes.set_xlim(axes.get_xlim())


def of_statistics(
    traces: Mapping[str, Trace],
    frames: Mapping[str, pd.DataFrame],
    keys: int | Sequence[int] | None,
    style: Style = Style(),
) -> Sheet:
    """Entropy, maximum weight and effective positions by step, a line a trace; as `figures.by_step`.

    traces, frames : by name, the same names; frames as `stats.of_grid` gives them. keys : how many keys a step sees, or
        one number a step; dotted: uniform attention over them. None draws nothing dotted.
    """
    if list(traces) != list(frames) or not frames:
        raise ValueError(f"traces and frames must have the same names; got {list(traces)} and {list(frames)}")
    stacked = style.size == "column"
    shape = (len(steps.PANELS), 1) if stacked else (1, len(steps.PANELS))

    def draw(figure: Figure) -> None:
        panels = figure.subplots(*shape)
        for axes, panel in zip(panels, steps.PANELS, strict=True):
            _panel(axes, panel, frames, keys, style)
        handles, names = panels[0].get_legend_handles_labels()
        look = dict(frameon=False, ncols=2 if stacked else 3, labelcolor=style.colors.text, handlelength=4)
        for text in figure.legend(handles, names, loc="outside lower left", **look).get_texts():
            text.set_parse_math(False)

    body = style.points * (3 * 11 if stacked else 21.5)
    return sheet(heading.of_statistics(traces), style, body, draw)


def _panel(axes, panel: tuple, frames: Mapping[str, pd.DataFrame], keys, style: Style) -> None:
    """One statistic of all traces, and the level of uniform attention."""
    statistic, name, uniform, _ = panel
    looks = lines(frames, style.dark)
    for title, frame in frames.items():
        look = looks[title]
        mark = dict(marker=_MARKERS[look.marker], markersize=0.45 * style.points, linewidth=0.15 * style.points)
        mark |= dict(color=look.color, ls=_DASHES[look.dash], clip_on=False)  # a marker at 0 or 1 is drawn whole
        axes.plot(frame["step"] + 1, frame[statistic], label=title, **mark)
    longest = max(map(len, frames.values()))
    level = steps.levels(uniform, steps.counts(keys, longest))
    if level is not None:
        heights = [np.nan if height is None else height for height in level] if isinstance(level, list) else level
        places = np.arange(1, longest + 1)
        look = dict(color=style.colors.muted, lw=0.12 * style.points, label="uniform attention")
        axes.plot(places, np.broadcast_to(heights, longest), ":", **look)
    axes.set_ylim(0, 1.04 if statistic == "max_weight" else steps.top(frames, statistic, level))
    axes.set_title(name, loc="left", size=style.points, weight="bold", color=style.colors.text)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6 if style.size != "column" else 10))
    axes.set_facecolor(style.colors.page)
    _frame(axes, style, "step", "")


def _frame(axes, style: Style, across: str, up: str) -> None:
    """Quiet lines and the names of the axes."""
    colors = style.colors
    axes.grid(axis="y", color=colors.grid, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=colors.text, length=2)
    axes.set_xlabel(across, color=colors.muted)
    axes.set_ylabel(up, color=colors.muted)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colors.muted)
