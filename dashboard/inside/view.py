"""The page that opens one step: its numbers, attention changed, and tests of whether it matters. Every panel is a
separate module."""

import functools

import streamlit as st

from attnviz.models.names import is_hugging_face
from dashboard.choices import pairs
from dashboard.choices.options import TYPED, Writing, model
from dashboard.inside import change, downloads, matter, opened, replaced, scene
from dashboard.inside.scene import Column, InsideChoices, InsideScene
from dashboard.markup import card, terms
from dashboard.markup.text import continued, named_card, output, parts_list
from dashboard.session import address, caches
from dashboard.shell import frame, side_by_side, widgets


@address.fragment
def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; a text that fails leaves the last good picture."""
    text = widgets.sentence(fields["pair"])
    models = [model(fields["pair"], mechanism) for mechanism in fields["mechanisms"]]
    ours = [name for name in models if not is_hugging_face(name)]
    writes = pairs.task(fields["pair"]).writes
    sentences = caches.one_by_one(ours, text) if fields.get("target") != TYPED and not writes else ()
    choices = InsideChoices(text=widgets.one_sentence(text, sentences), **fields)
    wanted = () if writes else side_by_side.wanted_traces(choices, models, caches.ask, caches.trace)
    with frame.composed(
        "inside", lambda: scene.compose(choices, functools.partial(_trace, choices)), wanted, models
    ) as current:
        if current is not None:
            _draw(current, frame.is_dark())


def _trace(choices: InsideChoices, name: str, text: str, target: str | None, beam: int):
    """The trace of a model's output, or of the text with what it writes after it. Raises ValueError."""
    if pairs.task(choices.pair).writes:
        return caches.written(name, text, Writing(choices.written, 0.0))
    return caches.trace(name, text, target, beam)


def _draw(current: InsideScene, dark: bool) -> None:
    with st.container(key="models"):  # style.css: as many beside each other as below
        places = st.columns(len(current.columns), gap="medium")
    for place, column in zip(places, current.columns, strict=True):
        place.html(_named(column))
    st.html(
        terms.line("log-probability", "entropy", "piece", "<eos>", "head", piece=current.columns[0].languages.piece)
    )
    panels = (opened, change, replaced, matter)
    st.html(parts_list(panel.TITLE for panel in (*panels, downloads)))
    for panel in panels:
        panel.show(current, dark)
    downloads.show(current)


def _named(column: Column) -> str:
    """The model, its card, and its output."""
    shown = "" if is_hugging_face(column.model) else card.show(caches.card(column.model))
    piece, languages = column.languages.piece, column.languages
    if column.writes:
        return named_card(column.mechanism.title, shown) + continued(column.trace, piece, column.title)
    return named_card(column.mechanism.title, shown) + output(column.trace, languages.target, piece, column.title)
