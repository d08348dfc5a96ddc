"""Chapter 2: weights and context, with a map and one of its rows."""

from attnviz.export import heading
from attnviz.figures import heatmap, labels, step_bars
from attnviz.select import select
from dashboard.browser.plot import named
from dashboard.learn.chapter import SENTENCE, TRANSLATION, Chapter, Drawn, column, state
from dashboard.markup import tables

STEP = 2  # from 0: "noir"


def draw(dark: bool) -> Drawn:
    shown = column("bahdanau", SENTENCE, TRANSLATION)
    grid = select(shown.trace)
    token = labels.shown(grid.queries)[STEP]
    cells = [
        (
            "<h4>Every step: one row each</h4>",
            named(
                heatmap(grid, STEP, dark=dark),
                "attention of all steps",
                dark,
                lines=heading.of_map(shown.trace, grid),
            ),
        ),
        (
            f'<h4>One row: the step that writes <span lang="fr">‘{token}’</span></h4>',
            named(
                step_bars(grid, STEP, dark=dark),
                "attention of one step",
                dark,
                lines=heading.of_step(shown.trace, grid, STEP),
            ),
        ),
    ]
    return Drawn(cells, tables.grid_table("Weights, one row per step", grid, shown.languages, grid.weights, ".2f"))


CHAPTER = Chapter(
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
    draw,
)
