"""The sidebar of the page of one step: the language pair, the mechanisms, their output, a Transformer's head."""

import streamlit as st

from attnviz.models.names import is_hugging_face
from dashboard.choices import pairs
from dashboard.choices.options import MOST_WRITTEN, OWN, facts, model
from dashboard.inside.scene import InsideScene
from dashboard.session import catalogue, memory
from dashboard.shell import frame, widgets


def show() -> dict:
    """Everything but the text -> fields of InsideChoices."""
    widgets.brand("One step of attention with all its numbers: what makes it, what changes it, and whether it matters.")
    offered = catalogue.attending()
    pair = widgets.language_pair(offered, _enter)
    fields = _of_writers(pair, offered[pair]) if pairs.task(pair).writes else _of_translators(pair, offered[pair])
    chosen = fields["mechanisms"]
    if several := [model(pair, name) for name in chosen if facts(name).multi_head]:
        layers, heads = widgets.layers_and_heads(several)
        last, _ = widgets.layers_and_heads(several[:1])
        fields |= {"layer": widgets.layer(range(layers), last - 1), "head": widgets.head(heads, 0)}
    return fields | {"tables": widgets.tables()}


def _of_translators(pair: str, offered: list[str]) -> dict:
    listed, chosen, _ = widgets.models(pair, offered)
    return {"pair": pair, "mechanisms": tuple(chosen)} | widgets.target(pair, listed) | {"beam": widgets.beam()}


def _of_writers(pair: str, offered: list[str]) -> dict:
    piece = pairs.task(pair).piece
    _, chosen, _ = widgets.models(pair, offered)
    least = int(any(map(is_hugging_face, chosen)))  # such a model has no row for a text that it only reads
    frame.slider_value("added", least, MOST_WRITTEN)
    written = st.slider(
        f"{piece.capitalize()}s written",
        least,
        MOST_WRITTEN,
        20,
        key="added",
        bind="query-params",
        help=f"The model writes on after your text, each time the most probable {piece}. On “Heads and layers” it can "
        "also draw them.",
    )
    return {"pair": pair, "mechanisms": tuple(chosen), "written": written}


def _enter() -> None:
    """After a change of the pair, keep the sentence, unless its language differs or the sentence was an example."""
    task = pairs.task(st.session_state["pair"])
    last: InsideScene | None = memory.last(st.session_state, "inside")
    before = pairs.task(last.choices.pair) if last else task
    if before.source != task.source or st.session_state.get("text") in before.offered:
        st.session_state["text"] = task.first
    st.session_state.update(target=OWN, force="")
