"""Chapter 3: score functions, with one query through several of them."""

from attnviz.export import heading
from attnviz.figures import labels
from attnviz.figures.inside import score_bars
from attnviz.figures.what_if import score_functions, weights_by_score
from dashboard.browser.plot import named
from dashboard.choices.options import model
from dashboard.inside import caches
from dashboard.learn import chapter
from dashboard.learn.chapter import PAIR, SENTENCE, TRANSLATION, Chapter, Drawn, column, state
from dashboard.markup import tables
from dashboard.session import catalogue

STEP = 2


def draw(dark: bool) -> Drawn:
    shown = column("bahdanau", SENTENCE, TRANSLATION)
    step = caches.step(shown, STEP)
    learnt = tuple(name for name in [model(PAIR, "luong-general")] if catalogue.is_there(name))
    frame = caches.other_scores(shown, STEP, learnt)
    cells = [
        (
            "<h4>Scores become weights (Bahdanau)</h4>",
            named(
                score_bars(step, dark=dark),
                "scores become weights",
                dark,
                lines=heading.of_trace(f"Scores become weights at step {STEP + 1}", shown.trace),
            ),
        ),
        (
            "<h4>The same query through other score functions</h4>"
            '<p class="small">The first row is the model’s own. The others were not trained with this model: they '
            "compare formulas, not models.</p>",
            named(
                score_functions(step, frame, dark=dark),
                "other score functions",
                dark,
                lines=heading.of_trace(f"The query of step {STEP + 1} through other score functions", shown.trace),
            ),
        ),
    ]
    names, weights = weights_by_score(step, frame)
    rows = [(name, [f"{value:.2f}" for value in row]) for name, row in zip(names, weights.tolist())]
    columns = labels.shown(step.keys)
    scored = [
        (f"{place + 1} {token}", [f"{step.scores[place]:.2f}", f"{step.weights[place]:.3f}"])
        for place, token in enumerate(labels.shown(step.keys))
    ]
    words = tables.table("Scores and weights of Bahdanau", ["score", "weight"], scored)
    cells += chapter.study_table(chapter.MECHANISMS_STUDY)
    return Drawn(cells, words + tables.table("Weights of one query through several score functions", columns, rows))


CHAPTER = Chapter(
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
    draw,
)
