"""Figures of tests of attention, as data."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from attnviz import figures, select
from attnviz.figures.faithfulness import agreement_bars, erasure_curves, saliency, variation_by_weight
from attnviz.trace import Token


def test_variation_against_weight():
    frame = pd.DataFrame(
        {
            "step": [0, 1],
            "max_weight": [0.9, 0.4],
            "median": [0.1, 0.6],
            "low": [0.05, 0.5],
            "high": [0.3, 0.8],
            "uniform": [0.2, 0.7],
        }
    )
    figure = variation_by_weight([Token("Le", 0, 2, word=0), Token("<b>", 2, 5, word=0)], frame)
    permuted, uniform = figure.data
    assert permuted.x == (0.9, 0.4) and permuted.y == (0.1, 0.6) and uniform.y == (0.2, 0.7)
    np.testing.assert_allclose(permuted.error_y.array, [0.2, 0.2])
    np.testing.assert_allclose(permuted.error_y.arrayminus, [0.05, 0.1])
    assert permuted.text == ("‘Le’ (1)", "‘·&lt;b&gt;’ (2)")
    assert "Least moved by permutation: ‘Le’, 0.10 at a maximum weight of 0.90." in figure.layout.meta["description"]


def test_saliency_has_the_axes_of_the_map_beside_it():
    grid = select.select(synthetic.trace("The <b> dog", "Le chien"))
    values = np.linspace(-0.5, 1, grid.weights.size).reshape(grid.weights.shape)
    figure, beside = saliency(grid, values, "integrated gradients"), figures.heatmap(grid)
    for name in ("xaxis", "yaxis"):
        assert figure.layout[name].ticktext == beside.layout[name].ticktext
        assert figure.layout[name].range == beside.layout[name].range
    assert figure.layout.margin.l == beside.layout.margin.l and figure.layout.height == beside.layout.height
    np.testing.assert_allclose(figure.data[0].z, values, atol=1e-5)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-1, 1)
    assert figure.data[0].hovertext[0][0] == "‘The’ (1) against ‘Le’ (1): -0.500"
    assert "Largest: <eos> speaks for <eos>, +1.000." in figure.layout.meta["description"]
    with pytest.raises(ValueError, match=r"^values must have the grid's shape"):
        saliency(grid, values[:1], "x")


def test_curves_are_means_over_target_tokens():
    frame = pd.DataFrame(
        {"share": [0.1, 0.5] * 2, "comprehensiveness": [0.2, 0.4, 0.4, 0.8], "sufficiency": [0.5, 0.1, 0.7, 0.3]}
    )
    figure = erasure_curves({"attention": frame, "a < b": frame / 2 + [0.05, 0, 0]})
    assert figure.data[0].x == (0.1, 0.5) and figure.data[0].y == (0.3, 0.6) and figure.data[2].y == (0.6, 0.2)
    assert figure.data[1].name == "a &lt; b"
    assert "attention: comprehensiveness 0.45, sufficiency 0.40" in figure.layout.meta["description"]
    with pytest.raises(ValueError, match="^frames must hold at least one order of tokens; got none$"):
        erasure_curves({})


def test_agreement_by_token_beside_random_orders():
    tokens = synthetic.tokens("Le chien")  # and <eos>
    frame = pd.DataFrame({"tau_b": [0.8, np.nan, -0.1], "top1": [True, False, False]})
    figure = agreement_bars(tokens, frame, 0.25)
    assert figure.data[0].y == (0.8, None, -0.1) and figure.data[0].marker.opacity == (1, 0.45, 0.45)
    assert (figure.layout.shapes[0].y0, figure.layout.shapes[0].y1) == (-0.49, 0.49)
    assert figure.data[0].hovertext[0] == "‘Le’ (1): τ-b +0.80, same first source token"
    words = figure.layout.meta["description"]
    assert (
        "for 3 target tokens: mean +0.35; random orders are expected to have 0 ± 0.25 for each. Lowest: <eos>, -0.10."
        in words
    )
    assert words.endswith("The same first source token for 1 of them.")
    with pytest.raises(ValueError, match="^frame must have one row per token, 3; got 2$"):
        agreement_bars(tokens, frame[:2], 0.25)
