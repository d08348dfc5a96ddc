"""What the page says to its scripts (arguments.js): see scripts/bridge.js, and the others for one thing each. No frame,
no network.
"""

from collections.abc import Callable

import streamlit as st

from dashboard.browser import script

_component = st.components.v2.component("attnviz_bridge", js=script("arguments.js"), isolate_styles=False)


def bridge(
    row: int = -1,
    steps: int = 1,
    on_row: Callable[[int], None] | None = None,
    head: tuple[int, int] | None = None,
    on_head: Callable[[int, int], None] | None = None,
) -> None:
    """Every page calls it once, after its charts: they get their buttons, and another theme runs the page again.
    On the heatmaps, outline the step, and call `on_row` when a row is clicked.

    row : the step, from 0, until the slider of key `step` says otherwise; with one step there is no slider. -1: none.
    head : layer and head, outlined in the pictures of heads, where a click calls `on_head` with the two.
    """

    def row_clicked() -> None:
        picked = st.session_state["bridge"].get("row")
        if picked is not None and on_row is not None:
            on_row(int(picked))

    def head_clicked() -> None:
        picked = st.session_state["bridge"].get("head")
        if picked is not None and on_head is not None:
            on_head(*map(int, picked))

    result = _component(
        key="bridge",
        data={"row": row, "steps": steps, "head": head},
        on_row_change=row_clicked,
        on_head_change=head_clicked,
        on_theme_change=lambda: None,
    )
    if result.get("theme"):
        st.rerun()
