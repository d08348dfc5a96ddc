"""What a model that writes would say after each layer, and what each head adds to the logit of the token written."""

import html

import streamlit as st

from attnviz.figures.labels import plain
from dashboard.heads.scene import HeadsScene
from dashboard.markup import tables
from dashboard.session import caches

_PLACES = 12  # of the text, the last ones
_TOLERANCE = 1e-3  # of a sum of float32 numbers


def show(current: HeadsScene) -> None:
    """The logit lens as a table, and the parts of the last logit."""
    st.subheader("What it would say after each layer", divider="gray")
    layers, parts, logit = caches.stream(current.choices.source.name, current.trace)
    places = range(max(0, len(current.trace.target) - _PLACES), len(current.trace.target))
    names = [f"{place + 1} {plain(current.trace.target[place].text)}" for place in places]
    best = [[layer.alternatives[place][0] for place in places] for layer in layers]
    rows = [
        ("before layer 1" if number == 0 else f"after layer {number}", [_said(choice) for choice in row])
        for number, row in enumerate(best)
    ]
    st.html(
        '<p class="what">The logit lens: the final norm and the output matrix are applied to the vector of each '
        "position after each layer (nostalgebraist 2020). A cell has the most probable token and its probability. "
        f"The columns are the last {len(names)} tokens of the text. {html.escape(_change(best, names))}</p>"
        + tables.table("The most probable token after each layer, in place of each token", names, rows)
    )
    _parts(current, parts, logit)


def _said(choice) -> str:
    return f"{plain(choice.text)} {choice.probability:.2f}"


def _change(best: list[list], names: list[str]) -> str:
    """In how many places, and after which layer, the most probable token becomes that of the last layer."""
    settled = []
    for column in zip(*best):
        layer = len(column) - 1
        while layer and column[layer - 1].text == column[-1].text:
            layer -= 1
        settled.append(layer)
    counts = [f"{settled.count(layer)} after layer {layer}" for layer in sorted(set(settled)) if layer]
    early = settled.count(0)
    counts = ([f"{early} before layer 1"] if early else []) + counts
    return f"The model comes to its final answer, and keeps it: {', '.join(counts)} (of {len(names)} places)."


def _parts(current: HeadsScene, parts, logit: float) -> None:
    """The direct parts of the logit of the last token, the heads as a table of layers and heads."""
    token = plain(current.trace.target[-1].text)
    rows = [
        (
            f"layer {layer + 1}",
            [*(tables.cell(float(head), "+.2f") for head in heads), tables.cell(float(feed), "+.2f")],
        )
        for layer, (heads, feed) in enumerate(zip(parts.heads[:, :, -1], parts.feeds[:, -1]))
    ]
    columns = [*(f"head {head + 1}" for head in range(parts.heads.shape[1])), "feed-forward"]
    total = float(parts.total()[-1])
    agrees = "equal to" if abs(total - logit) <= _TOLERANCE * max(1, abs(logit)) else "NOT equal to"
    others = float(parts.embedding[-1] + parts.biases[:, -1].sum())
    st.html(
        f'<p class="what">The logit of the last token, {html.escape(token)}, is a sum of what each part adds directly '
        "(Elhage et al. 2021). What a part changes in later layers is not counted. Embedding and biases add "
        f"{tables.cell(others, '+.2f')}. Sum of all parts: {tables.cell(total, '.3f')}, {agrees} the logit of the "
        f"model, {tables.cell(logit, '.3f')}.</p>"
        + tables.table(f"What each head adds to the logit of {token}", columns, rows)
    )
