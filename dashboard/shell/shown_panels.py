"""What each panel of a page shows now, for the zip of the page. A panel may be drawn again without the rest of the
page, so each panel says what it shows when it is drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from attnviz.figures import Chart
from attnviz.trace import Trace


@dataclass(frozen=True, eq=False)
class ShownPanel:
    """figures : by the names that they have in the zip. frame : None without numbers."""

    figures: Mapping[str, Chart]
    frame: pd.DataFrame | None = None
    traces: tuple[Trace, ...] = ()


@dataclass(eq=False)
class ShownPanels:
    """panels : by name. query : the parameters of the address."""

    panels: dict[str, ShownPanel] = field(default_factory=dict)
    query: dict[str, list[str]] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, Chart]:
        """Of all panels."""
        return {name: figure for panel in self.panels.values() for name, figure in panel.figures.items()}

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """By the name of the panel."""
        return {name: panel.frame for name, panel in self.panels.items() if panel.frame is not None}

    @property
    def traces(self) -> list[Trace]:
        """Of all panels."""
        return [trace for panel in self.panels.values() for trace in panel.traces]


def shown(page: str) -> ShownPanels:
    """The session's panels of a page."""
    return st.session_state.setdefault(f"shown panels of {page}", ShownPanels())


def keep(
    page: str, panel: str, figures: Mapping[str, Chart], frame: pd.DataFrame | None, traces: Sequence[Trace] = ()
) -> None:
    """Say what a panel shows."""
    now = shown(page)
    now.panels[panel] = ShownPanel(figures, frame, tuple(traces))
    now.query = {key: st.query_params.get_all(key) for key in st.query_params}


def drop(page: str, panel: str) -> None:
    """A panel shows nothing."""
    shown(page).panels.pop(panel, None)
