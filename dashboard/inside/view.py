"""The page that opens one step: its numbers, attention changed, and tests of whether it matters. Each panel is a
module of panels/."""

import streamlit as st

from dashboard.inside import scene
from dashboard.inside.panels import change, matter, opened
from dashboard.inside.scene import InsideChoices
from dashboard.markup import card
from dashboard.markup.text import named_card, output
from dashboard.session import caches
from dashboard.shell import frame, widgets


@st.fragment
def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; a text that fails leaves the last good picture."""
    text = widgets.sentence(fields["pair"])
    chosen = {name: value for name, value in fields.items() if name != "pair"}
    current = frame.composed("inside", lambda: scene.compose(InsideChoices(text, **chosen), caches.trace))
    if current is None:
        return
    dark = frame.is_dark()
    st.html(named_card(current.mechanism.title, card.show(caches.card(current.choices.model))))
    st.html(output(current.trace, current.languages.target))
    for panel in (opened, change, matter):
        panel.show(current, dark)
