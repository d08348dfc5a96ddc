"""A page as a link opens it: drawn, with a note where a value means nothing."""

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace

WARM = (0, {})
PAGE = """import streamlit as st
from dashboard.pages import PAGES

with st.sidebar:
    chosen = PAGES[{number}].sidebar()
PAGES[{number}].show(chosen)
"""


def strategy():
    from dashboard.pages import PAGES

    return st.tuples(st.integers(0, len(PAGES) - 1), strategies.queries)


def check(place: Workplace, case) -> None:
    from streamlit.testing.v1 import AppTest

    page, query = case
    app = AppTest.from_string(PAGE.format(number=page), default_timeout=120)
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    if app.exception:
        raise Failure(f"{app.exception[0].message[:200]} for {query!r:.300}")
