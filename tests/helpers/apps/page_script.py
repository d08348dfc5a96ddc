"""A page of the dashboard as a script for Streamlit's test driver."""

_SCRIPT = """import streamlit as st
from dashboard.PAGE import sidebar, view
from dashboard.session import address

address.begin()
with st.sidebar:
    chosen = sidebar.show()
view.show(chosen)
address.settle()
"""


def script_of(page: str) -> str:
    """page : its folder in `dashboard`."""
    return _SCRIPT.replace("PAGE", page)
