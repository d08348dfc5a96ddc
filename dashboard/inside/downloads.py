"""Downloads of the page of one step: the current contents of its panels, their numbers as files, and a zip of
everything with a manifest that reopens the view."""

import functools
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from attnviz.export import bundle as export
from attnviz.trace import Trace
from dashboard.browser.plot import Cell
from dashboard.inside.scene import InsideScene
from dashboard.shell import downloads
from dashboard.shell.downloads import ShownPanels

PAGE, TITLE = "inside", "Download"


def show(current: InsideScene) -> None:
    """Show the downloads. Files are built only on request."""
    st.subheader(TITLE, divider="gray")
    st.caption("Each chart has a PNG and an SVG button. The zip opens offline; its CSV files count steps from 0.")
    with st.container(horizontal=True):
        build = functools.partial(bundle, current, downloads.panels_of(PAGE))
        words = "What the open panels show: figures as HTML, traces as JSON, numbers as CSV, and a manifest."
        downloads.zip_and_link(build, "attnviz-step.zip", "inside_zip", words)


def bundle(current: InsideScene, shown: ShownPanels) -> bytes:
    """The zip. shown : read at download time, because a panel may be redrawn without the rest of the page."""
    traces = [*(column.trace for column in current.columns), *shown.traces]
    return export.bundle(shown.figures, traces, shown.frames, manifest(current, shown))


def manifest(current: InsideScene, shown: ShownPanels) -> dict:
    """The data needed to reproduce the view."""
    return {
        "sentence": current.text,
        "panels": list(shown.panels),
    } | downloads.reopening("inside", shown.query, [column.model for column in current.columns], ("captum",))


def offer(panel: str, cells: Sequence[Cell], frames: Sequence[pd.DataFrame], traces: Sequence[Trace] = ()) -> None:
    """Register a panel's current content, for its CSV button and for the zip."""
    figures = {cell.figure.name: cell.figure for cell in cells if cell.figure is not None}
    numbers = pd.concat(frames, ignore_index=True) if frames else None
    downloads.put_panel(PAGE, panel, figures, numbers, traces)


def drop(panel: str) -> None:
    """Remove a panel's content."""
    downloads.drop_panel(PAGE, panel)


def csv_button(panel: str) -> None:
    """The numbers of a panel as a file. Call it after `offer`; the file is built only on request."""
    part = downloads.panels_of(PAGE).panels[panel]
    words = "The file counts steps, layers, heads and tokens from 0, as Python does."
    downloads.csv_button("Numbers as CSV", lambda: part.frame, f"attnviz-{panel}.csv", f"csv-{panel}", words)
