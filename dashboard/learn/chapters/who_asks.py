"""Chapters 4 and 12: which state is the query: Bahdanau beside Luong on the same words; and the roles of query, key and
value."""

from attnviz.export import heading
from attnviz.figures.inside import score_bars
from dashboard.browser.plot import Cell, named
from dashboard.inside import caches
from dashboard.inside.pictures import steps_in_order
from dashboard.inside.scene import Column
from dashboard.learn.chapter import FORCED, SENTENCE, TRANSLATION, Drawn, column, read, state
from dashboard.markup import tables

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


ORDER = read(
    "who-asks",
    "inside",
    state(*MECHANISMS, **FORCED, step=str(STEP + 1)),
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
ROLES = read(
    "roles",
    "inside",
    state(*ROLES_OF, **FORCED, step=str(STEP + 1)),
    draw_roles,
)
