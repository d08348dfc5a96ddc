"""The page that opens one step: its numbers, attention changed, and tests of whether it matters. Each panel is a
module of panels/."""

import streamlit as st

from dashboard.inside import downloads, scene
from dashboard.inside.panels import change, matter, opened, replaced
from dashboard.inside.scene import Column, InsideChoices
from dashboard.markup import card
from dashboard.markup.text import named_card, output
from dashboard.session import caches
from dashboard.shell import frame, widgets


@st.fragment
def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; a text that fails leaves the last good picture."""
    text = widgets.sentence(fields["pair"])
    current = frame.composed("inside", lambda: scene.compose(InsideChoices(text=text, **fields), caches.trace))
    if current is None:
        return
    dark = frame.is_dark()
    for place, column in zip(st.columns(len(current.columns), gap="medium"), current.columns, strict=True):
        place.html(_named(column))
    for panel in (opened, change, replaced, matter):
        panel.show(current, dark)
    downloads.show(current)


def _named(column: Column) -> str:
    """The model, its card, and what it writes."""
    return named_card(column.mechanism.title, card.show(caches.card(column.model))) + output(
        column.trace, column.languages.target
    )
