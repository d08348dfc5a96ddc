"""Every figure of the page by name, and the table that is its text equivalent. The same code draws the page and the
downloads."""

import functools
import math
from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from attnviz import figures, heads, select, stats
from attnviz.across.reference import SHOWN
from attnviz.export import heading
from attnviz.figures import labels
from attnviz.figures.steps import PANEL_STATISTICS, References
from attnviz.figures.wording import TITLES, CellTexts, statistic_title
from attnviz.trace import Trace
from dashboard.compare.captions import which
from dashboard.compare.scene import Column, CompareScene
from dashboard.markup import tables
from dashboard.session.caches import reference
from dashboard.session.memory import Cursor

BASELINES = ("untrained", "shuffled")


def cell_texts(column: Column) -> CellTexts | None:
    """The hover texts of the cells of a column's map; None without a map."""
    return column.grid and figures.cell_texts(column.grid, _cells(column))


def map_figure(column: Column, dark: bool, texts=None, scale: bool = True, written: bool = True) -> go.Figure:
    """The map of a column, with gold links if it has any. texts : from `cell_texts`, if already computed.

    written : False lets the page expand them.
    """
    marks = dict(links=_cells(column), windows=column.windows)
    return figures.heatmap(column.grid, dark=dark, scale=scale, texts=texts, written=written, **marks)


def _cells(column: Column):
    return column.links and column.links.cells


def references(current: CompareScene) -> References:
    """The two baselines, for the columns that show the measured map: cross-attention of the
    last layer, mean of its heads, of pieces, with special tokens."""
    choices = current.choices
    if choices.words or not choices.special:
        return {}
    levels = {
        column.title: _baselines(column.trace, PANEL_STATISTICS)
        for column in current.mapped
        if column.grid.kind == "cross"
        and (not column.mechanism.multi_head or (column.grid.head is None and _is_last(column)))
    }
    return {name: level for name, level in levels.items() if level}


