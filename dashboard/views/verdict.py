"""What a classifier says of the sentence, and how much of each token is in it."""

import html

import streamlit as st

from attnviz import figures, select
from attnviz.mechanisms import CLASSIFIERS
from dashboard.gallery import Gallery
from dashboard.plot import named, plots
from dashboard.views import parts


def show(current: Gallery, dark: bool) -> None:
    """The label and the probability of each; under it the weights that pool the tokens."""
    chances = " · ".join(f"{html.escape(label.text)} {label.probability:.3f}" for label in current.trace.alternatives[0])
    said = f'<p class="said" role="status"><b>{html.escape(current.trace.translation)}</b><br><small>probability: {chances}</small></p>'
    grid = select.select(current.shown)
    words = f'{said}<p class="what">{html.escape(CLASSIFIERS[current.choice.mechanism].words)} Below: how much of each.</p>'
    plots([(words, named(figures.step_bars(grid, 0, dark=dark), "pooling", dark))], "verdict")
    if current.choice.tables:
        st.html(parts.grid_table("How much of each token decides", grid, current.choice.languages, grid.weights, ".3f"))
