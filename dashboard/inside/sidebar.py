"""The sidebar of the page of one step: the language pair, one model, and a Transformer's layer and head."""

import streamlit as st

from attnviz.mechanisms import MECHANISMS
from dashboard.choices import pairs
from dashboard.choices.options import model, number, title
from dashboard.session import catalogue, memory
from dashboard.shell import widgets


def show() -> dict:
    """Everything but the text -> fields of InsideChoices, and `pair`."""
    widgets.brand("One step of attention with all its numbers: what makes it, what changes it, and whether it matters.")
    offered = attending()
    pair = st.selectbox(
        "Language pair",
        list(offered),
        format_func=lambda name: pairs.of(name).title,
        key="pair",
        bind="query-params",
        on_change=_enter,
    )
    mechanism = st.selectbox("Mechanism", offered[pair], format_func=title, key="mechanism", bind="query-params")
    name = model(pair, mechanism)
    fields = {"pair": pair, "model": name}
    if MECHANISMS[mechanism].multi_head:
        layers, heads = catalogue.layers_and_heads(name)
        fields |= {"layer": widgets.layer(range(layers), layers - 1), "head": _head(heads)}
    return fields | {"tables": widgets.tables()}


def attending() -> dict[str, list[str]]:
    """pair -> its mechanisms that attend; pairs without one are left out."""
    attending = {
        pair: [name for name in names if MECHANISMS[name].kinds] for pair, names in catalogue.offered().items()
    }
    return {pair: names for pair, names in attending.items() if names}


def _head(count: int) -> int:
    return st.segmented_control(
        "Head", range(count), default=0, format_func=number, key="head", required=True, bind="query-params"
    )


def _enter() -> None:
    """Another pair gets the same sentence, unless it reads another language or the sentence was an example."""
    facts, last = pairs.of(st.session_state["pair"]), memory.last(st.session_state, "inside")
    before = last.languages if last else facts
    if before.source != facts.source or st.session_state.get("text") in before.examples:
        st.session_state["text"] = facts.first
