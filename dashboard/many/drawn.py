"""What each panel of the page shows now, for the zip: a panel may be drawn again without the rest of the page."""

from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from attnviz.figures import Chart

_DRAWN = "drawn of many"


@dataclass(eq=False)
class Drawn:
    """figures, frames : by the name of the panel. query : the parameters of the address."""

    figures: dict[str, Chart] = field(default_factory=dict)
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    query: dict[str, list[str]] = field(default_factory=dict)


def drawn() -> Drawn:
    """The session's one Drawn."""
    return st.session_state.setdefault(_DRAWN, Drawn())


def keep(panel: str, figure: Chart | None, frame: pd.DataFrame) -> None:
    """Say what a panel shows."""
    now = drawn()
    if figure is not None:
        now.figures[panel] = figure
    now.frames[panel] = frame
    now.query = {key: st.query_params.get_all(key) for key in st.query_params}


def drop(panel: str) -> None:
    """A panel shows nothing."""
    drawn().figures.pop(panel, None)
    drawn().frames.pop(panel, None)
