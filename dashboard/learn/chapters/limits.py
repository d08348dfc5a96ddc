"""Chapter 9: what attention does not tell, with attention made uniform at function words."""

from attnviz.export import heading
from attnviz.figures.what_if import effect_bars
from attnviz.intervene import Scope, Uniform
from dashboard.browser.plot import Cell, named
from dashboard.inside import caches, effects
from dashboard.learn.chapter import SENTENCE, Chapter, Drawn, column, state
from dashboard.markup.terms import says

KINDS = {"function": "Uniform at function words", "content": "Uniform at content words"}


def draw(dark: bool) -> Drawn:
    shown = column("bahdanau", SENTENCE)
    outcomes = {kind: caches.outcome(shown, Uniform(), Scope(words=kind)) for kind in KINDS}
    cells: list[Cell] = [
        (f"<h4>{KINDS[kind]}</h4>{effects.written(shown, outcome)}", None) for kind, outcome in outcomes.items()
    ]
    for kind, outcome in outcomes.items():
        figure = effect_bars(outcome.before.target, outcome.log_prob_changes, outcome.total_variation, dark=dark)
        lines = heading.of_trace(f"{KINDS[kind]}, the first text forced", outcome.before)
        words = f"<h4>{KINDS[kind]}: each token, same text</h4>"
        cells.append((words, named(figure, KINDS[kind], dark, lines=lines)))
    return Drawn(cells, "".join(effects.table(shown, outcome) for outcome in outcomes.values()))


CHAPTER = Chapter(
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
    draw,
)
