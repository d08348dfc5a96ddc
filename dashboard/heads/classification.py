"""The label that a classifier gives the sentence, the weight of each token in it, and how much each head matters."""

import streamlit as st

from attnviz import figures, mechanisms, select
from attnviz.figures.wording import signed
from dashboard.browser.plot import named, plots
from dashboard.heads.scene import HeadsScene
from dashboard.markup import tables, text
from dashboard.session import caches, memory


def show(current: HeadsScene, dark: bool) -> None:
    """The label with all probabilities; below it the pooling weights; beside them how much each head matters."""
    chances = " · ".join(
        f"{text.escape(label.text)} {label.probability:.3f}" for label in current.trace.alternatives[0]
    )
    verdict = (
        f'<p class="said" role="status"><b>{text.escape(current.trace.translation)}</b><br><small>probability: '
        f"{chances}</small></p>"
    )
    grid = select.select(current.shown)
    words = (
        f'{verdict}<p class="what">{text.escape(mechanisms.find(current.choices.mechanism).words)} Below: the weight '
        f"of each token, on a scale that ends near the largest.{text.unread(current.trace)}</p>"
    )
    left, right = st.columns([3, 2], gap="large")
    with left:
        plots([(words, named(figures.step_bars(grid, 0, whole=False, dark=dark), "pooling", dark))], "verdict")
    right.html(_used(current))
    if current.choices.tables:
        st.html(tables.grid_table("Pooling weight of each token", grid, current.choices.languages, grid.weights, ".3f"))


def _used(current: HeadsScene) -> str:
    """Each head switched off alone. There are few, so this needs no button."""
    name, trace = current.choices.source.name, current.trace
    label, measured = trace.translation, memory.head_changes(st.session_state, name, trace.text)
    measured += caches.importance(name, trace.text, label, current.all_heads[len(measured) :])
    rows = [(head.head.title, [signed(head.change)]) for head in sorted(measured, key=lambda head: head.change)]
    caption = (
        f"How much each head matters: change in the log-probability of “{label}” (nats) when the head is switched off. "
        f"Negative: the model is less sure of “{label}” without this head."
    )
    return tables.table(caption, ["change (nats)"], rows)
