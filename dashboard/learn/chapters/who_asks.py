"""Chapter 4: who asks, and when: Bahdanau beside Luong on the same words."""

from attnviz.export import heading
from attnviz.figures import labels
from attnviz.figures.inside import score_bars
from dashboard.browser.plot import Cell, named
from dashboard.inside import caches
from dashboard.inside.pictures import steps_in_order
from dashboard.inside.scene import Column
from dashboard.learn.chapter import SENTENCE, TRANSLATION, Chapter, Drawn, column, state
from dashboard.markup import tables
from dashboard.markup.terms import cited

MECHANISMS = ("bahdanau", "luong-general")
STEP = 2


def draw(dark: bool) -> Drawn:
    columns = [column(name, SENTENCE, TRANSLATION) for name in MECHANISMS]
    cells = [_order(shown) for shown in columns] + [_scores(shown, dark) for shown in columns]
    return Drawn(cells, _table(columns))


def _order(shown: Column) -> Cell:
    return f"<h4>{shown.title}</h4>{steps_in_order(caches.step(shown, STEP).asks)}", None


def _scores(shown: Column, dark: bool) -> Cell:
    figure = score_bars(caches.step(shown, STEP), dark=dark)
    lines = heading.of_trace(f"Scores become weights at step {STEP + 1}", shown.trace)
    return f"<h4>{shown.title}, step {STEP + 1}</h4>", named(figure, f"scores {shown.title}", dark, lines=lines)


def _table(columns: list[Column]) -> str:
    steps = [caches.step(shown, STEP) for shown in columns]
    rows = [
        (f"{place + 1} {token}", [f"{step.weights[place]:.3f}" for step in steps])
        for place, token in enumerate(labels.shown(steps[0].keys))
    ]
    return tables.table(f"Weights of step {STEP + 1}", [shown.title for shown in columns], rows)


CHAPTER = Chapter(
    "who-asks",
    (
        "A recurrent decoder carries a <b>state</b> s. At each step the state reads the token just written and moves "
        "on: s<sub>t−1</sub> becomes s<sub>t</sub>. Attention can ask before this move or after it.",
        f"<b>Bahdanau</b> ({cited('bahdanau')}) asks first, with s<sub>t−1</sub>. It cannot ask with s<sub>t</sub>: "
        "s<sub>t</sub> does not exist yet, because it is made from the context c<sub>t</sub>.",
        f"<b>Luong</b> ({cited('luong')}) moves first and asks with the new state s<sub>t</sub>. The context is joined "
        "to it afterwards, in the attentional vector h̃<sub>t</sub>, from which the token is chosen.",
    ),
    {
        "s_t−1": "the decoder’s state before step t",
        "s_t": "its state after reading the token y_t−1",
        "c_t": "the context: the weighted mean of the encoder’s states",
        "y_t": "the token that step t writes",
        "h̃_t": "Luong’s attentional vector tanh(W [c_t; s_t]): context and state joined, times a learnt matrix W",
    },
    "At step t, which token does Luong’s query know that Bahdanau’s does not?",
    "y<sub>t−1</sub>, the token written just before. Luong’s state has read it when it asks. Bahdanau’s query is "
    "older: it knows the text up to y<sub>t−2</sub>, and y<sub>t−1</sub> comes in together with the context. So a "
    "Bahdanau row may still lean towards the word that has just been written.",
    "inside",
    state(*MECHANISMS, target="One text for all: typed", force=TRANSLATION, step=str(STEP + 1)),
    "Go through the steps of both models on the same words.",
    draw,
)
