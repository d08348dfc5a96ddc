"""Small pieces of HTML. Every text that a person or a model wrote is escaped here."""

import html
import math

import numpy as np
import pandas as pd

from attnviz import select, stats
from attnviz.figures import labels
from attnviz.figures.charts import STATISTICS
from attnviz.models import MECHANISMS
from attnviz.select import Grid
from dashboard.scene import Part


def header(part: Part, ink: str) -> str:
    """Name and source of a mechanism; `ink` is its colour in all charts."""
    mechanism = MECHANISMS[part.mechanism]
    return (
        f'<div class="part" style="--ink:{ink}"><h3>{html.escape(mechanism.title)}</h3>'
        f'<p class="paper">{html.escape(mechanism.paper)}</p></div>'
    )


def translation(part: Part) -> str:
    """What the model said, or was made to say, and how probable that is to it."""
    trace = part.trace
    said = html.escape(trace.translation) or "<i>nothing: it ended at once</i>"
    how = "forced; " if trace.forced else ""
    cut = "" if trace.complete else " · cut at the length limit"
    mean = trace.log_prob / max(len(trace.log_probs), 1)
    return (
        f'<p class="said" lang="fr" dir="auto">{said}<br><small>{how}log-probability {trace.log_prob:.2f} '
        f"({mean:.2f} a piece){cut}</small></p>"
    )


def shown(part: Part) -> str:
    """Which map is drawn, said plainly, and what was hidden of it."""
    grid = part.grid
    maps = part.trace.map(grid.kind, 0).weights.shape[0]
    text = {"cross": "Cross-attention", "encoder": "Self-attention of the encoder", "decoder": "Self-attention of the decoder"}[grid.kind]
    if len(MECHANISMS[part.mechanism].kinds) > 1:
        head = f"mean of its {maps} heads" if grid.head is None else f"head {grid.head + 1} of {maps}"
        text += f", layer {grid.layer + 1}, {head}"
    if grid.removed.any():
        text += f"; special tokens hidden, {100 * float(grid.removed.mean()):.0f} % of the weight removed on average"
    unknown = [token.text for token in part.trace.source if token.unknown]
    if unknown:
        listed = ", ".join(f"‘{html.escape(text)}’" for text in dict.fromkeys(unknown))
        text += f". Not in the vocabulary, read as unknown: {listed}"
    return f'<p class="what">{text}.</p>'


def step(part: Part, index: int) -> str:
    """The token of a row, its probability, and what else the model might have said."""
    tokens = part.grid.queries
    if index >= len(tokens):
        return f'<p class="step">This text ends after {len(tokens)} steps.</p>'
    token = f"<b dir='auto'>{html.escape(labels.plain(tokens[index].text))}</b>"
    if part.grid.kind == "encoder":
        return f'<p class="step">Source token {index + 1}: {token}</p>'
    chance = math.exp(part.shown.log_probs[index])  # <eos> is last, so hiding it moves no step
    others = "".join(
        f"<i><span dir='auto'>{html.escape(labels.plain(other.text))}</span> {other.probability:.3f}</i>"
        for other in part.shown.alternatives[index]
    ) or "for alternatives, which are pieces, show pieces"
    return f'<p class="step">{token} with probability {chance:.3f}<span class="others">{others}</span></p>'


def weights_table(part: Part) -> str:
    """The text equivalent of a heatmap."""
    return _grid_table(f"{part.title}: weights, one row a step", part.grid, part.grid.weights, ".2f")


def difference_table(a: Part, b: Part) -> str:
    """The text equivalent of a difference of two maps."""
    return _grid_table(f"Weights of {a.title} minus {b.title}", a.grid, select.difference(a.grid, b.grid), "+.2f")


def _grid_table(caption: str, grid: Grid, values: np.ndarray, form: str) -> str:
    columns = [labels.plain(token.text) for token in grid.keys]
    rows = [(labels.plain(token.text), [format(value, form) if seen else "" for value, seen in zip(row, visible)])
            for token, row, visible in zip(grid.queries, values.tolist(), grid.visible.tolist())]  # fmt: skip
    return table(caption, columns, rows)


def bars_table(part: Part, index: int) -> str:
    grid = part.grid
    if index >= len(grid.queries):
        return ""
    rows = [(labels.plain(token.text), [f"{weight:.4f}"]) for token, weight in zip(grid.keys, grid.weights[index].tolist())]
    return table(f"{part.title}: weights of step {index + 1}, {labels.plain(grid.queries[index].text)}", ["weight"], rows)


def steps_table(part: Part) -> str:
    frame = part.frame
    chosen = ["entropy_nats", "max_weight", "effective_entropy"]
    rows = [(f"{i + 1} {labels.plain(token)}", [f"{value:.3f}" for value in row])
            for i, (token, row) in enumerate(zip(frame["token"], frame[chosen].to_numpy()))]  # fmt: skip
    return table(f"{part.title}, by step", [STATISTICS[name] for name in chosen], rows)


def comparison_table(summary: pd.DataFrame, special: bool) -> str:
    """Mean ± population standard deviation of every statistic, a column a mechanism. special : are special tokens shown?"""
    mechanisms = list(dict.fromkeys(summary["mechanism"]))
    cells = {(row.mechanism, row.statistic): f"{row.mean:.2f} ± {row.std:.2f}" if row.mean == row.mean else "–"
             for row in summary[["mechanism", "statistic", "mean", "std"]].itertuples(index=False)}  # fmt: skip
    names = [name for name in stats.STATISTICS if name != "argmax"] + ["special_mass" if special else "removed_mass"]
    rows = [(STATISTICS.get(name, name), [cells.get((mechanism, name), "–") for mechanism in mechanisms]) for name in names]
    return table("Mean ± standard deviation over the steps on show", mechanisms, rows)


def table(caption: str, columns: list[str], rows: list[tuple[str, list[str]]]) -> str:
    """A plain table that screen readers can walk."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(f"<td>{html.escape(cell)}</td>" for cell in cells)}</tr>'
        for name, cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="numbers"><caption>{html.escape(caption)}</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
