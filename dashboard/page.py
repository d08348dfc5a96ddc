"""What a visit to the page runs, from top to bottom; app.py starts the server."""

import logging
import sys
from pathlib import Path

import streamlit as st

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:  # `streamlit run` puts only dashboard/ on the path
    sys.path.insert(0, ROOT)

from dashboard import controls  # noqa: E402
from dashboard.session import carry  # noqa: E402

st.set_page_config(
    page_title="attnviz · see how attention works",
    page_icon=str(Path(__file__).with_name("icon.svg")),
    layout="wide",
    initial_sidebar_state="expanded",
)


def sentence() -> None:
    """One sentence through several models."""
    with st.sidebar:
        settings = controls.sidebar(controls.language_pair())
    from dashboard.compare import view  # torch, pandas and plotly: once the browser has something to do

    view.show(settings)


def heads() -> None:
    """Every head of one model."""
    from dashboard.heads import view

    view.show(view.sidebar())


PAGES = [
    st.Page(sentence, title="One sentence, several models", default=True),
    st.Page(heads, title="Heads and layers", url_path="heads"),
]


def main() -> None:
    st.html(Path(__file__).with_name("style.css"))
    page = st.navigation(PAGES, position="top")
    st.query_params.update(carry.arrive(page.url_path, st.session_state))
    page.run()


try:
    main()
except Exception:  # the last net: whatever is wrong, the page says so in plain words and the log has the rest
    logging.getLogger("attnviz").exception("the page could not be drawn")
    st.error(
        "Something went wrong while drawing this page. Your sentence is kept; change a setting or reload to go on."
    )
