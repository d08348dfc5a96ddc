"""Chapters 2 and 9: weights and context, and the limits of weights: attention made uniform at function words."""

from attnviz.export import heading
from attnviz.figures import heatmap, labels, step_bars
from attnviz.figures.what_if import effect_bars
from attnviz.intervene import Scope, Uniform
from attnviz.select import select
from dashboard.browser.plot import Cell, named
from dashboard.inside import caches, effects
from dashboard.learn.chapter import FORCED, SENTENCE, TRANSLATION, Drawn, column, read, state
from dashboard.markup import tables

STEP = 2  # from 0: "noir"


def draw_weights(dark: bool) -> Drawn:
    shown = column("bahdanau", SENTENCE, TRANSLATION)
    grid = select(shown.trace)
    token = labels.shown(grid.queries)[STEP]
    every, bars = heatmap(grid, STEP, dark=dark), step_bars(grid, STEP, dark=dark)
    named(every, "attention of all steps", dark, lines=heading.of_map(shown.trace, grid))
    named(bars, "attention of one step", dark, lines=heading.of_step(shown.trace, grid, STEP))
    words = f'<h4>One row: the step that writes <span lang="fr">‘{token}’</span></h4>'
    cells = [("<h4>Every step: one row each</h4>", every), (words, bars)]
    return Drawn(cells, tables.grid_table("Weights, one row per step", grid, shown.languages))


WEIGHTS = read(
    "weights",
    "",
    state("bahdanau", **FORCED, step=str(STEP + 1)),
    draw_weights,
)


UNIFORM = {"function": "Uniform at function words", "content": "Uniform at content words"}


def draw_limits(dark: bool) -> Drawn:
    shown = column("bahdanau", SENTENCE)
    outcomes = {kind: caches.outcome(shown, Uniform(), Scope(words=kind)) for kind in UNIFORM}
    cells: list[Cell] = [
        (f"<h4>{UNIFORM[kind]}</h4>{effects.written(shown, outcome)}", None) for kind, outcome in outcomes.items()
    ]
    for kind, outcome in outcomes.items():
        figure = effect_bars(outcome.before.target, outcome.log_prob_changes, outcome.total_variation, dark=dark)
        lines = heading.of_trace(f"{UNIFORM[kind]}, the first text forced", outcome.before)
        words = f"<h4>{UNIFORM[kind]}: each token, same text</h4>"
        cells.append((words, named(figure, UNIFORM[kind], dark, lines=lines)))
    return Drawn(cells, "".join(effects.table(shown, outcome) for outcome in outcomes.values()))


LIMITS = read("limits", "inside", state("bahdanau", change="uniform", where="at steps of function words"), draw_limits)
