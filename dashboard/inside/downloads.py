"""Downloads of the page of one step: a zip of what its panels show, with a manifest that reopens it."""

import functools

import streamlit as st

from attnviz.export import bundle as export
from dashboard.inside import kept
from dashboard.inside.scene import InsideScene
from dashboard.shell import downloads


def show(current: InsideScene) -> None:
    """Nothing is built before it is asked for."""
    st.subheader("Download", divider="gray")
    st.caption("Each chart has a PNG and an SVG button. The zip opens offline; its CSV files count steps from 0.")
    with st.container(horizontal=True):
        build = functools.partial(bundle, current, kept.kept())
        words = "What the open panels show: figures as HTML, traces as JSON, numbers as CSV, and a manifest."
        downloads.zip_and_link(build, "attnviz-step.zip", "inside_zip", words)


def bundle(current: InsideScene, shown: kept.Kept) -> bytes:
    """The zip. shown : read when it is downloaded, as a panel may be drawn again without the rest of the page."""
    figures = {name: figure for part in shown.parts.values() for name, figure in part.figures.items()}
    tables = {name: part.frame for name, part in shown.parts.items() if part.frame is not None}
    traces = [column.trace for column in current.columns]
    traces += [trace for part in shown.parts.values() for trace in part.traces]
    return export.bundle(figures, traces, tables, manifest(current, shown))


def manifest(current: InsideScene, shown: kept.Kept) -> dict:
    """What is needed to see the same again."""
    return {
        "sentence": current.text,
        "panels": list(shown.parts),
    } | downloads.reopening("inside", shown.query, [column.model for column in current.columns], ("captum",))
