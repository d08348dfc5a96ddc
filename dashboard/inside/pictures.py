"""The pictures of one step of a model, and their text equivalents. Rows of the page; its columns are the models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from attnviz import inside, mechanisms
from attnviz.figures import labels, step_bars
from attnviz.figures.inside import reference_words, score_bars, score_parts, weighted_values
from attnviz.inside import Step
from attnviz.inside.values import MEAN
from attnviz.trace import Token
from dashboard.browser.plot import Cell, named
from dashboard.inside.scene import Column
from dashboard.markup import tables
from dashboard.markup.text import escape, in_language

ASKS = {  # with the token before this one
    "before": "The query is the decoder’s state <b>before</b> this step. It has not yet read {}. The decoder reads "
    "that afterwards, together with the context.",
    "after": "The decoder first reads {}. The query is its state <b>after</b> that.",
    "layer": "This layer reads the target so far, up to {}. The query is its state, times the head’s query matrix.",
    "own": "This layer reads the text so far, up to {}. The query is its state, times the head’s query matrix. Keys "
    "and values are of the same text. How positions enter is the family’s own.",
    "text": "This layer reads the text so far, up to {}. The query is its state, times the head’s query matrix, "
    "rotated by its position. Keys and values are of the same text.",
}
OF_MEAN = (
    "The mean of heads has weights, but no query, scores and context: each head has its own. Choose a head on the left "
    "to open them."
)
_DIMENSIONS = 10  # of a table
# what asks (as `inside.Step.asks`) -> what happens, in order; the box with True is the question
_ORDERS: dict[str, tuple[tuple[str, str, bool], ...]] = {
    "before": (
        ("sₜ₋₁", "the state before this step", False),
        ("asks", "query = sₜ₋₁", True),
        ("cₜ", "weights, then the context", False),
        ("sₜ", "the state steps: it reads yₜ₋₁ and cₜ", False),
        ("yₜ", "the token", False),
    ),
    "after": (
        ("sₜ₋₁", "the state before this step", False),
        ("sₜ", "the state steps first: it reads yₜ₋₁", False),
        ("asks", "query = sₜ", True),
        ("cₜ", "weights, then the context", False),
        ("yₜ", "the token", False),
    ),
    "layer": (
        ("y₁ … yₜ₋₁", "the text so far", False),
        ("sₜ", "its state in this layer", False),
        ("asks", "query q = W sₜ, of one head", True),
        ("cₜ", "weights, then the context", False),
        ("yₜ", "the token, after all layers", False),
    ),
}
_ORDERS["text"] = tuple(
    ("y₁ … yₜ₋₁", "the text so far, prompt included", asking) if symbol.startswith("y₁") else (symbol, words, asking)
    for symbol, words, asking in _ORDERS["layer"]
)


@dataclass(frozen=True, eq=False)
class Opened:
    """A model's step, with one score (`key`) split into terms against `reference`; step : None if there is none,
    explained by `problem`. mean : the number of a step with only mean weights."""

    column: Column
    step: Step | None
    key: int
    temperature: float
    reference: str = MEAN
    problem: str = ""
    mean: int | None = None

    @property
    def heat(self) -> str:
        """The temperature as a note in a heading; "" at 1."""
        return f", at temperature {self.temperature:g}" if self.temperature != 1 else ""


def cells(opened: Sequence[Opened], dark: bool) -> list[Cell]:
    """Row by row: each picture of all models, then the next."""
    rows = (who_asks, scores_cell, parts_cell, values_cell, next_tokens)
    unopened = {who_asks: _ended, scores_cell: _mean_weights}
    return [
        row(shown, dark) if shown.step else unopened.get(row, _nothing)(shown, dark) for row in rows for shown in opened
    ]


def _nothing(shown: Opened, dark: bool) -> Cell:
    return Cell("<p></p>")


def _ended(shown: Opened, dark: bool) -> Cell:
    problem = escape(f"{shown.column.title}{shown.column.place}: {shown.problem}")
    return Cell(f'{_heading(shown, "")}<p class="what" role="status">{problem}</p>')


def _mean_weights(shown: Opened, dark: bool) -> Cell:
    if shown.mean is None:
        return _nothing(shown, dark)
    figure = step_bars(shown.column.grid(shown.column.trace), shown.mean, dark=dark)
    words = f"weights{', mean of heads' if shown.column.head is None else ''}"
    words += ", at temperature 1" if shown.temperature != 1 else ""
    return Cell(_heading(shown, words), named(figure, f"mean weights {shown.column.title}", dark))


def _heading(shown: Opened, words: str) -> str:
    name = escape(shown.column.title)
    return f"<h4>{name}{': ' if words else ''}{words}</h4>"


def who_asks(shown: Opened, dark: bool) -> Cell:
    """The query, in words and as a row of boxes."""
    step, column = shown.step, shown.column
    token = in_language(labels.shown(column.trace.target)[step.step], column.languages.target, "b")
    window = ""
    if step.window:
        window = (
            f" It predicts the place {step.window.centre + 1:.1f} in the source and looks {step.window.reach:g} "
            "tokens to either side."
        )
    words = f"Step {step.step + 1} of {escape(column.title)} writes {token}{column.place}. "
    asks = "own" if step.asks == "text" and step.scaling is not None else step.asks  # a model of the library
    words += f"{ASKS[asks].format(_before(shown))}{window}"
    return Cell(f'{_heading(shown, "who asks")}<p class="what" role="status">{words}</p>{steps_in_order(step.asks)}')


def steps_in_order(asks: str) -> str:
    """The order in which a decoder steps and attends, as a row of boxes; HTML.

    asks : "before" (Bahdanau), "after" (Luong) or "layer" (a Transformer). KeyError for any other value.
    """
    boxes = "".join(
        f"<li{' class=asking' if asking else ''}><b>{escape(symbol)}</b><span>{escape(words)}</span></li>"
        for symbol, words, asking in _ORDERS[asks]
    )
    return f'<ol class="order" aria-label="Order of one step">{boxes}</ol>'


def _before(shown: Opened) -> str:
    """The token before that of the step, which the decoder reads; HTML."""
    if not shown.step.step:
        start = shown.column.trace.start
        return f"<b>{escape(start.text)}</b>, {'the sign of the start' if start.special else 'the first token'}"
    token = labels.shown(shown.column.trace.target)[shown.step.step - 1]
    return f"{in_language(token, shown.column.languages.target, 'b')}, the token before"


def scores_cell(shown: Opened, dark: bool) -> Cell:
    figure = score_bars(shown.step, temperature=shown.temperature, dark=dark)
    measured = inside.temperatures(shown.step, (1.0, shown.temperature))["entropy_nats"]
    words = f"Entropy of the weights: {measured[0]:.2f} nats."
    if shown.temperature != 1:
        words += f" At temperature {shown.temperature:g}: {measured[1]:.2f} nats."
    if mechanisms.was_added(shown.step.mechanism):  # it says what stands in the place of scores, if it shows none
        words += f" {escape(mechanisms.find(shown.step.mechanism).words)}"
    heading = _heading(shown, "scores become weights")
    name = f"scores and weights {shown.column.title}"
    return Cell(f'{heading}<p class="what">{words}</p>', named(figure, name, dark))


def parts_cell(shown: Opened, dark: bool) -> Cell:
    step, token = shown.step, escape(labels.quoted(shown.step.keys, shown.key))
    words = f"why the score of {token} is high or low"
    compared = step.compared(shown.key, shown.reference)
    other = escape(reference_words(step, compared))
    constant = "the mean of their scores" if compared.other is None else f"the score of {other}"
    below = f"The score is a sum over {step.parts.words}. Bars: how far each term is from that of {other}."
    if step.parts.whole:
        start = other if compared.other is None else constant
        below = "This attention does not give its score as a sum, so it is one number. "
        below += f"The bar: how far it is from {start}."
    below += f" The constant part is {constant}. It is in every token’s score, so the softmax does not see it."
    figure = score_parts(step, shown.key, reference=shown.reference, dark=dark)
    name = f"one score taken apart {shown.column.title}"
    return Cell(f'{_heading(shown, words)}<p class="what">{below}</p>', named(figure, name, dark))


def values_cell(shown: Opened, dark: bool) -> Cell:
    reader = "layer" if shown.column.writes else "decoder"
    words = f'<p class="what">Each value times its weight; the last row is their sum, which the {reader} reads.</p>'
    step = shown.step.at_temperature(shown.temperature)
    figure = named(weighted_values(step, dark=dark), f"weighted values {shown.column.title}", dark)
    return Cell(_heading(shown, f"weighted values make the context{shown.heat}") + words, figure)


def next_tokens(shown: Opened, dark: bool) -> Cell:
    rows = [(labels.plain(choice.text), [f"{choice.probability:.4f}"]) for choice in shown.step.alternatives]
    table = tables.table("The most probable next tokens", ["probability"], rows, (shown.column.languages.target, "en"))
    if shown.temperature == 1:
        return Cell(_heading(shown, "what comes next") + table)
    note = "The slider does not change these probabilities. To decode with another temperature, see “Change attention”."
    pale = f'<p class="what">{note}</p><div class="pale">{table}</div>'
    return Cell(_heading(shown, "what comes next, at temperature 1") + pale)


def tables_of(shown: Opened) -> str:
    """The text equivalents of the charts of a model."""
    if shown.mean is not None:
        return _mean_table(shown)
    if shown.step is None:
        return ""
    return _scores_table(shown) + _parts_table(shown) + _values_table(shown)


def frame(shown: Opened) -> pd.DataFrame | None:
    """One row per source token, for saving: positions count from 0; head None is the mean of heads; at a temperature
    other than 1 there are both weights. None for a model without this step."""
    if shown.step is None:
        return _mean_frame(shown)
    step = shown.step
    numbers = {"visible": step.mask, "score": step.scores, "weight": step.weights}
    if shown.temperature != 1:
        numbers |= {"temperature": shown.temperature, "weight_at_temperature": step.weights_at(shown.temperature)}
    return _rows(step.model, (step.step, step.layer, step.head), step.keys, numbers)


def _mean_frame(shown: Opened) -> pd.DataFrame | None:
    if shown.mean is None:
        return None
    grid = shown.column.grid(shown.column.trace)
    numbers = {"visible": grid.visible[shown.mean], "score": np.nan, "weight": grid.weights[shown.mean]}
    head = pd.NA if shown.column.head is None else shown.column.head
    return _rows(shown.column.model, (shown.mean, grid.layer, head), grid.keys, numbers)


def _rows(model: str, place: tuple, keys: Sequence[Token], numbers: dict) -> pd.DataFrame:
    """place : step, layer and head. numbers : columns."""
    step, layer, head = place
    columns = {"model": model, "step": step, "layer": layer, "head": head, "key": range(len(keys))}
    frame = pd.DataFrame(columns | {"token": [token.text for token in keys]} | numbers)
    return frame.astype({"layer": "Int64", "head": "Int64"})


def _mean_table(shown: Opened) -> str:
    grid, languages = shown.column.grid(shown.column.trace), shown.column.languages
    rows = tables.of_numbers(tables.numbered(grid.keys), grid.weights[shown.mean, :, None].tolist(), ".4f")
    caption = f"{shown.column.title}: weights of this step{', mean of heads' if shown.column.head is None else ''}"
    return tables.table(caption, ["weight"], rows, (languages.source, "en"))


def _scores_table(shown: Opened) -> str:
    step = shown.step
    columns = {"score": np.where(step.mask, step.scores, np.nan), "weight": step.weights}
    if shown.temperature != 1:
        columns[f"weight at temperature {shown.temperature:g}"] = step.weights_at(shown.temperature)
    if step.window:
        columns["Gaussian"] = step.window.gaussian
    rows = tables.of_numbers(tables.numbered(step.keys), zip(*columns.values()), ".4f")
    caption = f"{shown.column.title}: scores and weights of this step"
    return tables.table(caption, list(columns), rows, (shown.column.languages.source, "en"))


def _parts_table(shown: Opened) -> str:
    step = shown.step
    compared = step.compared(shown.key, shown.reference)
    largest = {step.parts.name(number): value for number, value in compared.largest(_DIMENSIONS)}
    rows = tables.of_numbers(["constant part", *largest], [[compared.constant], *zip(largest.values())], "+.4f")
    caption = (
        f"{shown.column.title}: the score of {labels.quoted(step.keys, shown.key)}, its largest differences from "
        f"{reference_words(step, compared)}"
    )
    return tables.table(caption, ["difference"], rows)


def _values_table(shown: Opened) -> str:
    """The dimensions with the largest absolute context, one per column."""
    step = shown.step.at_temperature(shown.temperature)
    order = abs(step.context).argsort()[::-1][:_DIMENSIONS].tolist()
    numbers = [*step.weighted[:, order].tolist(), step.context[order].tolist()]
    rows = tables.of_numbers([*tables.numbered(step.keys), "context"], numbers, "+.3f")
    caption = f"{shown.column.title}: weighted values and their sum, in the {len(order)} largest dimensions{shown.heat}"
    return tables.table(caption, [f"dimension {number + 1}" for number in order], rows)
