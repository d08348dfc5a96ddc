"""Checks of the arguments of figures."""

from __future__ import annotations

from attnviz import lazy_pandas as pd
from attnviz.arguments import listed


def require(frame: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    """ValueError when a frame lacks a column."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(f"the {name} must have the columns {listed(columns)}; {listed(missing)} missing")
