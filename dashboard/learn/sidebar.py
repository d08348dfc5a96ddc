"""The sidebar of the page Learn: the chapters."""

import streamlit as st

from dashboard.learn.titles import TITLES
from dashboard.shell import widgets


def show() -> dict:
    """The key of the chapter."""
    widgets.brand("Attention in eight short chapters, with live pictures. You need to know what a neural network is.")
    chapter = st.radio(
        "Chapter",
        list(TITLES),
        format_func=lambda key: f"{list(TITLES).index(key) + 1}. {TITLES[key]}",
        key="chapter",
        bind="query-params",
    )
    return {"chapter": chapter, "tables": widgets.tables()}
