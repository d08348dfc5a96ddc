"""Chapters 4 and 12: which state is the query: Bahdanau beside Luong on the same words; and the roles of query, key and
value."""

from attnviz.export import heading
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


def draw_order(dark: bool) -> Drawn:
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
    rows = tables.of_numbers(tables.numbered(steps[0].keys), zip(*(step.weights for step in steps)), ".3f")
    return tables.table(f"Weights of step {STEP + 1}", [shown.title for shown in columns], rows)


ORDER = Chapter(
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
    draw_order,
)


def draw_roles(dark: bool) -> Drawn:
    """Query, key and value in three models at one step: a table, and the resulting weights."""
    columns = [column(name, SENTENCE, TRANSLATION) for name in ROLES_OF]
    opened = [caches.step(shown, STEP) for shown in columns]
    rows = [
        (shown.title, [*ROLES_OF[shown.mechanism.name], f"{len(step.query)}", f"{step.values.shape[1]}"])
        for shown, step in zip(columns, opened)
    ]
    named_roles = ["query", "keys", "values", "width of the query", "width of a value"]
    table = tables.table(f"Step {STEP + 1} of three models", named_roles, rows)
    cells: list[Cell] = [Cell(f"<h4>Who is what</h4>{table}"), *(Cell(*_scores(shown, dark)) for shown in columns)]
    return Drawn(cells, _table(columns))


ROLES_OF = {  # mechanism -> what asks, what answers, what is read
    "bahdanau": ("decoder state before", "encoder states", "the same"),
    "luong-general": ("decoder state after", "encoder states", "the same"),
    "transformer": ("target token, projected", "source tokens, projected", "projected otherwise"),
}
ROLES = Chapter(
    "roles",
    (
        "Attention has three roles. A <b>query</b> asks. Each <b>key</b> answers with a score how well it fits. Each "
        "<b>value</b> is what is read, in proportion to its weight. The words are of the Transformer "
        f"({cited('vaswani')}); the roles are in all models.",
        f"<b>Bahdanau</b> ({cited('bahdanau')}): the query is the decoder’s state s<sub>t−1</sub>, keys and values are "
        "the same vectors, the annotations h<sub>j</sub>. The score is v · tanh(W s<sub>t−1</sub> + U h<sub>j</sub>): "
        "a sum of two projections in a small network, not a sum of input and hidden state alone.",
        f"<b>Luong</b> ({cited('luong')}): the query is the new state s<sub>t</sub>; keys and values are h<sub>j</sub> "
        "again. With <i>general</i> the key is W h<sub>j</sub>.",
        "<b>Transformer</b>: query, key and value are three projections with matrices of their own. What is compared "
        "(k) may differ from what is read (v).",
    ),
    {
        "q, k_j, v_j": "query, key and value",
        "s_t−1, s_t": "the decoder’s state before and after the step",
        "h_j": "the encoder’s state at source token j",
        "W, U, v": "what is learnt of Bahdanau’s score; v is a vector here",
        "W^Q, W^K, W^V": "the three projections of a head",
    },
    "Bahdanau’s keys and values are the same vectors. What can a Transformer do that this cannot?",
    "Look for one thing and take another. A key can say “I am the subject”, while the value brings the meaning of the "
    "word. With one vector for both, what makes a token easy to find is also what is read.",
    "inside",
    state(*ROLES_OF, target="One text for all: typed", force=TRANSLATION, step=str(STEP + 1)),
    "See query, keys, scores, weights and context of one step in all three, with every number.",
    draw_roles,
)
