"""Chapter 6: heads, with all cross-attention of the Transformer and two of its heads."""

from attnviz.export import heading
from attnviz.figures import heatmap, overview
from attnviz.figures.chart import Chart
from attnviz.select import Grid, select
from attnviz.trace import Trace
from dashboard.browser.plot import Cell, named
from dashboard.choices.options import KINDS
from dashboard.learn.chapter import SENTENCE, TRANSLATION, Chapter, Drawn, column, heads_state
from dashboard.markup import tables
from dashboard.markup.terms import cited

SHOWN = ((0, 0), (2, 0))  # layer and head, from 0


def draw(dark: bool) -> Drawn:
    shown = column("transformer", SENTENCE, TRANSLATION)
    words = (
        '<h4>Every head of the cross-attention</h4><p class="small">A row of small maps for each layer, a column for '
        "each head.</p>"
    )
    lines = heading.of_trace("Every head of the cross-attention", shown.trace)
    cells: list[Cell] = [(words, named(overview(shown.trace, "cross", dark=dark), "all heads", dark, lines=lines))]
    grids = [select(shown.trace, "cross", layer, head) for layer, head in SHOWN]
    cells += [(_words(grid), _map(shown.trace, grid, dark)) for grid in grids]
    equivalents = [
        tables.grid_table(f"Weights of {_name(grid)}", grid, shown.languages, grid.weights, ".2f") for grid in grids
    ]
    return Drawn(cells, _all_heads(shown.trace) + "".join(equivalents))


def _all_heads(trace: Trace) -> str:
    """The text equivalent of the small maps: how sharply each head looks."""
    layers = [attention.weights for attention in trace.maps if attention.kind == "cross"]
    rows = [
        (f"layer {number}", [f"{weights.max(-1).mean():.2f}" for weights in heads])
        for number, heads in enumerate(layers, 1)
    ]
    columns = [f"head {number}" for number in range(1, len(layers[0]) + 1)]
    return tables.table("The largest weight of a row in each head, mean over the rows", columns, rows)


def _words(grid: Grid) -> str:
    """How sharply the head looks, so that two can be compared."""
    sharpest = grid.weights.max(-1).mean()
    return f'<h4>{_name(grid)}</h4><p class="small">On average the largest weight of a row is {sharpest:.2f}.</p>'


def _map(trace: Trace, grid: Grid, dark: bool) -> Chart:
    return named(heatmap(grid, dark=dark), _name(grid), dark, lines=heading.of_map(trace, grid))


def _name(grid: Grid) -> str:
    return f"Layer {grid.layer + 1}, head {grid.head + 1}"


CHAPTER = Chapter(
    "heads",
    (
        f"The Transformer ({cited('vaswani')}) has no recurrent state. In each layer, every token makes a "
        "<b>query</b> q = W<sup>Q</sup> x, and every token that may be read makes a <b>key</b> k = W<sup>K</sup> x "
        "and a <b>value</b> v = W<sup>V</sup> x. Scores are q · k / √d.",
        "A layer does this several times side by side, each time with matrices of its own. Each is a <b>head</b>. "
        "Their contexts are joined and mixed.",
        "There are three kinds: the encoder’s <b>self-attention</b> (source to source), the decoder’s (target to the "
        "target so far), and <b>cross-attention</b> (target to source), which is what the recurrent models have too.",
    ),
    {
        "x": "the vector of a token in this layer",
        "q, k, v": "query, key and value of a token in one head",
        "W^Q, W^K, W^V": "the matrices of a head, learnt",
        "d": "the width of a head",
    },
    "Would one head of four times the width do the same as four heads?",
    "No. One head has one softmax, so one row of weights for each query: it can look at one place sharply, or at "
    "several with a blurred mean. Four heads have four rows and can look sharply at four places at once. The work is "
    "the same.",
    "heads",
    heads_state(kind=KINDS["cross"], layer="3", head="1"),
    "Look through the heads; click a small map to open it.",
    draw,
)
