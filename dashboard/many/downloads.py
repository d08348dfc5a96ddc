"""Downloads of the page of many sentences: the current contents of its panels, all numbers as CSV, and a zip of
everything."""

import functools

import pandas as pd
import streamlit as st

from attnviz.export import bundle as export
from attnviz.figures import Chart
from dashboard.many.scene import ManyScene
from dashboard.shell import downloads
from dashboard.shell.downloads import ShownPanels

PAGE = "many"


def offer(panel: str, figure: Chart | None, frame: pd.DataFrame) -> None:
    """Register a panel's current content for the zip."""
    downloads.put_panel(PAGE, panel, {} if figure is None else {panel: figure}, frame)


def drop(panel: str) -> None:
    """Remove a panel's content."""
    downloads.drop_panel(PAGE, panel)


def show(current: ManyScene) -> None:
    """Show the downloads. Files are built only on request."""
    st.subheader("Download", divider="gray")
    st.caption("Each chart has a PNG and an SVG button. The CSV has one row for each model and sentence.")
    with st.container(horizontal=True):
        build = functools.partial(bundle, current, downloads.panels_of(PAGE))
        words = "Figures as HTML, all numbers as CSV, and a manifest."
        downloads.zip_and_link(build, "attnviz-sentences.zip", "many_zip", words)
        downloads.csv_button("All numbers as CSV", current.saved, "sentences.csv", key="many_csv")


def bundle(current: ManyScene, shown: ShownPanels) -> bytes:
    """The zip. shown : read at download time."""
    frames = {"all numbers": current.saved()} | {f"shown {name}": frame for name, frame in shown.frames.items()}
    return export.bundle(shown.figures, [], frames, manifest(current, shown), lines=current.heading)


def manifest(current: ManyScene, shown: ShownPanels) -> dict:
    """The data needed to reproduce the view, except sentences of an uploaded file, or many pasted ones."""
    corpora = [corpus for corpus in (current.corpus, current.other) if corpus]
    models = sorted(set(current.corpus.frame["model"]))
    return {
        "sentences": [{"name": corpus.given.name, "sha256": corpus.given.digest} for corpus in corpora],
        "measured": [{"done": corpus.done, "of": corpus.total} for corpus in corpora],
    } | downloads.reopening("many", shown.query, models)
