"""The server of bare_page.py; its sockets are set as the page's are, so that the two differ in the page alone."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st

sys.path[:0] = [str(Path(__file__).resolve().parents[3])]
from dashboard.server import warm_up  # noqa: E402


@asynccontextmanager
async def lifespan(app) -> AsyncIterator[None]:
    warm_up.send_at_once()
    yield


app = st.App("bare_page.py", lifespan=lifespan)
