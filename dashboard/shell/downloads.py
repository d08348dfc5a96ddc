"""The downloads of every page: a zip of what it shows, a button that copies the link, and what its manifest says."""

import platform
from collections.abc import Callable, Iterable
from importlib.metadata import version
from urllib.parse import urlencode

import streamlit as st

import attnviz
from dashboard.session import caches

_PACKAGES = ("streamlit", "torch", "plotly", "pandas", "numpy", "tokenizers")


def zip_and_link(build: Callable[[], bytes], file_name: str, key: str, words: str) -> None:
    """The first two buttons. build : makes the zip, and is called when it is downloaded; words : what is in it."""
    st.download_button(
        "Everything as a zip",
        build,
        file_name,
        "application/zip",
        on_click="ignore",
        key=key,
        type="primary",
        icon=":material/folder_zip:",
        help=words,
    )
    st.html('<button type="button" class="copy-link" aria-live="polite">Copy link</button>', width="content")


def reopening(page: str, query: dict, models: Iterable[str], packages: tuple[str, ...] = ()) -> dict:
    """Entries of a manifest: what is needed to see the same again. `query` is what follows the page's address; it
    reopens the view.

    page : its address, "" for the first; packages : those that its numbers depend on, besides the usual ones.
    """
    return {
        "query": f"{page}?{urlencode(query, doseq=True)}",
        "reopen": "start the dashboard and add `query` to its address, for example http://localhost:8501/",
        "models": {model: {"sha256": caches.fingerprint(model)} for model in models},
        "versions": {"attnviz": attnviz.__version__, "python": platform.python_version()}
        | {package: version(package) for package in (*_PACKAGES, *packages)},
    }
