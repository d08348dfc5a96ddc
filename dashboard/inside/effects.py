"""The effect of a change: both translations, both maps, and each target token. One column per model."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Protocol

import numpy as np
import pandas as pd
import streamlit as st

from attnviz import figures
from attnviz.figures.chart import Chart
from attnviz.figures.what_if import effect_bars
from attnviz.figures.wording import signed
from attnviz.trace import Token, Trace
from dashboard.browser.plot import Cell, named, plots
from dashboard.inside import downloads
from dashboard.inside.scene import Column, InsideScene
from dashboard.markup import tables
from dashboard.markup.text import escape, in_language, number
from dashboard.session import caches, memory

_SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")  # kana and Chinese characters: words have no spaces between


class Effect(Protocol):
    """`intervene.Outcome` and `intervene.Rewritten`."""

    before: Trace
    forced: Trace
    free: Trace
    total_variation: np.ndarray
    log_prob_changes: np.ndarray


CHANGED, REPLACED = "under the change", "with the other word"  # attention; a source word
PANELS = {CHANGED: ("change", "changed"), REPLACED: ("replaced", "replaced")}  # names of their files, and of the charts
_LINES = ' style="white-space: pre-wrap"'
EMPTY = "<i>empty: the model ended at once</i>"
Affected = tuple[Column, Effect]


def tokens_of(effect: Effect) -> tuple[Token, ...]:
    """The tokens that the effect is on: all of the output, but not a prompt with another word."""
    return effect.before.target[-len(effect.total_variation) :]


def steps(columns: Sequence[Column]) -> int:
    """Approximate number of decoding steps of an effect: per model two forced texts and a free one."""
    return sum(3 * len(column.trace.target) for column in columns)


def cells(affected: Sequence[Affected], dark: bool, how: str, note: str) -> list[Cell]:
    """Row by row: the output, the map without and with the change, and the effect on each token.

    how : CHANGED or REPLACED; a page may show both, under different names in the zip. note : the change, above saved
    pictures.
    """
    rows = (
        lambda column, effect: Cell(written(column, effect, how)),
        lambda column, effect: _map(column, effect.before, "as it is", dark),
        lambda column, effect: _map(column, effect.forced, f"{how}, same text", dark, [note]),
        lambda column, effect: _bars(column, effect, how, dark, [note]),
    )
    return [row(column, effect) for row in rows for column, effect in affected]


def draw(current: InsideScene, affected: Sequence[Affected], how: str, note: str, caution: str, dark: bool) -> None:
    """The pictures and their numbers, which go into the zip. how : CHANGED or REPLACED. note : the change, above saved
    pictures. caution : how to read the pictures, below them."""
    file, chart = PANELS[how]
    shown = cells(affected, dark, how, note)
    with st.container(key=f"{chart}{len(affected)}"):  # style.css: a column for each model
        plots(shown, chart)
    st.html(f'<p class="small">{escape(caution)}</p>')
    traces = [trace for _, effect in affected for trace in (effect.forced, effect.free)]
    downloads.offer(file, shown, [frame(*pair) for pair in affected], traces)
    downloads.csv_button(file)
    if current.choices.tables:
        st.html("".join(table(*pair, how) + maps_tables(*pair, how) for pair in affected))


def written(column: Column, effect: Effect, how: str = CHANGED) -> str:
    """Both translations, with the words that differ marked, and the log-probability of each.

    Both are the model's own, decoded greedily, because a forced text would differ for that reason alone.
    """
    own = effect.before if column.target is None else caches.trace(column.model, column.text)
    free, language = effect.free, column.languages.source if column.writes else column.languages.target
    name, same = escape(column.title), own.translation == free.translation
    verdict = f"The {column.output} of {name} {'stays the same' if same else 'changes'}."
    texts = marked(own.translation, free.translation, language)
    listed = "".join(
        f"<dt>{which}</dt><dd>{text if trace.translation else EMPTY} <small>{number(trace.log_prob)} nats</small></dd>"
        for which, text, trace in zip(("As it is", how.capitalize()), texts, (own, free))
    )
    return (
        f'<h4>{name}</h4><p class="what" role="status">{verdict}</p>'
        f'<dl class="versions"{_LINES if column.writes else ""}>{listed}{_forced(column, effect, how)}</dl>'
    )


def _forced(column: Column, effect: Effect, how: str) -> str:
    """The effect of the change on the probability of an unchanged text; HTML."""
    change = float(effect.log_prob_changes.sum())
    after = sum(effect.before.log_probs[-len(effect.total_variation) :]) + change
    numbers = f"<small>{number(after)} nats ({signed(change, 2)})</small>"
    if column.target is None:
        return f"<dt>The unchanged {column.output}, forced {how}</dt><dd>{numbers}</dd>"
    text = in_language(effect.before.translation, column.languages.target)
    return f"<dt>The text at the top of the page, forced {how}</dt><dd>{text} {numbers}</dd>"


def _map(column: Column, trace: Trace, words: str, dark: bool, lines: Sequence[str] = ()) -> Cell:
    name = f"{column.title}: attention {words}"
    return _cell(figures.heatmap(column.grid(trace), dark=dark), name, dark, lines, rows=True)


def _bars(column: Column, effect: Effect, how: str, dark: bool, lines: Sequence[str]) -> Cell:
    figure = effect_bars(tokens_of(effect), effect.log_prob_changes, effect.total_variation, dark=dark)
    return _cell(figure, f"{column.title}: each token {how}, same text", dark, lines)


def _cell(figure: Chart, name: str, dark: bool, lines: Sequence[str], rows: bool = False) -> Cell:
    """lines : below the name of a picture that is saved."""
    saved = [name, *lines, *memory.heading(st.session_state)]
    return Cell(f"<h4>{escape(name)}</h4>", named(figure, name, dark, rows=rows, lines=saved))


def table(column: Column, effect: Effect, how: str = CHANGED) -> str:
    """The text equivalent of the bars."""
    caption = f"{column.title}: each target token {how}, same text"
    return effect_table(caption, effect, int(frame(column, effect)["step"].iloc[0]) + 1, column.languages.target)


def effect_table(caption: str, effect: Effect, first: int, language: str) -> str:
    """The effect on each token. first : the number of the first one. language : of the tokens."""
    numbers = list(zip(effect.log_prob_changes.tolist(), effect.total_variation.tolist()))
    target = effect.before.target  # a first token that goes on with a word is named as such
    names = tables.numbered(target, first - len(target) + len(numbers))[-len(numbers) :]
    rows = [(name, [signed(change), f"{variation:.3f}"]) for name, (change, variation) in zip(names, numbers)]
    columns = ["change of log-probability (nats)", "total variation (0 to 1)"]
    return tables.table(caption, columns, rows, (language, "en"))


def maps_tables(column: Column, effect: Effect, how: str = CHANGED) -> str:
    """The text equivalents of the two maps."""
    shown = {"as it is": column.grid(effect.before), how: column.grid(effect.forced)}
    return "".join(
        tables.grid_table(f"{column.title}: weights {words}", grid, column.languages) for words, grid in shown.items()
    )


def frame(column: Column, effect: Effect) -> pd.DataFrame:
    """One row per target token, as it is saved: steps count from 0."""
    return pd.DataFrame(
        {
            "model": column.model,
            "step": range(len(effect.before.target) - len(tokens_of(effect)), len(effect.before.target)),
            "token": [token.text for token in tokens_of(effect)],
            "log_prob_change": effect.log_prob_changes,
            "total_variation": effect.total_variation,
        }
    )


def marked(before: str, after: str, language: str) -> tuple[str, str]:
    """The two texts, escaped: words of the first that are gone, and words of the second that are new, in `<mark>`.

    Texts without spaces between words are compared character by character.
    """
    old, new = _units(before), _units(after)
    left, right = [], []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left.append(_mark("".join(old[a:b]), kind != "equal"))
        right.append(_mark("".join(new[c:d]), kind != "equal"))
    first, second = (f'<span lang="{escape(language)}" dir="auto">{"".join(parts)}</span>' for parts in (left, right))
    return first, second


def _units(text: str) -> list[str]:
    """Words, signs and the spaces between them; or characters."""
    return list(text) if _SPACELESS.search(text) else re.findall(r"\s+|\w+|[^\w\s]", text)


def _mark(text: str, differs: bool) -> str:
    if not differs or not text.strip():
        return escape(text)
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}<mark>{escape(text.strip())}</mark>{after}"
