"""What a classifier says of the sentence, how much of each token is in it, and the heads that it used."""

import html

import streamlit as st

from attnviz import figures, mechanisms, select
from dashboard.browser.plot import named, plots
from dashboard.heads.scene import Gallery, head_name
from dashboard.markup import parts, tables
from dashboard.session import state


def show(current: Gallery, dark: bool) -> None:
    """The label and the probability of each; under it the weights that pool the tokens; beside them what each head matters."""
    chances = " · ".join(
        f"{html.escape(label.text)} {label.probability:.3f}" for label in current.trace.alternatives[0]
    )
    said = f'<p class="said" role="status"><b>{html.escape(current.trace.translation)}</b><br><small>probability: {chances}</small></p>'
    grid = select.select(current.shown)
    words = f'{said}<p class="what">{html.escape(mechanisms.find(current.choice.mechanism).words)} Below: how much of each.{parts.unread(current.trace)}</p>'
    left, right = st.columns([3, 2], gap="large")
    with left:
        plots([(words, named(figures.step_bars(grid, 0, dark=dark), "pooling", dark))], "verdict")
    right.html(_used(current))
    if current.choice.tables:
        st.html(
            tables.grid_table("How much of each token decides", grid, current.choice.languages, grid.weights, ".3f")
        )


def _used(current: Gallery) -> str:
    """Each head switched off alone; they are few, so nobody is asked whether to wait."""
    label, found = (
        current.trace.translation,
        state.found(st.session_state, current.choice.source.name, current.trace.text),
    )
    found += state.importance(current.choice.source.name, current.trace.text, label, current.every[len(found) :])
    rows = [(head_name(one.head), [f"{one.change:+.3f}"]) for one in sorted(found, key=lambda one: one.change)]
    caption = f"The heads that it used: change in the log-probability of “{label}” when one is switched off, in nats; below 0, it spoke for it"
    return tables.table(caption, ["change, nats"], rows)
