"""Figures on the page. `st.plotly_chart` mounts a new chart for every change and draws it twice, which was more than half of
the time from Enter to drawn; this component keeps the chart and moves it to the new figure in one go (measured by
tests/bench/page.py). Plotly itself comes from Streamlit: one empty, hidden `st.plotly_chart` loads it."""

from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

_component = st.components.v2.component(
    "attnviz_plot", html='<div class="plot" role="figure"></div>',
    js=Path(__file__).with_name("plot.js").read_text(encoding="utf-8"), isolate_styles=False,
)  # fmt: skip


def load_plotly() -> None:
    """Once on each page, before the first `plot`."""
    with st.container(key="plotly-loader"):
        st.plotly_chart(go.Figure(layout={"height": 10, "template": {}}), key="plotly", theme=None)


def plot(figure: go.Figure, key: str) -> None:
    """Show a figure that has a height; `layout.meta["description"]` is what a screen reader says of it."""
    _component(key=key, data={"figure": figure.to_json(validate=False)}, height=int(figure.layout.height))
