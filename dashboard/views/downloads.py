"""What can be taken away: every figure as HTML, and one zip of everything with a manifest that reopens the view."""

import functools
import itertools
import platform
from importlib.metadata import version
from urllib.parse import urlencode

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

import attnviz
from attnviz import export, figures, stats
from dashboard import state
from dashboard.scene import Scene


def show(current: Scene, dark: bool) -> None:
    """The downloads. Nothing is built before it is asked for."""
    st.subheader("Take it away", divider="gray")
    step = st.session_state.get("step", 1) - 1
    st.caption("PNG and SVG: the two buttons on each chart. The files below open without a network.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.download_button(
            "Everything as a zip", functools.partial(bundle, current, dark, step), "attnviz.zip", "application/zip",
            on_click="ignore", key="zip", type="primary", icon=":material/folder_zip:",
            help="All figures as HTML, the traces as JSON, statistics and weights as CSV, and a manifest.",
        )  # fmt: skip
        for name in drawn(current, dark, step, names_only=True):
            st.download_button(
                f"{name} (HTML)", functools.partial(page, current, dark, step, name), f"{export.figure_name(name)}.html",
                "text/html", on_click="ignore", key=f"html-{export.figure_name(name)}", type="tertiary",
            )  # fmt: skip


def drawn(current: Scene, dark: bool, step: int, names_only: bool = False) -> dict[str, go.Figure | None]:
    """name -> figure for everything on the page, as it is on the page."""
    makers = {}
    for part in current.parts:
        row = step if step < len(part.grid.queries) else None
        makers[f"Heatmap {part.title}"] = functools.partial(figures.heatmap, part.grid, row, part.title, dark=dark)
        if row is not None:
            makers[f"Step bars {part.title}"] = functools.partial(figures.step_bars, part.grid, row, part.title, dark=dark)
    makers["Statistics by step"] = functools.partial(figures.by_step, current.frames(), current.keys, step, dark=dark)
    makers["Comparison"] = lambda: figures.comparison(current.summary(), dark=dark)
    if current.shared:
        from dashboard.views.compare import difference

        for a, b in itertools.combinations(current.parts, 2):
            makers[f"Difference {a.title} minus {b.title}"] = functools.partial(difference, a, b, dark)
    return {name: None if names_only else make() for name, make in makers.items()}


def page(current: Scene, dark: bool, step: int, name: str) -> bytes:
    return export.figure_html(drawn(current, dark, step)[name], name)


def bundle(current: Scene, dark: bool, step: int) -> bytes:
    """The zip of the view."""
    traces = [part.shown for part in current.parts]
    frames = {
        "statistics": pd.concat([stats.steps(trace) for trace in traces], ignore_index=True),
        "statistics-on-screen": pd.concat(current.frames().values(), ignore_index=True),
        "summary": pd.concat([stats.summary(trace) for trace in traces], ignore_index=True),
        "weights": pd.concat([stats.weights(trace) for trace in traces], ignore_index=True),
    }
    return export.bundle(drawn(current, dark, step), traces, frames, manifest(current, step))


def manifest(current: Scene, step: int) -> dict:
    """What is needed to see the same again. `query` is what follows the page's address; it reopens the view."""
    packages = ("streamlit", "torch", "plotly", "pandas", "numpy", "tokenizers")
    return {
        "sentence": current.settings.text,
        "settings": current.settings.to_dict() | {"step": step + 1},
        "query": "?" + urlencode(current.settings.query(step), doseq=True),
        "models": {part.trace.model: {"sha256": state.fingerprint(part.mechanism)} for part in current.parts},
        "versions": {"attnviz": attnviz.__version__, "python": platform.python_version()} | {p: version(p) for p in packages},
    }
