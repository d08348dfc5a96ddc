"""The server of bare_head_page.py; its sockets and its Plotly are those of the page."""

import sys
from pathlib import Path

import streamlit as st

sys.path[:0] = [str(Path(__file__).resolve().parents[3])]
from bare_app import lifespan  # noqa: E402

from dashboard.server import index_page  # noqa: E402

app = st.App("bare_head_page.py", lifespan=lifespan, routes=index_page.routes)
