"""The sidebar of the page of many sentences: the language pair, the mechanisms, the kind of attention."""

import streamlit as st

from dashboard.choices import pairs
from dashboard.choices.options import KINDS, facts
from dashboard.session import catalogue
from dashboard.shell import widgets


def show() -> dict:
    """Draw the sidebar -> fields of ManyChoices, except those with controls beside the sentences."""
    widgets.brand("Statistics of attention over many sentences: how they are spread, and which sentences stand out.")
    offered = catalogue.attending()
    pair = widgets.language_pair(offered)
    chosen, guest = offered[pair][:1], ""
    if not pairs.task(pair).writes:
        _, chosen, guest = widgets.models(pair, offered[pair])
    kinds = [kind for kind in KINDS if any(kind in facts(name).kinds for name in chosen)] or ["cross"]
    kind = st.selectbox("Which attention", kinds, format_func=KINDS.get, key="kind", bind="query-params")
    return {"pair": pair, "mechanisms": tuple(chosen), "kind": kind, "tables": widgets.tables(), "guest": guest}
