"""Downloads of the page of many sentences: all numbers as CSV, and a zip of what its panels show."""

import functools
import platform
from importlib.metadata import version
from urllib.parse import urlencode

import streamlit as st

import attnviz
from attnviz.export import bundle as export
from dashboard.many import drawn
from dashboard.many.drawn import Drawn
from dashboard.many.scene import ManyScene
from dashboard.session import caches

_PACKAGES = ("streamlit", "torch", "plotly", "pandas", "numpy", "tokenizers")


def show(current: ManyScene) -> None:
    """Nothing is built before it is asked for."""
    st.subheader("Download", divider="gray")
    st.caption("Each chart has a PNG and an SVG button. The CSV has one row for each model and sentence.")
    with st.container(horizontal=True):
        st.download_button(
            "Everything as a zip",
            functools.partial(bundle, current, drawn.drawn()),
            "attnviz-sentences.zip",
            "application/zip",
            on_click="ignore",
            key="many_zip",
            type="primary",
            icon=":material/folder_zip:",
            help="Figures as HTML, all numbers as CSV, and a manifest.",
        )
        st.download_button(
            "All numbers as CSV",
            lambda: export.frame_csv(current.saved()),
            "sentences.csv",
            "text/csv",
            on_click="ignore",
            key="many_csv",
        )
        st.html('<button type="button" class="copy-link" aria-live="polite">Copy link</button>', width="content")


def bundle(current: ManyScene, shown: Drawn) -> bytes:
    """The zip. shown : read when it is downloaded."""
    frames = {"all numbers": current.saved()} | {f"shown {name}": frame for name, frame in shown.frames.items()}
    return export.bundle(shown.figures, [], frames, manifest(current, shown), lines=current.heading)


def manifest(current: ManyScene, shown: Drawn) -> dict:
    """What is needed to see the same again. `query` is what follows the page's address; it reopens the view, but for
    sentences of a file that was uploaded, and many that were pasted."""
    corpora = [corpus for corpus in (current.corpus, current.other) if corpus]
    models = sorted(set(current.corpus.frame["model"]))
    return {
        "sentences": [{"name": corpus.given.name, "sha256": corpus.given.digest} for corpus in corpora],
        "measured": [{"done": corpus.done, "of": corpus.total} for corpus in corpora],
        "query": "many?" + urlencode(shown.query, doseq=True),
        "reopen": "start the dashboard and add `query` to its address, for example http://localhost:8501/",
        "models": {model: {"sha256": caches.fingerprint(model)} for model in models},
        "versions": {"attnviz": attnviz.__version__, "python": platform.python_version()}
        | {package: version(package) for package in _PACKAGES},
    }
