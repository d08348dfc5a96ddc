"""Downloads of the page of one step: a zip of what its panels show, with a manifest that reopens it."""

import functools

import streamlit as st

from attnviz.export import bundle as export
from dashboard.inside.kept import PAGE
from dashboard.inside.scene import InsideScene
from dashboard.shell import downloads, shown_panels
from dashboard.shell.shown_panels import ShownPanels

TITLE = "Download"


def show(current: InsideScene) -> None:
    """Nothing is built before it is asked for."""
    st.subheader(TITLE, divider="gray")
    st.caption("Each chart has a PNG and an SVG button. The zip opens offline; its CSV files count steps from 0.")
    with st.container(horizontal=True):
        build = functools.partial(bundle, current, shown_panels.shown(PAGE))
        words = "What the open panels show: figures as HTML, traces as JSON, numbers as CSV, and a manifest."
        downloads.zip_and_link(build, "attnviz-step.zip", "inside_zip", words)


def bundle(current: InsideScene, shown: ShownPanels) -> bytes:
    """The zip. shown : read when it is downloaded, as a panel may be drawn again without the rest of the page."""
    traces = [*(column.trace for column in current.columns), *shown.traces]
    return export.bundle(shown.figures, traces, shown.frames, manifest(current, shown))


def manifest(current: InsideScene, shown: ShownPanels) -> dict:
    """What is needed to see the same again."""
    return {
        "sentence": current.text,
        "panels": list(shown.panels),
    } | downloads.reopening("inside", shown.query, [column.model for column in current.columns], ("captum",))
