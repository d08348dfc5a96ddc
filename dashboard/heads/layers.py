"""Attention through the layers: rollout, and weight by distance. For a model that writes, also its predictions after
each layer, and the parts of a logit."""

from collections import Counter

import numpy as np
import streamlit as st

from attnviz import figures, rollout, select
from attnviz.export import heading
from attnviz.figures import labels
from attnviz.select import Grid
from dashboard.browser.plot import HALF, Cell, named, plots
from dashboard.choices.options import place_title
from dashboard.heads.scene import HeadsScene
from dashboard.markup import tables, terms
from dashboard.markup.text import escape, hatched, reading
from dashboard.session import address, caches
from dashboard.shell.problems import sentence

_PLACES = 12  # of the text, the last ones
_TOLERANCE = 1e-3  # of a sum of float32 numbers


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
        joined = rollout.rollout(current.trace, current.choices.kind)  # between pieces, then joined to words
        grid = select.select(joined, current.choices.kind, layer, words=current.choices.words)
    except ValueError as error:  # a trace from elsewhere that lacks a layer, or is of words
        return _no_rollout(f"Rollout is not possible here: {error}.")
    name = f"rollout layer {layer + 1}"
    caption, languages = f"Rollout up to layer {layer + 1}", current.choices.languages
    saved = heading.of_trace(caption, current.shown)
    figure = named(figures.heatmap(grid, dark=dark, written=False, room=HALF), name, dark, lines=saved)
    cell = Cell(_rollout_words(layer, grid), figure, reading(grid, languages.unit))
    return cell, tables.grid_table(caption, grid, languages)


def _no_rollout(reason: str) -> tuple[Cell, str]:
    return (f'<p class="what" role="status">{escape(reason)}</p>', None), ""


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
    rows = tables.of_numbers([f"{distance:+d}" for distance in wide.index], wide.to_numpy(), ".3f")
    layers = [f"layer {layer + 1}" for layer in wide.columns]
    return tables.table("Share of each layer's weight by distance", layers, rows)


def show_residual(current: HeadsScene) -> None:
    """The logit lens as a table, and the parts of the last logit."""
    st.subheader("What it would say after each layer", divider="gray")
    if not current.trace.target:
        st.html('<p class="small" role="status">Let the model write a token, and this shows where it comes from.</p>')
        return
    try:
        layers, parts, logit = caches.stream(current.choices.source.name, current.trace)
    except ValueError as error:  # of a family that is not known well enough
        st.html(f'<p class="small" role="status">{escape(sentence(str(error)))}</p>')
        return
    names = tables.numbered(current.trace.target)[-_PLACES:]
    best = [[choices[0] for choices in layer.alternatives[-_PLACES:]] for layer in layers]
    rows = [
        (
            "before layer 1" if number == 0 else f"after layer {number}",
            [f"{labels.plain(choice.text)} {choice.probability:.2f}" for choice in row],
        )
        for number, row in enumerate(best)
    ]
    st.html(
        '<p class="what">The logit lens: the final norm and the output matrix are applied to the vector of each '
        "position after each layer (nostalgebraist 2020). A cell has the most probable token and its probability. "
        f"The columns are the last {len(names)} tokens of the text. {escape(_change(best, names))}</p>"
        + tables.table("The most probable token after each layer, in place of each token", names, rows)
    )
    if logit is None:
        st.html(f'<p class="small" role="status">What each head adds is not shown. {escape(sentence(parts))}</p>')
    else:
        _parts(current, parts, logit)


def _change(best: list[list], names: list[str]) -> str:
    """A sentence on where, and after which layer, the most probable token becomes that of the last layer."""
    settled = Counter()
    for column in zip(*best):
        others = [layer for layer, choice in enumerate(column) if choice.text != column[-1].text]
        settled[max(others, default=-1) + 1] += 1
    counts = [
        f"{count} {f'after layer {layer}' if layer else 'before layer 1'}" for layer, count in sorted(settled.items())
    ]
    return f"The model comes to its final answer, and keeps it: {', '.join(counts)} (of {len(names)} places)."


def _parts(current: HeadsScene, parts, logit: float) -> None:
    """The direct parts of the logit of the last token, the heads as a table of layers and heads."""
    token = labels.shown(current.trace.target)[-1]
    added = np.column_stack([parts.heads[:, :, -1], parts.feeds[:, -1]])
    rows = tables.of_numbers([f"layer {layer + 1}" for layer in range(len(added))], added, "+.2f")
    columns = [*(f"head {head + 1}" for head in range(parts.heads.shape[1])), "feed-forward"]
    total = float(parts.total()[-1])
    agrees = "equal to" if abs(total - logit) <= _TOLERANCE * max(1, abs(logit)) else "NOT equal to"
    others = float(parts.others[-1])
    st.html(
        f'<p class="what">The logit of the last token, {escape(token)}, is a sum of what each part adds directly '
        "(Elhage et al. 2021). What a part changes in later layers is not counted. Embedding and biases add "
        f"{tables.cell(others, '+.2f')}. Sum of all parts: {tables.cell(total, '.3f')}, {agrees} the logit of the "
        f"model, {tables.cell(logit, '.3f')}.</p>"
        + tables.table(f"What each head adds to the logit of {token}", columns, rows)
    )
