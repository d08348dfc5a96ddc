"""What the panels of the page of one step show now (dashboard/shell/shown_panels.py), and their numbers as files."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from attnviz.export import bundle
from attnviz.trace import Trace
from dashboard.browser.plot import Cell
from dashboard.shell import shown_panels

PAGE = "inside"


def keep(panel: str, cells: Sequence[Cell], frames: Sequence[pd.DataFrame], traces: Sequence[Trace] = ()) -> None:
    """Say what a panel shows."""
    figures = {figure.name: figure for _, figure in cells if figure is not None}
    numbers = pd.concat(frames, ignore_index=True) if frames else None
    shown_panels.keep(PAGE, panel, figures, numbers, traces)


def drop(panel: str) -> None:
    """A panel shows nothing."""
    shown_panels.drop(PAGE, panel)


def csv_button(panel: str) -> None:
    """The numbers of a panel as a file. Call it after `keep`; nothing is built before it is asked for."""
    part = shown_panels.shown(PAGE).panels[panel]
    st.download_button(
        "Numbers as CSV",
        lambda: bundle.frame_csv(part.frame),
        f"attnviz-{panel}.csv",
        "text/csv",
        on_click="ignore",
        key=f"csv-{panel}",
        help="The file counts steps, layers, heads and tokens from 0, as Python does.",
    )
