"""What a page of heads draws over cells and works out of chosen heads: by hand."""

import numpy as np
import pytest
import synthetic

from attnviz import figures, heads, select
from attnviz.figures import maps
from attnviz.heads import Head

KINDS = ("encoder", "decoder")


@pytest.fixture(scope="module")
def trace():
    return synthetic.trace("The black dog", "Le chien noir court", heads=3, layers=2, kinds=KINDS)


def test_stripes_go_through_hidden_cells_alone():
    """Of a causal 3×3 map (0, 1), (0, 2) and (1, 2) are hidden: one stripe each, from top right to bottom left."""
    assert maps.hatched(~np.tri(3, dtype=bool)) == "M1.5,-0.5L0.5,0.5M2.5,-0.5L1.5,0.5M2.5,0.5L1.5,1.5"
    assert maps.hatched(np.zeros((3, 3), dtype=bool)) == ""


def test_neighbours_share_a_stripe_and_long_maps_have_few():
    assert maps.hatched(np.ones((2, 2), dtype=bool)) == "M0.5,-0.5L-0.5,0.5M1.5,-0.5L-0.5,1.5M1.5,0.5L0.5,1.5"
    assert maps.hatched(~np.tri(512, dtype=bool)).count("M") < 100


def test_masked_cells_of_a_heatmap_are_hatched(trace):
    figure = figures.heatmap(select.select(trace, "decoder"), step=1)
    assert [shape.name for shape in figure.layout.shapes] == ["hidden", None] and "is hatched" in figure.layout.meta[
        "description"
    ]
    assert not figures.heatmap(select.select(trace, "encoder")).layout.shapes


@pytest.mark.parametrize("order", [None, "gini"])
def test_heads_switched_off_are_crossed_out_where_they_are(trace, order):
    off = (Head("encoder", 1, 2), Head("decoder", 0, 0))
    figure = figures.overview(trace, "encoder", heads.table(trace, "encoder"), order, off=off)
    [y], [x] = np.nonzero([["Switched off" in text for text in row] for row in figure.data[0].hovertext])
    assert list(figure.data[0].customdata[y][x]) == [1, 2] and figure.layout.shapes[0].path == maps.crossed([(y, x)])
    assert figure.layout.meta["description"].endswith(" Switched off, crossed out: layer 2, head 3.")


def test_the_mean_of_chosen_heads(trace):
    a, b = trace.map("encoder", 0).weights[1], trace.map("encoder", 1).weights[2]
    grid = select.mean(trace, "encoder", [(0, 1), (1, 2)])
    assert np.allclose(grid.weights, (a + b) / 2) and (grid.layer, grid.head) == (None, None)
    assert select.mean(trace, "encoder", [(1, 0), (1, 2)]).layer == 1
    whole = select.mean(trace, "encoder", [(1, head) for head in range(3)], special=False)
    chosen = select.select(trace, "encoder", 1, special=False)
    assert np.allclose(whole.weights, chosen.weights) and np.allclose(whole.removed, chosen.removed)
    with pytest.raises(ValueError, match=r"^heads must hold at least one \(layer, head\); got none$"):
        select.mean(trace, "encoder", [])


def test_lines_of_a_mean_over_layers_say_so(trace):
    description = figures.token_lines([select.mean(trace, "encoder", [(0, 1), (1, 2)])]).layout.meta["description"]
    assert description.endswith(": mean of heads of several layers.")


def test_the_nearest_heads_are_those_of_the_distances(trace):
    every = [Head("encoder", layer, head) for layer in range(2) for head in range(3)]
    expected = heads.distances(trace, every).loc["encoder 0.1"].drop("encoder 0.1").sort_values()
    nearest = heads.nearest(trace, Head("encoder", 0, 1))
    assert [f"encoder {row.layer}.{row.head}" for row in nearest.itertuples()] == list(expected.index)
    assert np.allclose(nearest.jensen_shannon, expected)
    with pytest.raises(ValueError, match="^head must be one of 0 to 2"):
        heads.nearest(trace, Head("encoder", 0, 3))


def test_predicted_places_are_diamonds_and_windows_have_brackets_where_they_end_on_the_map():
    """Of three columns: place 1 with 1 to either side ends at 0 and 2; a place beyond the last has no diamond."""
    assert maps.diamonds([(1, 1)], 3) == (
        "M0.86,0L1.00,-0.3L1.14,0L1.00,0.3ZM0.22,-0.42H0.00V0.42H0.22M1.78,-0.42H2.00V0.42H1.78"
    )
    assert maps.diamonds([(2.9, 10)], 3) == ""


def test_windows_of_a_map_and_of_its_bars(trace):
    grid = select.select(trace, "encoder")
    rows = len(grid.queries)
    figure = figures.heatmap(grid, windows=[(0.5, 10)] * rows)
    assert [shape.name for shape in figure.layout.shapes] == ["predicted places"] * 2
    description = figure.layout.meta["description"]
    assert description.endswith(f"with 10 tokens to either side: {', '.join(['1.5'] * rows)}.")
    band, place = figures.step_bars(grid, 0, window=(0.5, 1)).layout.shapes
    assert (band.x0, band.x1, place.x0) == (-0.5, 1.5, 0.5)
    with pytest.raises(ValueError) as error:
        figures.heatmap(grid, windows=[(0.5, 10)])
    assert str(error.value) == f"windows must be one for each of {rows} rows; got 1"
