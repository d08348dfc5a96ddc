"""The page of heads: every layer and head of one model on one sentence; at a glance, up close, measured and switched off."""

import streamlit as st

from attnviz.mechanisms import CLASSIFIERS
from dashboard import controls, gallery, pairs, state
from dashboard.gallery import COLUMNS, Choice, Gallery, kinds, model_title
from dashboard.scene import SceneError
from dashboard.settings import KINDS
from dashboard.views import alike, closeup, compared, depth, overview, parts, switched_off, verdict


def sidebar() -> dict:
    """What holds for all panels but the sentence -> fields of Choice."""
    with st.sidebar:
        controls.brand("Every layer and head of one trained model: at a glance, up close, measured and switched off.")
        models = state.many_headed()
        if not models:
            return {}
        model = st.selectbox("Model", models, format_func=model_title, key="model", bind="query-params", on_change=_enter)
        kind = st.selectbox("Which attention", kinds(model), format_func=KINDS.get, key="kind", bind="query-params")
        return {"model": model, "kind": kind} | _overview()


def _overview() -> dict:
    columns = {"options": ["", *COLUMNS], "bind": "query-params"}
    order = st.selectbox("Order of the heads", format_func=lambda name: COLUMNS.get(name, "layer by layer"), key="order", **columns,
                         help="By a statistic: its mean over the rows, the highest first.")  # fmt: skip
    color = st.selectbox("Frames show", format_func=lambda name: COLUMNS.get(name, "nothing"), key="color", **columns)
    root = st.toggle("Faint weights too", key="faint", bind="query-params",
                     help="Shades of the overview follow the square root of the weights.")  # fmt: skip
    units = st.segmented_control(
        "Tokens", ["pieces", "words"], default="pieces", required=True, key="units", bind="query-params",
        help="For whole words, weights are summed over the pieces of a key and averaged over those of a query.",
    )  # fmt: skip
    special = st.toggle(
        "Show special tokens", True, key="special", bind="query-params",
        help="In the close-up and in the heads compared. Hidden, the other weights are scaled up to sum to 1, and the page says how "
        "much was removed. Overview, statistics, patterns and rollout are as computed.",
    )  # fmt: skip
    tables = st.toggle("Charts as tables too", key="tables", bind="query-params", help="Puts the numbers of each chart below it.")
    return {"order": order, "color": color, "root": root, "words": units == "words", "special": special, "tables": tables}


def _enter() -> None:
    """Another model is asked the same, unless it reads another language or the sentence was an example."""
    facts = pairs.of(st.session_state["model"].partition("/")[0])
    last: Gallery | None = state.last(st.session_state, state.GALLERY)
    before = last.choice.languages if last else facts
    if before.source != facts.source or st.session_state["text"] in before.examples:
        st.session_state["text"] = facts.first


@st.fragment
def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; a text that fails leaves the last good picture.

    A fragment, and each panel that has controls is one: what is chosen there draws that panel again and nothing else.
    """
    if not fields:
        st.error("There is no model with several heads here: a Transformer or a classifier is needed.", icon=":material/info:")
        return
    text = controls.sentence(fields["model"].partition("/")[0])
    current = _compose(Choice(text, **fields), st.container(key="notice"))
    if current is None:
        return
    dark = st.context.theme.type == "dark"
    if current.choice.mechanism in CLASSIFIERS:
        verdict.show(current, dark)
    else:
        st.html(parts.output(current.trace, current.choice.languages.target))
    overview.show(current, dark)
    closeup.show(current, dark)
    compared.show(current, dark)
    compared.table(current)
    for panel in (alike.show, depth.show, switched_off.show, switched_off.importance):
        panel(current, dark)


def _compose(choice: Choice, notice) -> Gallery | None:
    try:
        current = gallery.compose(choice, state.read, state.measure)
    except SceneError as error:
        notice.error(parts.markdown(str(error)), icon=":material/info:")
        last = state.last(st.session_state, state.GALLERY)
        if last is not None:
            notice.caption("Below is the last sentence that could be shown:")
            notice.text(last.choice.text)
        return last
    state.remember(current, st.session_state, state.GALLERY)
    return current
