"""Bars that a person drags, or moves with the arrow keys: each is a slider of the browser's own."""

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.browser import script

_component = st.components.v2.component(
    "attnviz_drag",
    html='<div class="drag-bars"></div><p class="small drag-sum" role="status"></p>',
    isolate_styles=False,
    js=script("drag.js"),
)


def drag(
    tokens: Sequence[str], weights: Sequence[float], on_weights: Callable[[list[float]], None], key: str, model: str
) -> None:
    """One bar per token, from 0 to 1, which sum to 1: a bar that moves takes its weight from the others in proportion.

    weights : at least 0, with a sum of 1. on_weights : gets all weights when a bar is let go.
    model : its name, which each bar and the sum say to a screen reader.
    """
    name = f"drag-{key}"

    def moved() -> None:
        weights = st.session_state[name].get("weights")
        if weights is not None:
            on_weights([float(weight) for weight in weights])

    data = {"tokens": list(tokens), "weights": [round(float(weight), 6) for weight in weights], "model": model}
    _component(key=name, data=data, on_weights_change=moved)
