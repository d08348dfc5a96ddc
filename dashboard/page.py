"""The script of a visit: it draws the page of the address (pages.py lists them). app.py starts the server."""

import functools
import logging
import re
import sys
from pathlib import Path

import streamlit as st

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:  # `streamlit run` puts only dashboard/ on the path
    sys.path.insert(0, ROOT)

from dashboard.markup.text import page_links  # noqa: E402
from dashboard.pages import PAGES, Page  # noqa: E402
from dashboard.session import address, catalogue, memory  # noqa: E402
from dashboard.shell import frame, link_notes  # noqa: E402

# In a frame: no sidebar, no navigation, no field for the sentence, no margins.
EMBEDDED = """<style>
.stApp.stApp :is(nav.pages, [data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], .stAppHeader,
  .st-key-text, .count, .st-key-examples, .st-key-tour_offer, .copy-link, .open-step) { display: none; }
.stApp.stApp .stMainBlockContainer { padding: 0.5rem 0.5rem 1rem; }
</style>"""
# One panel, by its key: hides all that neither is, nor holds, nor is in it. A page without this panel is shown whole.
ONE_PANEL = """<style>
.stApp.stApp .stMainBlockContainer:has(PANEL) :not(:has(PANEL), PANEL, PANEL *, .st-key-notice, .st-key-notice *)
  { display: none; }
</style>"""
st.set_page_config(
    page_title="attnviz · see how attention works",
    page_icon=str(Path(__file__).with_name("icon.svg")),
    layout="wide",
    initial_sidebar_state="auto",  # open, but closed on a phone
)


def run(page: Page) -> None:
    link_notes.remember(st.session_state)
    memory.begin(st.session_state)
    with st.sidebar:
        chosen = page.sidebar()
    note = st.container()
    page.show(chosen)  # imports torch, pandas and plotly: the browser already has something to do
    with note:
        link_notes.show(st.session_state)


def entry(page: Page) -> st.Page:
    """A page for Streamlit's navigation."""
    return st.Page(functools.partial(run, page), title=page.title, url_path=page.path, default=not page.path)


def main() -> None:
    if frame.is_embedded():
        panel = re.sub("[^a-z0-9-]", "", st.query_params.get("panel", ""))
        st.html(
            EMBEDDED + (ONE_PANEL.replace("PANEL", f":is(.st-key-{panel}, .st-key-chart-{panel})") if panel else "")
        )
    page = st.navigation([entry(page) for page in PAGES], position="top")
    st.html(page_links({other.path: other.title for other in PAGES}, page.url_path))
    came_back = address.came_back()
    along = address.arrive(page.url_path, st.session_state, came_back, st.query_params.get("text"))
    address.begin()
    if along:
        st.query_params.update(along)
    page.run()
    address.settle()


try:
    with catalogue.run():
        main()
except Exception:  # the last net: else Streamlit shows the visitor a traceback. The log has it.
    logging.getLogger("attnviz").exception("the page could not be drawn")
    st.error(
        "Something went wrong while drawing this page. Your sentence is still there. Change a setting or reload the "
        "page."
    )
