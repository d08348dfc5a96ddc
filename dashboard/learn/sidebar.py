"""The sidebar of the page Learn: the chapters."""

import streamlit as st

from dashboard.choices.options import CHAPTER_TITLES, chapter_title
from dashboard.shell import widgets


def show() -> dict:
    """The key of the chapter."""
    widgets.brand("Attention in nine short chapters, with live pictures. You need to know what a neural network is.")
    chapter = st.radio(
        "Chapter",
        list(CHAPTER_TITLES),
        format_func=chapter_title,
        key="chapter",
        bind="query-params",
    )
    return {"chapter": chapter, "tables": widgets.tables()}
