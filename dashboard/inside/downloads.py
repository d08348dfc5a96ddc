"""Downloads of the page of one step: a zip of what its panels show, with a manifest that reopens it."""

import functools
import platform
from importlib.metadata import version
from urllib.parse import urlencode

import streamlit as st

import attnviz
from attnviz.export import bundle as export
from dashboard.inside import kept
from dashboard.inside.scene import InsideScene
from dashboard.session import caches

_PACKAGES = ("streamlit", "torch", "plotly", "pandas", "numpy", "tokenizers", "captum")


def show(current: InsideScene) -> None:
    """Nothing is built before it is asked for."""
    st.subheader("Download", divider="gray")
    st.caption("Each chart has a PNG and an SVG button. The zip opens offline; its CSV files count steps from 0.")
    with st.container(horizontal=True):
        st.download_button(
            "Everything as a zip",
            functools.partial(bundle, current, kept.kept()),
            "attnviz-step.zip",
            "application/zip",
            on_click="ignore",
            key="inside_zip",
            type="primary",
            icon=":material/folder_zip:",
            help="What the open panels show: figures as HTML, traces as JSON, numbers as CSV, and a manifest.",
        )
        st.html('<button type="button" class="copy-link" aria-live="polite">Copy link</button>', width="content")


def bundle(current: InsideScene, shown: kept.Kept) -> bytes:
    """The zip. shown : read when it is downloaded, as a panel may be drawn again without the rest of the page."""
    figures = {name: figure for part in shown.parts.values() for name, figure in part.figures.items()}
    tables = {name: part.frame for name, part in shown.parts.items() if part.frame is not None}
    traces = [column.trace for column in current.columns]
    traces += [trace for part in shown.parts.values() for trace in part.traces]
    return export.bundle(figures, traces, tables, manifest(current, shown))


def manifest(current: InsideScene, shown: kept.Kept) -> dict:
    """What is needed to see the same again. `query` is what follows the page's address; it reopens the view."""
    return {
        "sentence": current.text,
        "panels": list(shown.parts),
        "query": "inside?" + urlencode(shown.query, doseq=True),
        "reopen": "start the dashboard and add `query` to its address, for example http://localhost:8501/",
        "models": {column.model: {"sha256": caches.fingerprint(column.model)} for column in current.columns},
        "versions": {"attnviz": attnviz.__version__, "python": platform.python_version()}
        | {package: version(package) for package in _PACKAGES},
    }
