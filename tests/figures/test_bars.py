"""Bars of one step, the difference of two maps, and what describes a figure."""

import grids
import numpy as np
import pytest
from grids import grid, words

from attnviz import figures


@pytest.fixture
def dog():
    return grids.dog()


def sentence(figure, query, key):
    """What the pointer reads over a cell."""
    return figure.data[0].hovertext[query][key]


# --- step bars


def test_bars_stand_under_the_columns_of_the_heatmap(dog):
    heatmap, bars = figures.heatmap(dog, step=1), figures.step_bars(dog, 1)
    assert np.allclose(bars.data[0].y, dog.weights[1], atol=5e-5) and bars.layout.yaxis.range == (0, 1)
    assert (
        bars.layout.xaxis.range == heatmap.layout.xaxis.range
        and bars.layout.xaxis.ticktext == heatmap.layout.xaxis.ticktext
    )
    assert (bars.layout.margin.l, bars.layout.margin.r) == (heatmap.layout.margin.l, heatmap.layout.margin.r)
    assert bars.layout.xaxis.tickangle == heatmap.layout.xaxis.tickangle and bars.data[0].text == ("", "0.83", "")
    assert bars.data[0].hovertext[1] == "‘noir’ (2) looks at ‘black’ (2): 0.83"


def test_bars_of_a_blank_step_say_why():
    blank = grid(words("a"), words("c"), [[np.nan, np.nan], [0.5, 0.5]], removed=[1, 0])
    figure = figures.step_bars(blank, 0)
    assert "special tokens" in figure.layout.annotations[0].text and np.isnan(figure.data[0].y).all()


# --- difference


def test_difference_is_symmetric_around_zero_and_says_who_looks_more(dog):
    values = np.zeros((3, 3))
    values[1, 1], values[0, 0] = 0.214, -0.5
    figure = figures.difference(values, dog, ("Bahdanau", "Luong"))
    cells = figure.data[0]
    assert (cells.zmin, cells.zmax) == (-1, 1) and len(cells.colorscale) % 2 == 1
    assert sentence(figure, 1, 1) == "‘noir’ (2) looks at ‘black’ (2): 0.21 more in Bahdanau than in Luong"
    assert sentence(figure, 0, 0).endswith("0.50 more in Luong than in Bahdanau")
    assert sentence(figure, 2, 2).endswith("the same in Bahdanau and Luong")
    assert "‘chien’ looks at ‘dog’, 0.50 more in Luong" in figure.layout.meta["description"]


def test_cells_that_are_clearly_negative_carry_a_dash(dog):
    """In grey the two ends of the scale look the same."""
    values = np.zeros(dog.weights.shape)
    values[1, 2], values[2, 0], values[0, 1] = -0.3, -0.04, 0.6
    figure = figures.difference(values, dog, ("Bahdanau", "Luong"))
    assert {shape.path for shape in figure.layout.shapes} == {"M1.80,1H2.20"}
    assert "A dash marks what is more in Luong." in figure.description
    assert figure.data[0].colorbar.ticktext[1] == "◂ Luong (–)"
    assert not figures.difference(np.abs(values), dog).layout.shapes


def test_difference_refuses_another_shape(dog):
    with pytest.raises(ValueError, match=r"^values must have the grid's shape \(3, 3\); got \(2, 3\)$"):
        figures.difference(np.zeros((2, 3)), dog)


# --- words for pictures


def test_describe(dog):
    assert figures.describe(dog) == "3 target tokens by 3 source tokens; strongest: ‘noir’ looks at ‘black’, 0.83."
    assert figures.describe(dog, 0).endswith("0.83. Step 1, ‘chien’: looks at ‘dog’ 0.80, ‘black’ 0.10, <eos> 0.10.")


def test_describe_says_what_was_hidden():
    hidden = grid(words("a"), words("c"), [[0.7, 0.3], [np.nan, np.nan]], removed=[0.25, 1])
    assert "0.25 of its weight was on special tokens, which are hidden." in figures.describe(hidden, 0)
    assert "all its weight is on special tokens, which are hidden." in figures.describe(hidden, 1)


@pytest.mark.parametrize("largest, end", [(0.015, 0.02), (0.07, 0.1), (0.17, 0.2), (0.3, 0.4), (0.9, 1)])
def test_a_scale_that_is_not_whole_ends_a_little_above_the_largest_weight(largest, end):
    weights = np.array([[largest, *[(1 - largest) / 119] * 119]])
    drawn = grid(words("a")[:1], words(*"b" * 120)[:120], weights)
    assert figures.step_bars(drawn, 0, whole=False).layout.yaxis.range == (0, end)
    assert figures.step_bars(drawn, 0).layout.yaxis.range == (0, 1)
