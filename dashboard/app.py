"""The dashboard: `streamlit run dashboard/app.py`. This file starts the server; every visit runs page.py."""

import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:  # `streamlit run` puts only dashboard/ on the path
    sys.path.insert(0, ROOT)

from dashboard.choices import settings  # noqa: E402
from dashboard.server import warm_up  # noqa: E402

try:
    settings.check()
except ValueError as error:
    # Streamlit, which reads this file last of all, has just said that the page can be viewed.
    raise SystemExit(f"attnviz does not start, so there is no page to view: {error}") from None
warm_up.start_models()  # first of all: it takes longest

from dashboard.server import connections, index_page, received, security  # noqa: E402

security.spare_the_log()
connections.install(security.headers())
connections.gather()
connections.remember_theme()
received.install()
app = st.App(
    "page.py",
    lifespan=warm_up.lifespan,
    routes=index_page.routes,
    middleware=list(
        map(
            Middleware,
            (security.Guard, index_page.OtherAddresses, index_page.Scripts, received.Uploads, received.Messages),
        )
    ),
)
