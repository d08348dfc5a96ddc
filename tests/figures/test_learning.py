"""Curves of a training, and maps of one sequence over time."""

import numpy as np
import pytest
import synthetic

from attnviz import select
from attnviz.figures.learning import PANELS, maps_over_time, over_time

COURSE = {
    "batch": [0, 5, 10],
    "loss": [3.2, 2.0, 0.1],
    "exact": [0, 0, 1],
    "entropy": [2, 1, 1],
    "alignment_error": [0.9, 0.2, 0.1],
}
EMPTY = COURSE | {"entropy": [None] * 3, "alignment_error": [None] * 3}


def test_curves_have_a_panel_a_number_and_a_line_a_model():
    figure = over_time(
        {"Bahdanau": COURSE, "<b>": EMPTY}, marks={"Bahdanau": {"alignment_error": 5, "loss": None}}, at=10
    )
    drawn = [trace for trace in figure.data if trace.mode == "lines"]
    assert len(drawn) == 2 * len(PANELS) and list(drawn[0].x) == COURSE["batch"]
    assert {trace.name for trace in drawn} == {"Bahdanau", "&lt;b&gt;"}
    by_panel = {trace.yaxis: list(trace.y) for trace in drawn if trace.name == "Bahdanau"}
    assert by_panel == {
        "y": COURSE["alignment_error"],
        "y2": COURSE["loss"],
        "y3": COURSE["exact"],
        "y4": COURSE["entropy"],
    }
    (star,) = [trace for trace in figure.data if trace.mode == "markers"]
    assert (star.x, star.y, star.yaxis) == ((5,), (0.2,), "y")
    assert [shape.x0 for shape in figure.layout.shapes] == [10] * 4
    assert "Bahdanau at batch 10: Alignment error 0.10, Loss (nats a letter) 0.10" in figure.description
    alone = over_time({"no attention": EMPTY}, marks={"no attention": {"alignment_error": None, "loss": 10}})
    assert [note.text for note in alone.layout.annotations] == ["<b>Loss (nats a letter)</b>", "<b>Exact match</b>"]
    with pytest.raises(ValueError, match="at least one moment"):
        over_time({"Bahdanau": {key: [] for key in COURSE}})


def test_maps_stand_in_rows_of_models_and_columns_of_moments():
    first, second = (select.select(synthetic.trace("a <b> <eos>", "B A", heads=1, seed=seed)) for seed in (1, 2))
    figure = maps_over_time({"M": [first, second], "N": [second, first]}, ["batch 0", "batch 9"], title="x")
    (cells,) = figure.data
    rows, keys = first.weights.shape
    z, down, across = np.array(cells.z, dtype=float), rows + 2, keys + 2
    for i, row in enumerate(([first, second], [second, first])):
        for j, grid in enumerate(row):
            block = z[i * down + 2 : (i + 1) * down, j * across : j * across + keys]
            np.testing.assert_allclose(block, grid.weights, atol=1e-4)
    assert np.isnan(z[:2]).all() and np.isnan(z[:, keys : keys + 2]).all()
    assert figure.layout.xaxis.ticktext[1] == "&lt;" and len(figure.layout.yaxis.ticktext) == 2 * rows
    titles = [(note.text, note.x, note.y) for note in figure.layout.annotations]  # none is wider than its map
    assert titles[:3] == [("<b>M</b>", -0.5, 0), ("batch 0", -0.5, 1), ("9", across - 0.5, 1)]
    assert titles[3] == ("<b>N</b>", -0.5, down)
    alone = maps_over_time({"M": [first], "N": [second]}, [""])  # its moment stands elsewhere
    assert [note.text for note in alone.layout.annotations] == ["<b>M</b>", "<b>N</b>"]
    assert "2 by 2 maps" in figure.description
    other = select.select(synthetic.trace("a c <eos>", "B A", heads=1))
    with pytest.raises(ValueError, match="of the same tokens"):
        maps_over_time({"M": [first, other]}, ["0", "1"])
    with pytest.raises(ValueError, match="a map for each of 1 moments"):
        maps_over_time({"M": [first, second]}, ["0"])
