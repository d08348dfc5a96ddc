"""Chapters 10, 13 and 14: masks; rows, columns and symmetry; and self-attention in a sentence."""

import numpy as np

from attnviz.export import heading
from attnviz.figures import difference, heatmap, labels, step_bars
from attnviz.inside import Step
from attnviz.inside.values import softmax
from attnviz.select import Grid, select
from attnviz.trace import Trace
from attnviz.trace.arrays import from_arrays
from dashboard.browser.plot import Cell, named
from dashboard.choices.options import KINDS, preset_title
from dashboard.inside import caches as steps
from dashboard.learn.chapter import SENTENCE, TRANSLATION, Drawn, column, heads_state, read
from dashboard.markup import tables
from dashboard.markup.text import hatched
from dashboard.session import caches

PADS = 5  # beside a sentence
LAYER, HEAD = 1, 2  # of the encoder, from 0: it looks at the token before
BOTH_WAYS = 0, 1  # layer and head of the encoder that looks back and ahead
WRITER = "en/writer"


def _cell(trace: Trace, grid: Grid, title: str, words: str, dark: bool) -> Cell:
    figure = named(heatmap(grid, dark=dark), title, dark, lines=[title, *heading.of_map(trace, grid)])
    return Cell(f'<h4>{title}</h4><p class="small">{words}{hatched(grid)}</p>', figure)


def draw_masks(dark: bool) -> Drawn:
    """A causal map, and one step with padding, with and without the mask."""
    shown = column("transformer", SENTENCE, TRANSLATION)
    causal = select(shown.trace, "decoder", 0, 0)
    words = "A row sees the tokens that were written before it, and nothing after."
    cells = [_cell(shown.trace, causal, "The decoder’s self-attention", words, dark)]
    recurrent = column("luong-general", SENTENCE, TRANSLATION)
    opened = [steps.step(recurrent, place) for place in range(len(recurrent.trace.target))]
    step = max(opened, key=lambda shown_step: _lost(padded(shown_step, masked=False)))
    rows = []
    for title, masked in (("With a mask", True), ("Without a mask", False)):
        grid = padded(step, masked)
        lost = _lost(grid)
        words = f"Weight on padding: {lost:.2f}."
        lines = heading.of_trace(title, recurrent.trace)
        figure = named(step_bars(grid, 0, dark=dark), f"{title}, with padding", dark, lines=lines)
        above = f"<h4>{title}: step {step.step + 1} of Luong general</h4>"
        cells.append(Cell(f'{above}<p class="small">{words}</p>', figure))
        rows.append((title, [f"{lost:.3f}", f"{grid.weights[0, :-PADS].max():.3f}"]))
    table = tables.table("One step with padding", ["weight on padding", "largest weight of a word"], rows)
    return Drawn(cells, table + tables.grid_table("Weights", causal, shown.languages))


def padded(step: Step, masked: bool) -> Grid:
    """The weights of a step when PADS pads stand after the sentence. The state of a pad is a vector of zeros, so its
    score, a product, is 0."""
    scores = np.concatenate([step.scores, np.zeros(PADS)])
    weights = softmax(scores, np.arange(len(scores)) < len(step.scores) if masked else np.ones(len(scores), bool))
    names = [*labels.shown(step.keys), *["<pad>"] * PADS]
    written = [step.token.text]
    return select(
        from_arrays({"cross": [weights[None, None]]}, names, written, special=["<pad>"], name="Luong general")
    )


def _lost(grid: Grid) -> float:
    """The weight on pads."""
    return float(grid.weights[0, -PADS:].sum())


def draw_rows(dark: bool) -> Drawn:
    """Rows and columns of a map of cross-attention, and a map of self-attention minus its transpose."""
    cross = column("bahdanau", SENTENCE, TRANSLATION)
    grid = select(cross.trace)
    words = (
        f"Each row sums to 1. The columns sum to {grid.weights.sum(0).min():.2f} to {grid.weights.sum(0).max():.2f}."
    )
    cells = [_cell(cross.trace, grid, "Cross-attention of Bahdanau", words, dark)]
    own = column("transformer", SENTENCE, TRANSLATION)
    square = select(own.trace, "encoder", LAYER, HEAD)
    cells.append(_cell(own.trace, square, "Self-attention of the encoder", "The same tokens on both sides.", dark))
    turned = square.weights - square.weights.T
    query, key = np.unravel_index(turned.argmax(), turned.shape)
    names = labels.shown(square.keys)
    weight, opposite = square.weights[query, key], square.weights[key, query]
    words = (
        f"‘{labels.plain(names[query])}’ gives ‘{labels.plain(names[key])}’ {weight:.2f}; the other way it is "
        f"{opposite:.2f}. A symmetric map would be 0 everywhere."
    )
    figure = difference(turned, square, ("weights", "mirrored"), dark=dark)
    lines = heading.of_trace("A map minus the same with rows and columns exchanged", own.trace)
    above = f'<h4>How far it is from symmetric</h4><p class="small">{words}</p>'
    cells.append(Cell(above, named(figure, "not symmetric", dark, lines=lines)))
    sums = tables.of_numbers(labels.shown(grid.keys), grid.weights.sum(0)[:, None].tolist(), ".2f")
    columns = tables.table("Sum of each column of Bahdanau’s map", ["sum"], sums)
    return Drawn(cells, columns + tables.grid_table("Self-attention", square, own.languages))


def draw_itself(dark: bool) -> Drawn:
    """The same sentence in an encoder, which sees all of it, and in a model that writes, which sees only earlier
    tokens."""
    both = column("transformer", SENTENCE, TRANSLATION)
    encoder = select(both.trace, "encoder", *BOTH_WAYS)
    writer = caches.trace(WRITER, SENTENCE)
    decoder = select(writer, "decoder", 0, 0)
    cells = [
        _cell(both.trace, encoder, "Bidirectional: the Transformer’s encoder", _after(encoder), dark),
        _cell(writer, decoder, "Causal: a model that writes", _after(decoder), dark),
    ]
    shares = [(name, [f"{_share_after(grid):.2f}"]) for name, grid in (("bidirectional", encoder), ("causal", decoder))]
    table = tables.table("Mean weight on tokens after the query’s own", ["weight"], shares)
    return Drawn(cells, table + tables.grid_table("Bidirectional", encoder, both.languages))


def _share_after(grid: Grid) -> float:
    """The mean weight of a row on the tokens after its own."""
    return float(np.triu(grid.weights, 1).sum(1).mean())


def _after(grid: Grid) -> str:
    return f"On average {_share_after(grid):.2f} of the weight of a row is on tokens after its own."


MASKS = read("masks", "train", {"preset": preset_title("future")}, draw_masks)
ROWS = read(
    "rows-columns", "heads", heads_state(kind=KINDS["encoder"], layer=str(LAYER + 1), head=str(HEAD + 1)), draw_rows
)
ITSELF = read(
    "looks-at-itself",
    "heads",
    heads_state(kind=KINDS["encoder"], **{name: str(i + 1) for name, i in zip(("layer", "head"), BOTH_WAYS)}),
    draw_itself,
)
