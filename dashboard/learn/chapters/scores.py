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
from dashboard.learn.chapter import PAIR, SENTENCE, TRANSLATION, Chapter, Drawn, column, state
from dashboard.markup import tables
from dashboard.markup.terms import cited
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


SCORES = Chapter(
    "scores",
    (
        "Where do the weights come from? A <b>query</b> asks, here the decoder’s state s. Each source token answers "
        "with a <b>key</b>, here its encoder state h<sub>j</sub>. The <b>score</b> e<sub>tj</sub> says how well the "
        "two fit. It may be any number.",
        "The <b>softmax</b> turns scores into weights: α<sub>tj</sub> = exp(e<sub>tj</sub>) / Σ<sub>k</sub> "
        "exp(e<sub>tk</sub>). Adding the same number to all scores changes nothing; only differences count.",
        "The mechanisms differ in the score. <b>Dot</b>: s · h<sub>j</sub>. <b>General</b>: s · W h<sub>j</sub>. "
        "<b>Additive</b> (Bahdanau) and <b>concat</b>: v · tanh(W s + U h<sub>j</sub>), a small network. <b>Scaled "
        "dot</b>: s · h<sub>j</sub> / √d.",
    ),
    {
        "s": "the decoder’s state, which is the query",
        "h_j": "the encoder’s state at source token j, which is the key",
        "e_tj": "the score of source token j at step t",
        "α_tj": "its weight; k in the sum goes through all source tokens",
        "W, U, v": "matrices and a vector that are learnt",
        "d": "the width of query and key: how many numbers each has",
    },
    "The dot product has nothing to learn. What must the encoder and the decoder do for it to work?",
    "They must learn one space for queries and keys. Both have the same width, and a query must point in the "
    "direction of the key that it needs. The general score learns the map between the two spaces, a matrix "
    "W; the additive score learns a small network and needs no equal widths.",
    "inside",
    state(
        "bahdanau",
        "luong-dot",
        "luong-general",
        target="One text for all: typed",
        force=TRANSLATION,
        step=str(STEP + 1),
        functions="true",
    ),
    "See the score of one token as a sum of its parts, in three mechanisms. Below their formulas, the same query goes "
    "through other scores.",
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


SCALING = Chapter(
    "scaling",
    (
        "The softmax is sharp when scores lie far apart and flat when they lie close. Dividing all scores by a "
        "<b>temperature</b> shows it: a small one makes one weight win, a large one makes all weights nearly equal.",
        "<b>Entropy</b> measures it: H<sub>t</sub> = −Σ<sub>j</sub> α<sub>tj</sub> ln α<sub>tj</sub>. It is 0 when "
        "one token has all the weight, and ln S when all S tokens have the same.",
        "The dot product of two random vectors of width d spreads as √d. A wide head would begin training with a "
        "softmax that is sharp by accident. So the Transformer divides by √d, and the spread stays near 1 at every "
        f"width ({cited('vaswani')}). Two of the models here differ in this division alone: their maps of one sentence "
        "stand below.",
    ),
    {
        "α_tj": "the weight of source token j at step t",
        "H_t": "the entropy of the weights of step t, in nats",
        "d": "the width of query and key",
        "S": "how many source tokens there are",
        "temperature": "what the scores are divided by; 1 is the model itself",
    },
    "What happens to learning when the softmax is so sharp that one weight is 1 and the others are 0?",
    "The slope of the softmax is then almost 0 everywhere: a small change of any score changes no weight. Gradients "
    "through attention vanish, and the model cannot learn to look elsewhere. Dividing by √d keeps the first steps of "
    "training away from there.",
    "inside",
    state(
        "transformer",
        target="One text for all: typed",
        force=TRANSLATION,
        step=str(STEP + 1),
        layer=str(LAYER + 1),
        heat="4",
        scaled="true",
    ),
    "Move the temperature and watch weights and entropy. The picture of random vectors stands below the formula.",
    draw_scaling,
)
