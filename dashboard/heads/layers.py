"""Attention through the layers: rollout, and how far each layer looks."""

import streamlit as st

from attnviz import figures, rollout, select
from attnviz.export import heading
from attnviz.select import Grid
from dashboard.browser.plot import HALF, Cell, named, plots
from dashboard.choices.options import place_title
from dashboard.heads.scene import HeadsScene
from dashboard.markup import tables, terms
from dashboard.markup.text import escape, hatched, reading
from dashboard.session import address


@address.fragment
def show(current: HeadsScene, dark: bool) -> None:
    st.subheader("Through the layers", divider="gray")
    st.html(terms.line("rollout"))
    rollout_cell, rollout_table = _rollout(current, dark)
    frame = rollout.by_distance(current.shown, current.choices.kind)
    saved = heading.of_trace("Weight by distance", current.shown)
    figure = named(figures.by_distance(frame, dark=dark), f"distance {current.choices.kind}", dark, lines=saved)
    plots([rollout_cell, (_distance_words(current), figure)], "depth")
    if current.choices.tables:
        st.html(rollout_table + _distance_table(frame))


def _rollout(current: HeadsScene, dark: bool) -> tuple[Cell, str]:
    """The control of the layer -> words and figure of the rollout up to there, and its table; or why there is none."""
    if current.choices.kind not in rollout.SELF:
        return _no_rollout("Rollout needs self-attention. Choose the self-attention of the encoder or of the decoder.")
    layer = st.segmented_control(
        "Rollout up to layer",
        current.layers,
        default=current.layers[-1],
        required=True,
        format_func=place_title,
        key="depth",
        bind="query-params",
        help="Attention rollout estimates how much of each input token reaches each position after this layer. It "
        "models only attention and residual connections (Abnar & Zuidema 2020).",
    )
    try:
        grid = _grid(current, layer)
    except ValueError as error:  # a trace from elsewhere that lacks a layer, or is of words
        return _no_rollout(f"Rollout is not possible here: {error}.")
    name = f"rollout layer {layer + 1}"
    caption, languages = f"Rollout up to layer {layer + 1}", current.choices.languages
    saved = heading.of_trace(caption, current.shown)
    figure = named(figures.heatmap(grid, dark=dark, written=False, room=HALF), name, dark, lines=saved)
    cell = Cell(_rollout_words(layer, grid), figure, reading(grid, languages.unit))
    return cell, tables.grid_table(caption, grid, languages, grid.weights, ".2f")


def _no_rollout(reason: str) -> tuple[Cell, str]:
    return (f'<p class="what" role="status">{escape(reason)}</p>', None), ""


def _grid(current: HeadsScene, layer: int) -> Grid:
    """The rollout up to a layer, computed between pieces; then joined to words where words are shown."""
    kind = current.choices.kind
    return select.select(rollout.rollout(current.trace, kind), kind, layer, words=current.choices.words)


def _rollout_words(layer: int, grid: Grid) -> str:
    layers = "layer 1" if layer == 0 else f"layers 1 to {layer + 1}"
    return (
        f'<p class="what">Rollout of {layers}: half the mean of the heads plus half the residual connection, '
        f"multiplied layer by layer.{hatched(grid)}</p>"
    )


def _distance_words(current: HeadsScene) -> str:
    place = "the diagonal" if current.choices.kind == "cross" else "the query's own place"
    return f'<p class="what">Share of each layer\'s weight by distance from {place}. All heads together.</p>'


def _distance_table(frame) -> str:
    """The text equivalent."""
    wide = frame.pivot(index="distance", columns="layer", values="weight")
    rows = [
        (f"{distance:+d}", [tables.cell(value, ".3f") for value in row])
        for distance, row in zip(wide.index, wide.to_numpy())
    ]
    return tables.table(
        "Share of each layer's weight by distance", [f"layer {layer + 1}" for layer in wide.columns], rows
    )