def _baselines(trace: Trace, statistics: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """untrained, shuffled -> statistic -> its mean over test sentences of the same length, of the cross-attention of
    the last layer, mean of its heads; {} without a reference."""
    measured = reference(trace.model)
    if measured is None:
        return {}
    tokens = len(trace.source)
    levels = {name: {key: measured.level(name, key, tokens, SHOWN) for key in statistics} for name in BASELINES}
    if any(level is None for numbers in levels.values() for level in numbers.values()):
        return {}
    return {name: {key: float(level) for key, level in numbers.items()} for name, numbers in levels.items()}


def _is_last(column: Column) -> bool:
    return column.grid.layer == max(attention.layer for attention in column.trace.maps if attention.kind == "cross")


def difference_figure(a: Column, b: Column, dark: bool) -> go.Figure:
    """Weights of a minus weights of b."""
    return figures.difference(select.difference(a.grid, b.grid), a.grid, (a.title, b.title), dark=dark)


def makers(current: CompareScene, dark: bool, cursor: Cursor) -> dict[str, Callable[[], go.Figure]]:
    """name -> a function that draws it, with a heading. A text that ends before the step shows the bars of its last
    step."""
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
    return heading.above(map_figure(column, dark), lines)


def _saved_bars(column: Column, cursor: Cursor, dark: bool) -> go.Figure:
    step = min(cursor.step, len(column.grid.queries) - 1)
    window = column.windows[step] if column.windows else None
    bars = figures.step_bars(column.grid, step, window=window, dark=dark)
    return heading.above(bars, heading.of_step(column.shown, column.grid, step, window))


def _saved_statistics(current: CompareScene, dark: bool) -> go.Figure:
    traces = {column.title: column.shown for column in current.mapped}
    marks = references(current)
    figure = figures.by_step(current.frames(), current.keys, queries=current.queries, references=marks, dark=dark)
    return heading.above(figure, heading.of_statistics(traces, references=marks))


def _saved_comparison(current: CompareScene, dark: bool) -> go.Figure:
    table = figures.comparison(current.summary().query("statistic != 'argmax'"), dark=dark)
    traces = {column.title: column.shown for column in current.mapped}
    return heading.above(table, heading.of_statistics(traces, "Mean ± standard deviation over the steps"))


def _saved_difference(a: Column, b: Column, dark: bool) -> go.Figure:
    return heading.above(difference_figure(a, b, dark), heading.of_difference(a.shown, b.shown, a.grid))


def weights_table(column: Column) -> str:
    """The text equivalent of a heatmap; nothing without one."""
    caption = f"{column.title}: weights, one row per step"
    return column.grid and tables.grid_table(caption, column.grid, column.languages)


def difference_table(a: Column, b: Column) -> str:
    """The text equivalent of a difference of two maps."""
    values = select.difference(a.grid, b.grid)
    return tables.grid_table(f"Weights of {a.title} minus {b.title}", a.grid, a.languages, "+.2f", values)


def bars_table(column: Column, index: int) -> str:
    """The text equivalent of the bars of a step; "" without bars."""
    grid = column.grid
    if grid is None or index >= len(grid.queries):
        return ""
    rows = tables.of_numbers(labels.shown(grid.keys), grid.masked[index, :, None].tolist(), ".4f")
    caption = f"{column.title}: weights of step {index + 1}, {labels.shown(grid.queries)[index]}"
    return tables.table(caption, ["weight"], rows, (tables.tags(column.grid, column.languages)[1], "en"))


def steps_table(column: Column) -> str:
    """The text equivalent of the statistics by step of one mechanism."""
    values = zip(*(column.statistics[name] for name in PANEL_STATISTICS))
    rows = tables.of_numbers(tables.numbered(column.grid.queries), values, ".3f")
    titles, language = [TITLES[name] for name in PANEL_STATISTICS], tables.tags(column.grid, column.languages)[0]
    return tables.table(f"{column.title}, by step", titles, rows, (language, "en"))


def disagreement_table(scene: CompareScene) -> str:
    """The disagreement of maps of the same tokens, a row for each two mechanisms; "" without such maps."""
    rows = []
    for i, j in scene.differences:
        if i < j:
            a, b = scene.columns[i], scene.columns[j]
            seen = heads.disagreement(a.grid, b.grid)
            where = "–" if seen.largest is None else _largest(a, seen)
            numbers = [tables.cell(seen.mean_distance, ".2f"), tables.cell(seen.share_same, ".0%"), where]
            rows.append((f"{a.title} and {b.title}", numbers))
    columns = ["Jensen–Shannon distance, mean over the steps", "Steps with the same argmax", "They differ most at"]
    return tables.table("How far the maps disagree", columns, rows) if rows else ""


def _largest(column: Column, seen: heads.Disagreement) -> str:
    step = seen.largest
    return f"step {step + 1}, {labels.quoted(column.grid.queries, step)} ({seen.distances[step]:.2f})"


def comparison_table(scene: CompareScene) -> str:
    """Mean ± population standard deviation of every statistic, one column per mechanism."""
    means = scene.means()
    special = "special_mass" if scene.choices.special else "removed_mass"
    names = [name for name in stats.STATISTICS if name != "argmax"] + [special]
    rows = [(statistic_title(name), [_mean_and_std(*numbers[name]) for numbers in means.values()]) for name in names]
    several = [
        f"{column.title}: {which(column).lower()}" for column in scene.columns if len(column.mechanism.kinds) > 1
    ]
    caption = "Mean ± standard deviation over the steps, of the weights shown above" + "".join(
        f" ({text})" for text in several
    )
    return tables.table(caption, list(means), rows)


def _mean_and_std(mean: float, std: float) -> str:
    return f"{mean:.2f} ± {std:.2f}" if math.isfinite(mean) else "–"


COURSE = {"loss": "Loss (nats a token)", "bleu_lc": "BLEU", "error_rate": "Alignment error rate"}


def course(rows: Sequence[dict]) -> dict[str, list]:
    """The measurements at the moments of a training, for `figures.learning.over_time`; moments count from 1."""
    return {"moment": [*range(1, len(rows) + 1)], **{key: [row.get(key) for row in rows] for key in COURSE}}
