"""The floor of tests/bench/closeup.py: a button that draws the heatmap of the next head, and nothing else on the page."""

import json
import os
import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)] * (str(ROOT) not in sys.path)

from attnviz import figures, select  # noqa: E402
from attnviz.trace import Trace  # noqa: E402
from dashboard.plot import named, plots  # noqa: E402


@st.cache_resource
def stored() -> Trace:
    return Trace.from_dict(json.loads(Path(os.environ["ATTNVIZ_STORED"]).read_text(encoding="utf-8")))


st.set_page_config(layout="wide")


@st.fragment
def show() -> None:
    st.button("Next head", on_click=lambda: st.session_state.update(head=st.session_state.get("head", 0) + 1))
    trace = stored()
    counts = [len(one.weights) for one in trace.maps if one.kind == "encoder"]
    layer, head = divmod(st.session_state.get("head", 0) % sum(counts), counts[0])
    grid = select.select(trace, "encoder", layer, head)
    plots([("", named(figures.heatmap(grid), f"heatmap {layer} {head}", False))], "alone")


show()
