"""Chapters 3 and 5: score functions, one query with several of them; temperature, and why products are scaled."""

from attnviz import inside, stats
from attnviz.export import heading
from attnviz.figures import heatmap, labels
from attnviz.figures.inside import score_bars
from attnviz.figures.what_if import product_spread, score_functions, weights_by_score
from attnviz.inside import Step
from attnviz.select import select
from dashboard.browser.plot import Cell, named
from dashboard.choices.options import model
from dashboard.inside import caches, opened
from dashboard.inside.scene import Column
from dashboard.learn import chapter
from dashboard.learn.chapter import FORCED, PAIR, SENTENCE, TRANSLATION, Drawn, column, read, state
from dashboard.markup import tables
from dashboard.session import catalogue

STEP = 2


def draw_scores(dark: bool) -> Drawn:
    shown = column("bahdanau", SENTENCE, TRANSLATION)
    step = caches.step(shown, STEP)
    learnt = tuple(name for name in [model(PAIR, "luong-general")] if catalogue.is_there(name))
    frame = caches.other_scores(shown, STEP, learnt)
    bars, functions = score_bars(step, dark=dark), score_functions(step, frame, dark=dark)
    lines = heading.of_trace(f"Scores become weights at step {STEP + 1}", shown.trace)
    others = heading.of_trace(f"The query of step {STEP + 1} through other score functions", shown.trace)
    below = (
        "<h4>The same query through other score functions</h4>"
        '<p class="small">The first row is the model’s own. The others were not trained with this model: they '
        "compare formulas, not models.</p>"
    )
    cells = [
        ("<h4>Scores become weights (Bahdanau)</h4>", named(bars, "scores become weights", dark, lines=lines)),
        (below, named(functions, "other score functions", dark, lines=others)),
    ]
    names, weights = weights_by_score(step, frame)
    rows, columns = tables.of_numbers(names, weights.tolist(), ".2f"), labels.shown(step.keys)
    scored = [
        (name, [f"{score:.2f}", f"{weight:.3f}"])
        for name, score, weight in zip(tables.numbered(step.keys), step.scores, step.weights)
    ]
    words = tables.table("Scores and weights of Bahdanau", ["score", "weight"], scored)
    cells += chapter.study_table(chapter.MECHANISMS_STUDY)
    return Drawn(cells, words + tables.table("Weights of one query through several score functions", columns, rows))


SCORES = read(
    "scores",
    "inside",
    state(
        "bahdanau",
        "luong-dot",
        "luong-general",
        **FORCED,
        step=str(STEP + 1),
        functions="true",
    ),
    draw_scores,
)


LAYER = 2
PRODUCTS = {  # trained models -> what they do with the dot product
    "luong-dot": "Trained with the dot product as it is.",
    "scaled-dot": "Trained with the dot product divided by √d.",
}
TEMPERATURES = (0.25, 1.0, 4.0)


def draw_scaling(dark: bool) -> Drawn:
    shown = column("transformer", SENTENCE, TRANSLATION, LAYER)
    step = caches.step(shown, STEP)
    entropies = inside.temperatures(step, TEMPERATURES)
    cells: list[Cell] = []
    for value, entropy in zip(TEMPERATURES, entropies["entropy_nats"]):
        lines = heading.of_trace(f"Step {STEP + 1} at temperature {value:g}{shown.place}", shown.trace)
        figure = named(score_bars(step, temperature=value, dark=dark), f"temperature {value:g}", dark, lines=lines)
        cells.append((f"<h4>Temperature {value:g}: entropy {entropy:.2f} nats</h4>", figure))
    spread = inside.spread(samples=300)
    cells.append(("<h4>Why √d</h4>", named(product_spread(spread, dark=dark), "spread of dot products", dark)))
    compared = [column(name, SENTENCE, TRANSLATION) for name in PRODUCTS]
    cells += [_product(column_shown, dark) for column_shown in compared]
    cells += chapter.study_table(chapter.DROPOUT_STUDY)
    values = entropies[["entropy_nats", "max_weight"]].to_numpy()
    rows = tables.of_numbers([f"{value:g}" for value in entropies["temperature"]], values, ".2f")
    words = tables.table("Weights by temperature", ["entropy (nats)", "largest weight"], rows)
    return Drawn(cells, words + _weights(step) + opened.spread_table(spread) + _products_table(compared))


def _product(shown: Column, dark: bool) -> Cell:
    """The map of a shipped model whose score is a dot product, divided by √d or not."""
    grid = select(shown.trace)
    entropy = stats.of_grid(grid)["entropy_nats"].mean()
    words = (
        f'<h4>{shown.title}</h4><p class="small">{PRODUCTS[shown.trace.mechanism]} Mean entropy {entropy:.2f} nats, '
        f"mean largest weight {grid.weights.max(-1).mean():.2f}.</p>"
    )
    return words, named(heatmap(grid, dark=dark), f"map {shown.title}", dark, lines=heading.of_map(shown.trace, grid))


def _products_table(compared: list[Column]) -> str:
    return "".join(
        tables.grid_table(f"Weights of {shown.title}", select(shown.trace), shown.languages) for shown in compared
    )


def _weights(step: Step) -> str:
    """The text equivalent of the bars: the score of each token, and its weight at each temperature."""
    heated = zip(*(step.weights_at(value) for value in TEMPERATURES))
    rows = [
        (name, [f"{score:.2f}", *(f"{weight:.3f}" for weight in weights)])
        for name, score, weights in zip(tables.numbered(step.keys), step.scores, heated)
    ]
    columns = ["score", *(f"weight at {value:g}" for value in TEMPERATURES)]
    return tables.table("Scores, and weights at each temperature", columns, rows)


SCALING = read(
    "scaling",
    "inside",
    state(
        "transformer",
        **FORCED,
        step=str(STEP + 1),
        layer=str(LAYER + 1),
        heat="4",
        scaled="true",
    ),
    draw_scaling,
)
