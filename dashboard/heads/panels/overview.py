"""All heads of a kind as small maps; a click on one opens it below."""

import html

import plotly.graph_objects as go
import streamlit as st

from attnviz import figures
from attnviz.export import heading
from dashboard.browser.plot import named, plots
from dashboard.choices.options import kind_title
from dashboard.heads.scene import COLUMNS, HeadsScene, head_name
from dashboard.markup import tables


def show(current: HeadsScene, dark: bool) -> None:
    kind = kind_title(current.choices.kind)
    st.subheader(f"Every head: {kind[0].lower()}{kind[1:]}", divider="gray")
    plots([(_words(current), _figure(current, dark))], "overview")
    if current.choices.tables:
        st.html(_table(current))


def _figure(current: HeadsScene, dark: bool) -> go.Figure:
    choices = current.choices
    figure = figures.overview(
        current.shown,
        choices.kind,
        current.table,
        choices.order or None,
        choices.color or None,
        root=choices.root,
        row=current.written_row,
        dark=dark,
    )
    lines = heading.of_heads(current.shown, choices.kind)
    return named(figure, f"overview {choices.kind}", dark, heads=True, lines=lines)


def _words(current: HeadsScene) -> str:
    order = COLUMNS.get(current.choices.order, "")
    sorted_ = (
        f" Sorted by {html.escape(order[0].lower() + order[1:])}, highest first. Above each map: layer·head."
        if order
        else ""
    )
    return (
        '<p class="small">In each map, rows are queries and columns are keys. A stronger colour means more '
        f"weight. Click a map to open the head below.{sorted_}</p>"
    )


def _table(current: HeadsScene) -> str:
    """The text equivalent: the numbers that order and colour the heads; else three statistics."""
    chosen = [name for name in dict.fromkeys((current.choices.order, current.choices.color)) if name]
    chosen = chosen or ["entropy_nats", "max_weight", "distance"]
    rows = [
        (head_name(head), [tables.cell(value, ".3f") for value in values])
        for head, values in zip(current.heads, current.table[chosen].to_numpy())
    ]
    return tables.table("Every head: mean over the rows of its map", [COLUMNS[name] for name in chosen], rows)
