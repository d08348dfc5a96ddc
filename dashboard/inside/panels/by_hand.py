"""Weights set by hand, for each model: bars to drag, or to move with the arrow keys, and the same numbers as a text."""

import functools
import html
import math

import streamlit as st

from attnviz import intervene
from attnviz.figures import labels
from attnviz.intervene import Change, Given
from attnviz.models.names import ModelName
from dashboard.browser.drag import drag
from dashboard.inside.scene import Column, InsideScene
from dashboard.markup.text import markdown

_WANTED = (
    "Type {} numbers separated by commas, one for each source token. No number may be below 0, and at least one must "
    "be above 0."
)


def changes(current: InsideScene) -> dict[str, Change]:
    """Model -> the weights that were set for it, divided by their sum; no change for a model whose bars nobody moved.

    A model is left out where the step or usable numbers are missing.
    """
    step = st.session_state["step"] - 1
    shown = [column for column in current.columns if step < len(column.trace.target)]
    chosen = {column.model: _change(column, current, step) for column in shown}
    if chosen and all(isinstance(change, intervene.Identity) for change in chosen.values()):
        st.html(
            '<p class="small" role="status">No bar has been moved: each model has its own weights, and nothing changes.'
            "</p>"
        )
    return {model: change for model, change in chosen.items() if change is not None}


def _change(column: Column, current: InsideScene, step: int) -> Change | None:
    """The change of one model; None where the typed numbers cannot be used."""
    first = column is current.columns[0]
    suffix = "" if first else f"-{ModelName.parse(column.model).mechanism}"
    key, tokens = f"given{suffix}", column.trace.source
    own = column.grid(column.trace).weights[step].tolist()
    typed = st.session_state.get(key, st.query_params.get(key, ""))
    weights = _read(typed, len(tokens))
    if len(current.columns) > 1:
        st.caption(markdown(f"{column.title}{column.place}"))
    take = functools.partial(_take, key)
    drag([labels.plain(token.text) for token in tokens], weights or own, take, f"weights{suffix}", column.title)
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    typed = left.text_input(
        "The same as numbers, one for each source token",
        key=key,
        bind="query-params",
        placeholder=", ".join(f"{weight:.2f}" for weight in own),
        help="They are divided by their sum.",
    )
    right.button("The model’s weights", key=f"own_weights{suffix}", on_click=take, args=(None,))
    if not typed:
        return intervene.Identity()
    if (weights := _read(typed, len(tokens))) is None:
        wanted = html.escape(f"{column.title}: {_WANTED.format(len(tokens))}")
        st.html(f'<p class="over" role="status">{wanted}</p>')
        return None
    return Given(tuple(weights))


def _take(key: str, weights: list[float] | None) -> None:
    """Weights that were dragged; None for the model's own."""
    st.session_state[key] = "" if weights is None else ", ".join(f"{round(weight, 4):g}" for weight in weights)


def _read(text: str, count: int) -> list[float] | None:
    """As many numbers as there are tokens, divided by their sum; None of any other text, of a number below 0, and where
    all are 0."""
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    fits = len(weights) == count and all(math.isfinite(weight) and weight >= 0 for weight in weights)
    total = sum(weights)
    return [round(weight / total, 6) for weight in weights] if fits and 0 < total < math.inf else None
