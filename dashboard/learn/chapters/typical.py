"""Chapter 7: typical patterns, each with the head of this project's Transformer that shows it most."""

import html

from attnviz import heads, patterns
from attnviz.figures import heatmap
from attnviz.heads import Head
from attnviz.patterns import PATTERNS
from attnviz.select import select
from dashboard.browser.plot import Cell, named
from dashboard.choices.options import KINDS
from dashboard.learn.chapter import Chapter, Drawn
from dashboard.learn.models import SENTENCE, column, heads_state
from dashboard.markup import tables

SHOWN = ("current", "previous", "next", "separator", "broad")
KIND = "encoder"


def draw(dark: bool) -> Drawn:
    trace = column("transformer", SENTENCE).trace
    table, chance = heads.table(trace, KIND), patterns.chance(trace, KIND)
    cells, rows = [], []
    for name in SHOWN:
        best = heads.most_like(table, name, 1).iloc[0]
        head = Head(KIND, int(best["layer"]), int(best["head"]))
        cells.append(_cell(trace, name, head, float(best[name]), chance[name], dark))
        rows.append((PATTERNS[name].title, [_named(head), f"{best[name]:.2f}", f"{chance[name]:.2f}"]))
    columns = ["head", "score", "score of uniform attention"]
    return Drawn(cells, tables.table("The head most like each pattern", columns, rows))


def _cell(trace, name: str, head: Head, score: float, chance: float, dark: bool) -> Cell:
    pattern = PATTERNS[name]
    words = (
        f"<h4>{html.escape(pattern.title)}: {_named(head)}</h4>"
        f'<p class="small">It looks at {html.escape(pattern.words)}. '
        f"Score {score:.2f}; uniform attention {chance:.2f}.</p>"
    )
    grid = select(trace, KIND, head.layer, head.head)
    return words, named(heatmap(grid, dark=dark), f"pattern {pattern.title}", dark)


def _named(head: Head) -> str:
    return f"layer {head.layer + 1}, head {head.head + 1}"


CHAPTER = Chapter(
    "patterns",
    (
        "Many heads do something simple. Below are the heads of the Transformer’s encoder that are most like each of "
        "five patterns, on this sentence. They are found by measuring, not chosen by hand.",
        "The <b>score</b> is the share of a head’s weight that fits the pattern: 1 is a perfect fit. Beside it stands "
        "the score of uniform attention, because a short sentence makes some patterns easy. A head that is hardly "
        "above it does not show the pattern.",
        "A pattern is a description of where a head looks. Whether the model needs the head is another question; "
        "switch it off to ask.",
    ),
    {
        "a_qk": "the weight of key k in the row of query q",
        "u_qk": "the pattern: the largest weight that counts in that cell",
        "score": "(1/Q) Σ_q Σ_k min(a_qk, u_qk), over Q queries",
    },
    "Why would a head put most of its weight on <code>&lt;eos&gt;</code>, a token without a meaning?",
    "A row must sum to 1, so a head cannot look at nothing. When what it looks for is not in the sentence, it needs a "
    "place to rest. A token that is always there and whose value changes little does no harm. Clark et al. (2019) "
    "call it a no-op.",
    "heads",
    heads_state(kind=KINDS[KIND], pattern=PATTERNS["previous"].title),
    "Search for other patterns, and switch heads off.",
    draw,
)
