"""Chapters 6 and 7: heads, and typical patterns, each with the Transformer's head of the highest score."""

from dataclasses import dataclass

from attnviz import heads, patterns, syntax
from attnviz.export import heading
from attnviz.figures import heatmap, overview
from attnviz.figures.arcs import dependency_arcs
from attnviz.figures.chart import Chart
from attnviz.heads import Head
from attnviz.patterns import PATTERNS
from attnviz.select import Grid, select
from attnviz.trace import Trace
from dashboard.browser.plot import Cell, named
from dashboard.choices.options import KINDS
from dashboard.heads.syntax import question, rows_of_model
from dashboard.learn.chapter import SENTENCE, TRANSLATION, Drawn, column, heads_state, read
from dashboard.markup import tables
from dashboard.markup.text import escape, hatched
from dashboard.session import caches

OPENED = ((0, 0), (2, 0))  # layer and head, from 0


def draw_heads(dark: bool) -> Drawn:
    shown = column("transformer", SENTENCE, TRANSLATION)
    words = (
        '<h4>Every head of the cross-attention</h4><p class="small">A row of small maps for each layer, a column for '
        "each head.</p>"
    )
    lines = heading.of_trace("Every head of the cross-attention", shown.trace)
    cells: list[Cell] = [(words, named(overview(shown.trace, "cross", dark=dark), "all heads", dark, lines=lines))]
    grids = [select(shown.trace, "cross", layer, head) for layer, head in OPENED]
    cells += [(_words(grid), _map(shown.trace, grid, dark)) for grid in grids]
    equivalents = [tables.grid_table(f"Weights of {grid.title.capitalize()}", grid, shown.languages) for grid in grids]
    return Drawn(cells, _all_heads(shown.trace) + "".join(equivalents))


def _all_heads(trace: Trace) -> str:
    """The text equivalent of the small maps: how sharply each head looks."""
    sharpness = [attention.weights.max(-1).mean(-1) for attention in trace.maps if attention.kind == "cross"]
    rows = tables.of_numbers([f"layer {number + 1}" for number in range(len(sharpness))], sharpness, ".2f")
    columns = [f"head {number + 1}" for number in range(len(sharpness[0]))]
    return tables.table("The largest weight of a row in each head, mean over the rows", columns, rows)


def _words(grid: Grid) -> str:
    """The sharpness of the head in words, for comparing two heads."""
    sharpest = grid.weights.max(-1).mean()
    words = f"On average the largest weight of a row is {sharpest:.2f}."
    return f'<h4>{grid.title.capitalize()}</h4><p class="small">{words}</p>'


def _map(trace: Trace, grid: Grid, dark: bool) -> Chart:
    return named(heatmap(grid, dark=dark), grid.title.capitalize(), dark, lines=heading.of_map(trace, grid))


HEADS = read("heads", "heads", heads_state(kind=KINDS["cross"], layer="3", head="1"), draw_heads)


SHOWN = {  # pattern -> where a head of it looks
    "current": "the token at the query’s own place (in the decoder, the token written last)",
    "previous": "the token before the query’s own",
    "next": "the token after the query’s own",
    "first": "the first token (in the decoder <bos>, the sign of the start)",
    "broad": "all tokens that it can see, evenly",
}
LINKED = "previous", Head("encoder", 1, 2)  # a pattern, and the head that shows it most
KINDS_SEARCHED = ("encoder", "decoder")  # self-attention: in it every pattern has a meaning


@dataclass(frozen=True)
class Best:
    """The head with the highest score for a pattern, its score, and that of uniform attention."""

    head: Head
    score: float
    chance: float


def draw_typical(dark: bool) -> Drawn:
    trace = column("transformer", SENTENCE).trace
    heads_shown = {name: best(trace, name) for name in SHOWN}
    cells = [_cell(trace, name, shown, dark) for name, shown in heads_shown.items()]
    cells += _syntactic(trace, dark)
    rows = [
        (PATTERNS[name].title, [_named(shown.head), f"{shown.score:.2f}", f"{shown.chance:.2f}"])
        for name, shown in heads_shown.items()
    ]
    columns = ["head", "score", "score of uniform attention"]
    return Drawn(cells, tables.table("The head most like each pattern", columns, rows))


def best(trace: Trace, name: str) -> Best:
    """Of the self-attention of encoder and decoder: the head that is furthest above uniform attention."""
    candidates = []
    for kind in KINDS_SEARCHED:
        chance = patterns.chance(trace, kind, [PATTERNS[name]])[name]
        # none can follow some patterns
        for row in heads.most_like(heads.table(trace, kind), name, 1).to_dict("records"):
            candidates.append(Best(Head(kind, int(row["layer"]), int(row["head"])), float(row[name]), chance))
    return max(candidates, key=lambda shown: shown.score - shown.chance)


def _cell(trace: Trace, name: str, shown: Best, dark: bool) -> Cell:
    pattern, head = PATTERNS[name], shown.head
    grid = select(trace, head.kind, head.layer, head.head)
    words = (
        f"<h4>{escape(pattern.title)}: {_named(head)}</h4>"
        f'<p class="small">It looks at {escape(SHOWN[name])}. '
        f"Score {shown.score:.2f}; uniform attention {shown.chance:.2f}.{hatched(grid)}</p>"
    )
    title, *texts = heading.of_map(trace, grid)
    lines = [title, f"The head most like the pattern “{pattern.title}”", *texts]
    return words, named(heatmap(grid, dark=dark), f"pattern {pattern.title}", dark, lines=lines)


def _syntactic(trace: Trace, dark: bool) -> list[Cell]:
    """The head that the study of syntax found furthest above the best fixed offset; none without the study."""
    rows = rows_of_model(caches.study("syntax"), trace.model)
    parse = syntax.examples().get(trace.text)
    if rows.empty or parse is None:
        return []
    best_row = rows.loc[(rows["share"] - rows["baseline"]).idxmax()]
    head = Head("encoder", int(best_row["layer"]), int(best_row["head"]))
    looks = syntax.looks(trace, parse, layer=head.layer)[head.head]
    words = (
        f"<h4>Syntax: {_named(head)}</h4>"
        '<p class="small">In the parsed sentences it looks most from '
        f"{question(best_row['relation'], best_row['direction'])} in {best_row['share']:.0%} of "
        f"{best_row['count']} cases; the best fixed distance is right in {best_row['baseline']:.0%}. A solid arc: one "
        "of its two words looks most at the other.</p>"
    )
    lines = heading.of_trace(f"Dependencies, {_named(head)}", trace)
    return [(words, named(dependency_arcs(parse, looks, dark=dark), "syntax", dark, lines=lines))]


def _named(head: Head) -> str:
    return f"{head.kind}, {head.title}"


TYPICAL = read(
    "patterns",
    "heads",
    heads_state(
        kind=KINDS["encoder"],
        order=PATTERNS[LINKED[0]].title,
        layer=str(LINKED[1].layer + 1),
        head=str(LINKED[1].head + 1),
        pattern=PATTERNS[LINKED[0]].title,
    ),
    draw_typical,
)
