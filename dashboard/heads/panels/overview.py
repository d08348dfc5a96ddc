"""All heads of a kind as small maps; a click on one opens it below."""

import html

import plotly.graph_objects as go
import streamlit as st

from attnviz import figures
from dashboard.browser.plot import named, plots
from dashboard.choices.settings import KINDS
from dashboard.heads.scene import COLUMNS, Gallery, head_name
from dashboard.markup import tables


def show(current: Gallery, dark: bool) -> None:
    kind = KINDS[current.choice.kind].split(" (")[0]
    st.subheader(f"Every head: {kind[0].lower()}{kind[1:]}", divider="gray")
    plots([(_words(current), _figure(current, dark))], "overview")
    if current.choice.tables:
        st.html(_table(current))


def _figure(current: Gallery, dark: bool) -> go.Figure:
    choice = current.choice
    figure = figures.overview(
        current.shown,
        choice.kind,
        current.table,
        choice.order or None,
        choice.color or None,
        root=choice.root,
        dark=dark,
    )
    return named(figure, f"overview {choice.kind}", dark, heads=True)


def _words(current: Gallery) -> str:
    order = COLUMNS.get(current.choice.order, "")
    sorted_ = (
        f" Sorted by {html.escape(order[0].lower() + order[1:])}, the highest first; layer·head above each."
        if order
        else ""
    )
    return f'<p class="small">In each map a row is a query and a column a key; the stronger the colour, the more weight. A click opens the head below.{sorted_}</p>'


def _table(current: Gallery) -> str:
    """The text equivalent: the numbers that order and colour the heads, or those that say most."""
    chosen = [name for name in dict.fromkeys((current.choice.order, current.choice.color)) if name]
    chosen = chosen or ["entropy_nats", "max_weight", "distance"]
    rows = [
        (head_name(head), [tables.cell(value, ".3f") for value in values])
        for head, values in zip(current.heads, current.table[chosen].to_numpy())
    ]
    return tables.table("Every head: mean over the rows of its map", [COLUMNS[name] for name in chosen], rows)
