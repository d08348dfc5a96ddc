"""The floor of tests/bench/closeup.py: a button that draws the heatmap of the next head, as large as on the page, and
nothing else.

With ATTNVIZ_STREAMLIT set, by `st.plotly_chart` rather than by the dashboard's own component.
"""

import os
import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT)] * (str(ROOT) not in sys.path)

from attnviz import figures, select  # noqa: E402
from attnviz.trace import Trace  # noqa: E402
from dashboard.browser.plot import HALF, named, plots  # noqa: E402

WIDTH = 490  # px of the heatmap on the page of heads, in a window of 1366


@st.cache_resource
def grids() -> list:
    trace = Trace.from_json(Path(os.environ["ATTNVIZ_STORED"]).read_text(encoding="utf-8"))
    encoder = enumerate(attention for attention in trace.maps if attention.kind == "encoder")
    return [
        select.select(trace, "encoder", layer, head)
        for layer, attention in encoder
        for head in range(len(attention.weights))
    ]


st.set_page_config(layout="wide")


@st.fragment
def show() -> None:
    st.button("Next head", on_click=lambda: st.session_state.update(head=st.session_state.get("head", 0) + 1))
    number = st.session_state.get("head", 0) % len(grids())
    plain = bool(os.environ.get("ATTNVIZ_STREAMLIT"))
    figure = figures.heatmap(grids()[number], written=plain, room=HALF)
    if plain:
        with st.container(key="chart-alone", width=WIDTH):
            st.plotly_chart(figure, theme=None, key="heatmap")
    else:
        with st.container(width=WIDTH):
            plots([("", named(figure, f"heatmap {number}", False))], "alone")


show()
