"""The tables of the page that compares mechanisms: the text equivalent of each of its charts."""

import math

import numpy as np

from attnviz import heads, select, stats
from attnviz.figures import labels
from attnviz.figures.wording import TITLES, statistic_title
from dashboard.compare.captions import which
from dashboard.compare.scene import Column, CompareScene
from dashboard.markup import tables


def weights_table(column: Column) -> str:
    """The text equivalent of a heatmap; nothing where there is none."""
    return column.grid and _grid_table(f"{column.title}: weights, one row per step", column, column.grid.weights, ".2f")


def difference_table(a: Column, b: Column) -> str:
    """The text equivalent of a difference of two maps."""
    return _grid_table(f"Weights of {a.title} minus {b.title}", a, select.difference(a.grid, b.grid), "+.2f")


def _grid_table(caption: str, column: Column, values: np.ndarray, form: str) -> str:
    return tables.grid_table(caption, column.grid, column.languages, values, form)


def bars_table(column: Column, index: int) -> str:
    """The text equivalent of the bars of a step; nothing where there are none."""
    grid = column.grid
    if grid is None or index >= len(grid.queries):
        return ""
    rows = [
        (labels.plain(token.text), [tables.cell(weight, ".4f", seen)])
        for token, weight, seen in zip(grid.keys, grid.weights[index].tolist(), grid.visible[index])
    ]
    caption = f"{column.title}: weights of step {index + 1}, {labels.plain(grid.queries[index].text)}"
    return tables.table(caption, ["weight"], rows, (tables.tags(column.grid, column.languages)[1], "en"))


def steps_table(column: Column) -> str:
    """The text equivalent of the statistics by step of one mechanism."""
    frame = column.frame
    chosen = ["entropy_nats", "max_weight", "effective_entropy"]
    rows = [
        (f"{i + 1} {labels.plain(token)}", [tables.cell(value, ".3f") for value in row])
        for i, (token, row) in enumerate(zip(frame["token"], frame[chosen].to_numpy()))
    ]
    return tables.table(
        f"{column.title}, by step",
        [TITLES[name] for name in chosen],
        rows,
        (tables.tags(column.grid, column.languages)[0], "en"),
    )


def disagreement_table(scene: CompareScene) -> str:
    """How far maps of the same tokens disagree, a row for each two mechanisms; nothing where there are no such maps."""
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
    return f"step {step + 1}, {labels.quoted(column.grid.queries[step])} ({seen.distances[step]:.2f})"


def comparison_table(scene: CompareScene) -> str:
    """Mean ± population standard deviation of every statistic, one column per mechanism."""
    summary = scene.summary()
    mechanisms = list(dict.fromkeys(summary["mechanism"]))
    cells = {
        (row.mechanism, row.statistic): f"{row.mean:.2f} ± {row.std:.2f}" if math.isfinite(row.mean) else "–"
        for row in summary[["mechanism", "statistic", "mean", "std"]].itertuples(index=False)
    }
    special = "special_mass" if scene.choices.special else "removed_mass"
    names = [name for name in stats.STATISTICS if name != "argmax"] + [special]
    rows = [(statistic_title(name), [cells.get((mechanism, name), "–") for mechanism in mechanisms]) for name in names]
    several = [
        f"{column.title}: {which(column).lower()}" for column in scene.columns if len(column.mechanism.kinds) > 1
    ]
    caption = "Mean ± standard deviation over the steps, of the weights shown above" + "".join(
        f" ({text})" for text in several
    )
    return tables.table(caption, mechanisms, rows)
