"""The page with the models' work taken out: traces come from a file that tests/bench/page.py wrote."""

import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import stored  # noqa: E402

from dashboard.server import index_page, warm_up  # noqa: E402
from dashboard.session import caches  # noqa: E402

caches.trace, caches.ask = stored.trace, stored.ask
app = st.App(str(ROOT / "dashboard" / "page.py"), lifespan=warm_up.lifespan, routes=index_page.routes)
