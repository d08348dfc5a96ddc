"""The sidebar of the page of one step: the language pair, the mechanisms, what they write, a Transformer's head."""

import streamlit as st

from attnviz.mechanisms import MECHANISMS
from dashboard.choices import pairs
from dashboard.choices.options import OWN, model
from dashboard.inside.scene import InsideScene
from dashboard.session import catalogue, memory
from dashboard.shell import widgets


def show() -> dict:
    """Everything but the text -> fields of InsideChoices."""
    widgets.brand("One step of attention with all its numbers: what makes it, what changes it, and whether it matters.")
    offered = catalogue.attending()
    pair = st.selectbox(
        "Language pair",
        list(offered),
        format_func=lambda name: pairs.task(name).title,
        key="pair",
        bind="query-params",
        on_change=_enter,
    )
    widgets.keep_those(offered[pair])
    chosen = widgets.mechanisms(offered[pair])
    fields = {"pair": pair, "mechanisms": tuple(chosen)} | widgets.target(pair, offered[pair])
    fields |= {"beam": widgets.beam()}
    if several := next((name for name in chosen if MECHANISMS[name].multi_head), None):
        layers, heads = catalogue.layers_and_heads(model(pair, several))
        fields |= {"layer": widgets.layer(range(layers), layers - 1), "head": widgets.head(heads, 0)}
    return fields | {"tables": widgets.tables()}


def _enter() -> None:
    """Another pair gets the same sentence, unless it reads another language or the sentence was an example."""
    facts = pairs.task(st.session_state["pair"])
    last: InsideScene | None = memory.last(st.session_state, "inside")
    before = pairs.task(last.choices.pair) if last else facts
    if before.source != facts.source or st.session_state.get("text") in before.offered:
        st.session_state["text"] = facts.first
    st.session_state.update(target=OWN, force="")
