"""Weights set by hand: bars to drag, or to move with the arrow keys, and the same numbers as a text."""

import math

import streamlit as st

from attnviz.figures import labels
from attnviz.intervene import Change, Given
from dashboard.browser.drag import drag
from dashboard.inside.scene import InsideScene

_WANTED = (
    "Type {} numbers separated by commas, one for each source token. No number may be below 0, and at least one must "
    "be above 0."
)


def change(current: InsideScene) -> Change | None:
    """The weights of the step, as they were set, divided by their sum; at first those of the first model on show."""
    column = current.columns[0]
    tokens = column.trace.source
    step = min(st.session_state["step"], len(column.trace.target)) - 1
    own = column.grid(column.trace).weights[step].tolist()
    typed = st.session_state.get("given", st.query_params.get("given", ""))
    weights = _read(typed, len(tokens)) or own
    drag([labels.plain(token.text) for token in tokens], weights, _take, "weights")
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    typed = left.text_input(
        "The same as numbers, one for each source token",
        key="given",
        bind="query-params",
        placeholder=", ".join(f"{weight:.2f}" for weight in own),
        help="They are divided by their sum.",
    )
    right.button("The model’s weights", key="own_weights", on_click=_take, args=(None,))
    if typed and _read(typed, len(tokens)) is None:
        st.html(f'<p class="over" role="status">{_WANTED.format(len(tokens))}</p>')
        return None
    weights = _read(typed, len(tokens)) or own
    total = sum(weights)
    return Given(tuple(round(weight / total, 6) for weight in weights))


def _take(weights: list[float] | None) -> None:
    """Weights that were dragged; None for the model's own."""
    st.session_state["given"] = "" if weights is None else ", ".join(f"{weight:g}" for weight in weights)


def _read(text: str, count: int) -> list[float] | None:
    """As many numbers as there are tokens, none below 0, not all 0; None of any other text."""
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    fits = len(weights) == count and all(math.isfinite(weight) and weight >= 0 for weight in weights)
    return weights if fits and 0 < sum(weights) < math.inf else None
