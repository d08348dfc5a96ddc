"""Bars that a person drags, or moves with the arrow keys: each is a slider of the browser's own."""

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.browser import scripts

_component = st.components.v2.component(
    "attnviz_drag",
    html='<div class="drag-bars"></div>',
    isolate_styles=False,
    js=scripts.read("drag.js"),
)


def drag(tokens: Sequence[str], weights: Sequence[float], on_weights: Callable[[list[float]], None], key: str) -> None:
    """One bar per token, from 0 to 1; `on_weights` gets all of them when one is let go. They need not sum to 1."""
    name = f"drag-{key}"

    def moved() -> None:
        weights = st.session_state[name].get("weights")
        if weights is not None:
            on_weights([float(weight) for weight in weights])

    data = {"tokens": list(tokens), "weights": [round(float(weight), 4) for weight in weights]}
    _component(key=name, data=data, on_weights_change=moved)
