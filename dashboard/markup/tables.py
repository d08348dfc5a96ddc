"""Numbers as plain tables: the text equivalent of every chart. Every text that a person or a model wrote is escaped here."""

import html
import math

import numpy as np

from attnviz import select, stats
from attnviz.figures import labels
from attnviz.figures.charts import STATISTICS, name_of
from attnviz.mechanisms import MECHANISMS
from attnviz.select import Grid
from attnviz.data.tasks import Task
from dashboard.compare.scene import Part, Scene
from dashboard.markup.parts import which

_CELLS, _LARGEST = 2500, 5  # of a map that is written out as a whole; else so many of each row


def table(
    caption: str,
    columns: list[str],
    rows: list[tuple[str, list[str]]],
    languages: tuple[str, str] = ("en", "en"),
    cells: str = "en",
) -> str:
    """A plain table that screen readers can walk; languages : of the names of rows and of columns; cells : of the cells."""
    row, column, inner = map(html.escape, (*languages, cells))
    head = "".join(f'<th scope="col" lang="{column}">{html.escape(name)}</th>' for name in columns)
    told = "" if cells == "en" else f' lang="{inner}" dir="auto"'
    body = "".join(
        f'<tr><th scope="row" lang="{row}">{html.escape(name)}</th>{"".join(f"<td{told}>{html.escape(text)}</td>" for text in texts)}</tr>'
        for name, texts in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="numbers"><caption>{html.escape(caption)}</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def cell(value: float, form: str, seen: bool = True) -> str:
    """A number; a dash for what cannot be seen or is undefined."""
    return format(value, form) if seen and math.isfinite(value) else "–"


def grid_table(caption: str, grid: Grid, languages: Task, values: np.ndarray, form: str) -> str:
    """Values (Q, K) on the tokens of a map; of a large one the largest of each row."""
    if values.size > _CELLS:
        return _largest_table(caption, grid, languages, values, form)
    columns = [labels.plain(token.text) for token in grid.keys]
    rows = [
        (labels.plain(token.text), [cell(value, form, seen) for value, seen in zip(row, visible)])
        for token, row, visible in zip(grid.queries, values.tolist(), grid.visible.tolist())
    ]
    return table(caption, columns, rows, _tags(grid, languages))


def _largest_table(caption: str, grid: Grid, languages: Task, values: np.ndarray, form: str) -> str:
    """The keys of each row that have the largest values, whatever their sign."""
    order = np.argsort(-np.nan_to_num(np.abs(np.where(grid.visible, values, np.nan)), nan=-1), axis=1, kind="stable")[
        :, :_LARGEST
    ]
    rows = [
        (
            f"{i + 1} {labels.plain(token.text)}",
            [
                f"{labels.plain(grid.keys[key].text)} {cell(float(values[i, key]), form, grid.visible[i, key])}"
                for key in order[i]
            ],
        )
        for i, token in enumerate(grid.queries)
    ]
    row, column = _tags(grid, languages)
    caption = (
        f"{caption}: the {_LARGEST} largest of each row; all {values.size:,} are in the trace, which can be downloaded"
    )
    return table(caption, [str(i + 1) for i in range(order.shape[1])], rows, (row, "en"), column)


def _tags(grid: Grid, languages: Task) -> tuple[str, str]:
    """Languages of a map's rows and columns."""
    source, target = languages.source, languages.target
    return (source if grid.kind == "encoder" else target, target if grid.kind == "decoder" else source)


def weights_table(part: Part) -> str:
    """The text equivalent of a heatmap; nothing where there is none."""
    return part.grid and _grid_table(f"{part.title}: weights, one row a step", part, part.grid.weights, ".2f")


def difference_table(a: Part, b: Part) -> str:
    """The text equivalent of a difference of two maps."""
    return _grid_table(f"Weights of {a.title} minus {b.title}", a, select.difference(a.grid, b.grid), "+.2f")


def _grid_table(caption: str, part: Part, values: np.ndarray, form: str) -> str:
    return grid_table(caption, part.grid, part.languages, values, form)


def bars_table(part: Part, index: int) -> str:
    grid = part.grid
    if grid is None or index >= len(grid.queries):
        return ""
    rows = [
        (labels.plain(token.text), [cell(weight, ".4f", seen)])
        for token, weight, seen in zip(grid.keys, grid.weights[index].tolist(), grid.visible[index])
    ]
    caption = f"{part.title}: weights of step {index + 1}, {labels.plain(grid.queries[index].text)}"
    return table(caption, ["weight"], rows, (_tags(part.grid, part.languages)[1], "en"))


def steps_table(part: Part) -> str:
    frame = part.frame
    chosen = ["entropy_nats", "max_weight", "effective_entropy"]
    rows = [
        (f"{i + 1} {labels.plain(token)}", [cell(value, ".3f") for value in row])
        for i, (token, row) in enumerate(zip(frame["token"], frame[chosen].to_numpy()))
    ]
    return table(
        f"{part.title}, by step",
        [STATISTICS[name] for name in chosen],
        rows,
        (_tags(part.grid, part.languages)[0], "en"),
    )


def comparison_table(current: Scene) -> str:
    """Mean ± population standard deviation of every statistic, a column a mechanism."""
    summary = current.summary()
    mechanisms = list(dict.fromkeys(summary["mechanism"]))
    cells = {
        (row.mechanism, row.statistic): f"{row.mean:.2f} ± {row.std:.2f}" if math.isfinite(row.mean) else "–"
        for row in summary[["mechanism", "statistic", "mean", "std"]].itertuples(index=False)
    }
    special = "special_mass" if current.settings.special else "removed_mass"
    names = [name for name in stats.STATISTICS if name != "argmax"] + [special]
    rows = [(name_of(name), [cells.get((mechanism, name), "–") for mechanism in mechanisms]) for name in names]
    several = [
        f"{part.title}: {which(part).lower()}" for part in current.parts if len(MECHANISMS[part.mechanism].kinds) > 1
    ]
    caption = "Mean ± standard deviation over the steps, of the weights drawn above" + "".join(
        f" ({text})" for text in several
    )
    return table(caption, mechanisms, rows)
