"""What each panel of the page shows now, for the zip. A panel may be drawn again without the rest of the page, so each
says what it shows when it is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from attnviz.figures.chart import Chart
from attnviz.trace import Trace
from dashboard.browser.plot import Cell

_KEPT = "kept of inside"


@dataclass(frozen=True, eq=False)
class Part:
    """figures : by the names that they have on the page. frame : None without numbers."""

    figures: dict[str, Chart]
    frame: pd.DataFrame | None
    traces: tuple[Trace, ...] = ()


@dataclass(eq=False)
class Kept:
    """parts : by the name of the panel. query : the parameters of the address."""

    parts: dict[str, Part] = field(default_factory=dict)
    query: dict[str, list[str]] = field(default_factory=dict)


def kept() -> Kept:
    """The session's one Kept."""
    return st.session_state.setdefault(_KEPT, Kept())


def keep(panel: str, cells: Sequence[Cell], frames: Sequence[pd.DataFrame], traces: Sequence[Trace] = ()) -> None:
    """Say what a panel shows."""
    figures = {figure.name: figure for _, figure in cells if figure is not None}
    numbers = pd.concat(frames, ignore_index=True) if frames else None
    kept().parts[panel] = Part(figures, numbers, tuple(traces))
    kept().query = {key: st.query_params.get_all(key) for key in st.query_params}


def csv_button(panel: str) -> None:
    """The numbers of a panel as a file. Call it after `keep`; nothing is built before it is asked for."""
    part = kept().parts[panel]
    st.download_button(
        "Numbers as CSV",
        lambda: part.frame.to_csv(index=False).encode("utf-8-sig"),
        f"attnviz-{panel}.csv",
        "text/csv",
        on_click="ignore",
        key=f"csv-{panel}",
        help="The file counts steps, layers, heads and tokens from 0, as Python does.",
    )


def drop(panel: str) -> None:
    """A panel shows nothing."""
    kept().parts.pop(panel, None)
