"""Attention through the layers: rollout, and how far each layer looks."""

import html

import streamlit as st

from attnviz import figures, rollout, select
from attnviz.select import Grid
from dashboard.browser.plot import named, plots
from dashboard.choices.settings import number
from dashboard.heads.scene import Gallery
from dashboard.markup import parts, tables


@st.fragment
def show(current: Gallery, dark: bool) -> None:
    st.subheader("Through the layers", divider="gray")
    cells, grid = [], None
    if current.choice.kind in rollout.SELF:
        layer = st.segmented_control(
            "Rollout up to layer",
            current.layers,
            default=current.layers[-1],
            required=True,
            format_func=number,
            key="depth",
            bind="query-params",
            help="How much of each input reaches each position after this layer, if attention and the residual "
            "connections beside it were all that the layers did (Abnar & Zuidema 2020).",
        )
        try:
            grid = _rolled(current, layer)
            cells.append(
                (
                    _said(current, layer),
                    named(
                        figures.heatmap(grid, dark=dark, written=False, room=parts.HALF),
                        f"rollout layer {layer + 1}",
                        dark,
                    ),
                )
            )
        except ValueError as error:  # a trace from elsewhere that lacks a layer, or is of words
            cells.append((f'<p class="what" role="status">There is no rollout: {html.escape(str(error))}.</p>', None))
    else:
        cells.append(
            (
                '<p class="what" role="status">Rollout is for self-attention, whose layers stand on one another: choose the encoder or the decoder for it.</p>',
                None,
            )
        )
    frame = rollout.by_distance(current.shown, current.choice.kind)
    figure = named(figures.by_distance(frame, dark=dark), f"distance {current.choice.kind}", dark)
    plots([*cells, (_far(current), figure)], "depth")
    if current.choice.tables:
        if grid is not None:
            st.html(
                tables.grid_table(
                    f"Rollout up to layer {layer + 1}", grid, current.choice.languages, grid.weights, ".2f"
                )
            )
        st.html(_distances(frame))


def _rolled(current: Gallery, layer: int) -> Grid:
    """Rolled out in pieces; joined to words after that."""
    return select.select(
        rollout.rollout(current.trace, current.choice.kind), current.choice.kind, layer, words=current.choice.words
    )


def _said(current: Gallery, layer: int) -> str:
    layers = "layer 1" if layer == 0 else f"layers 1 to {layer + 1}"
    return f'<p class="what">Rollout of {layers}: mean of the heads and the residual, half and half, multiplied layer by layer.</p>'


def _far(current: Gallery) -> str:
    place = "the diagonal" if current.choice.kind == "cross" else "the query's own place"
    return f'<p class="what">Share of each layer\'s weight by how far from {place} it looks, all heads together.</p>'


def _distances(frame) -> str:
    wide = frame.pivot(index="distance", columns="layer", values="weight")
    rows = [
        (f"{distance:+d}", [tables.cell(value, ".3f") for value in row])
        for distance, row in zip(wide.index, wide.to_numpy())
    ]
    return tables.table("Share of a layer's weight by distance", [f"layer {layer + 1}" for layer in wide.columns], rows)
