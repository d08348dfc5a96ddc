"""What the panels of the page of many sentences show now (dashboard/shell/shown_panels.py)."""

import pandas as pd

from attnviz.figures import Chart
from dashboard.shell import shown_panels

PAGE = "many"


def keep(panel: str, figure: Chart | None, frame: pd.DataFrame) -> None:
    """Say what a panel shows."""
    shown_panels.keep(PAGE, panel, {} if figure is None else {panel: figure}, frame)


def drop(panel: str) -> None:
    """A panel shows nothing."""
    shown_panels.drop(PAGE, panel)
