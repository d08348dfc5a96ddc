"""Chapters 2 and 9: weights and context, and the limits of weights: attention made uniform at function words."""

from attnviz.export import heading
from attnviz.figures import heatmap, labels, step_bars
from attnviz.figures.what_if import effect_bars
from attnviz.intervene import Scope, Uniform
from attnviz.select import select
from dashboard.browser.plot import Cell, named
from dashboard.inside import caches, effects
from dashboard.learn.chapter import SENTENCE, TRANSLATION, Chapter, Drawn, column, state
from dashboard.markup import tables
from dashboard.markup.terms import says

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


WEIGHTS = Chapter(
    "weights",
    (
        "At step t the decoder gives each source token j a <b>weight</b> α<sub>tj</sub>. The weights of a step are not "
        "negative and sum to 1: they say how the step shares out its reading.",
        "The <b>context</b> of the step is the weighted mean of the encoder’s states: c<sub>t</sub> = Σ<sub>j</sub> "
        "α<sub>tj</sub> h<sub>j</sub>. The decoder reads it and writes token y<sub>t</sub>.",
        "A map of attention has a row for each step and a column for each source token. A row sums to 1; a column "
        "need not.",
    ),
    {
        "t": "the step: the place of the target token that is written",
        "j": "the place of a source token",
        "α_tj": "the weight of source token j at step t, from 0 to 1",
        "h_j": "the encoder’s state at source token j",
        "c_t": "the context of step t, Σ_j α_tj h_j: a sum over all source tokens",
        "y_t": "the token that step t writes",
    },
    "The map mostly follows the diagonal. Around ‘black dog’ it does not. Why?",
    "French puts most adjectives of colour after the noun: <i lang=fr>chien noir</i> is “dog black”. So the step that "
    "writes <i lang=fr>chien</i> must read ‘dog’, and the next one ‘black’: the two rows cross. Nobody told the "
    "model; it learnt it from pairs of sentences.",
    "",
    state("bahdanau", target="One text for all: typed", force=TRANSLATION, step=str(STEP + 1)),
    "Move the step with the arrow keys and watch the row and its bars.",
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


LIMITS = Chapter(
    "limits",
    (
        "A weight says how much of a value goes into a mean. It does not say what the model would write without it. "
        "To know that, change the weights and see: below, attention is made uniform at all steps that write function "
        "words (such as <i lang=fr>le</i> or <i lang=fr>dans</i>), and then at those that write content words.",
        f"{says('jain')} permuted the attention of classifiers and often changed nothing. They concluded that "
        f"attention is not explanation. {says('wiegreffe')} answered that one explanation need not be the only "
        "one.",
        f"In translation, {says('moradi')} found that content words depend on attention more than function words "
        "do, which a model can often guess from the words before.",
    ),
    {
        "Δ log p(y_t)": "the change of the log-probability of token t under the change; below 0 it became less likely",
        "y_t": "the token that step t writes",
        "p, p′": "the distribution of the next token as it is, and under the change",
        "total variation": "how far that distribution moves: ½ Σ |p − p′| over the vocabulary, 0 to 1",
    },
    "A function word stays the same when its row is made uniform. Does it follow that the model did not use attention "
    "there?",
    "No. It follows that the model <i>can</i> write the word without it, in this sentence. The model may still "
    "have used attention. A word that changes is no proof either: a changed row makes a context that the model never "
    "met in training, and a word may be lost for that reason alone.",
    "inside",
    state("bahdanau", change="uniform", where="at steps of function words"),
    "Scroll down to “Change attention”. Try other changes there, and the tests below.",
    draw_limits,
)
