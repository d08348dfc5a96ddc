"""Lines by step and the table of means, as data."""

import math

import numpy as np
import pandas as pd
import pytest
from grids import contrast, frame

from attnviz import figures


def test_by_step_has_a_line_a_mechanism_in_each_panel():
    frames = {"bahdanau": frame(["le", "chien"], 1.5), "luong-general": frame(["un", "chien"])}
    figure = figures.by_step(frames, keys=4)
    assert [(line.name, line.yaxis) for line in figure.data] == [
        (name, axis) for axis in ("y", "y2", "y3") for name in frames
    ]
    assert figure.data[0].y == (1.5, 1.5) and figure.data[0].x == (0, 1)
    assert [line.showlegend for line in figure.data] == [True, True, False, False, False, False]
    assert figure.data[0].text == ("step 1, ‘le’", "step 2, ‘chien’")


def test_by_step_draws_uniform_attention_as_reference():
    figure = figures.by_step({"bahdanau": frame(["a"])}, keys=4)
    assert [shape.y0 for shape in figure.layout.shapes] == [math.log(4), 0.25, 4.0]
    assert all(shape.line.dash == "dot" for shape in figure.layout.shapes)
    axes = (figure.layout.yaxis, figure.layout.yaxis2, figure.layout.yaxis3)
    assert all(axis.range[1] > shape.y0 for axis, shape in zip(axes, figure.layout.shapes, strict=True))


def test_tokens_stand_under_the_axis_only_when_shared():
    same = figures.by_step({"bahdanau": frame(["<s>", "b"]), "luong": frame(["<s>", "b"])}, keys=2)
    assert same.layout.xaxis.ticktext == ("&lt;s&gt;", "b")
    differ = figures.by_step({"bahdanau": frame(["a", "b"]), "luong": frame(["a", "c"])}, keys=2)
    assert differ.layout.xaxis.ticktext == ("1", "2")


def test_by_step_marks_the_step():
    figure = figures.by_step({"bahdanau": frame(["a", "b"])}, keys=3, step=1, title="x")
    bands = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert len(bands) == 3 and all((band.x0 + band.x1) / 2 == 1 for band in bands)


@pytest.mark.parametrize("keys", [2, None])
def test_by_step_shows_lines_whole_that_rise_above_uniform(keys):
    figure = figures.by_step({"a": frame(["x"], np.nan), "b": frame(["x"], 3.1)}, keys)
    assert figure.layout.yaxis.range[1] == pytest.approx(1.12 * 3.1)
    assert figure.layout.yaxis3.range[1] == pytest.approx(1.12 * 2.7) and figure.layout.yaxis2.range[1] == 1.04
    nothing = figures.by_step({"a": frame(["x"], np.nan)}, keys)
    assert nothing.layout.yaxis.range[1] == pytest.approx(1.12 * math.log(2) if keys else 0.1)


def test_by_step_without_common_keys_has_no_reference():
    layout = figures.by_step({"bahdanau": frame(["a"])}, None).layout
    assert layout.shapes == () and [note.text[:3] for note in layout.annotations] == ["<b>"] * 3
    assert layout.meta["description"] == "Entropy, maximum weight and effective positions by step for bahdanau."


def test_by_step_draws_uniform_attention_as_a_curve_where_each_step_sees_one_key_more():
    figure = figures.by_step({"transformer": frame(["a", "b", "c"])}, keys=[1, 2, 3])
    paths = [
        [tuple(map(float, point[1:].split(","))) for point in shape.path.split()] for shape in figure.layout.shapes
    ]
    expected = [[0, 0.6931, 1.0986], [1, 0.5, 0.3333], [1, 2, 3]]  # ln(t + 1), 1 / (t + 1), t + 1
    assert paths == [list(enumerate(levels)) for levels in expected]
    assert all(
        shape.type == "path" and shape.line.dash == "dot" and shape.path.count("M") == 1
        for shape in figure.layout.shapes
    )
    assert [note.y for note in figure.layout.annotations if note.text == "uniform"] == pytest.approx(
        [math.log(3), 1 / 3, 3]
    )
    assert figure.layout.yaxis.range[1] == pytest.approx(1.12 * math.log(3)) and figure.layout.yaxis3.range[1] > 3
    assert "curve is uniform attention over the keys that each step sees, up to 3" in figure.layout.meta["description"]


@pytest.mark.parametrize(
    "keys, path",
    [
        ([0, 1, 2], "M1,1.0000 L2,2.0000"),
        ([2, 0, 1], "M0,2.0000 M2,1.0000"),
        ([0, 0, 1], "M2,1.0000"),
    ],
)
def test_the_curve_has_a_gap_where_a_step_sees_nothing(keys, path):
    figure = figures.by_step({"transformer": frame(["a", "b", "c"])}, keys)
    assert figure.layout.shapes[2].path == path


def test_as_many_keys_in_each_step_are_one_number():
    frames = {"transformer": frame(["a", "b"])}
    assert figures.by_step(frames, [4, 4]).to_dict() == figures.by_step(frames, 4).to_dict()


@pytest.mark.parametrize(
    "frames, keys, message",
    [
        ({"a": frame(["x", "y"])}, [1], "keys must be one number, or one for each of 2 steps; got 1"),
        ({"a": frame(["x"])}, [0], "keys must be at least 1; got [0]"),
        ({"a": frame(["x", "y"])}, [2, -1], "keys must be at least 1; got [2, -1]"),
        ({}, 3, "frames must hold at least one mechanism; got none"),
        ({"a": frame(["x"])}, 0, "keys must be at least 1; got 0"),
        (
            {"a": frame(["x"]).drop(columns="max_weight")},
            3,
            "the frame of a must have the columns step, token, entropy_nats, max_weight, effective_entropy; max_weight "
            "missing",
        ),
    ],
)
def test_by_step_says_what_is_wrong(frames, keys, message):
    with pytest.raises(ValueError) as error:
        figures.by_step(frames, keys)
    assert str(error.value) == message


# --- comparison


def test_comparison_is_a_table_of_mean_and_deviation():
    tidy = pd.DataFrame(
        [
            ("bahdanau", "entropy_nats", 1.0248, 0.2153),
            ("bahdanau", "gini", 0.5, 0.1),
            ("<b>", "entropy_nats", np.nan, np.nan),
        ],
        columns=["mechanism", "statistic", "mean", "std"],
    )
    figure = figures.comparison(tidy)
    table = figure.data[0]
    assert table.header.values == ("", "<b>bahdanau</b>", "<b>&lt;b&gt;</b>")
    assert contrast(table.header.font.color, table.header.fill.color) > 7
    names, bahdanau, other = map(list, table.cells.values)
    assert (
        names == ["Entropy (nats)", "Gini coefficient"]
        and bahdanau == ["1.02 ± 0.22", "0.50 ± 0.10"]
        and other == ["–", "–"]
    )
    assert figure.layout.height == 3 * table.cells.height + 24


def test_comparison_names_a_missing_column():
    with pytest.raises(
        ValueError, match="^the frame must have the columns mechanism, statistic, mean, std; std missing$"
    ):
        figures.comparison(pd.DataFrame(columns=["mechanism", "statistic", "mean"]))


def test_by_step_marks_references_after_the_steps_of_each_panel():
    levels = {"entropy_nats": 2.5, "max_weight": 0.2, "effective_entropy": 9.0}
    frames = {name: frame(["a", "b"]) for name in ("bahdanau", "transformer")}
    figure = figures.by_step(frames, keys=4, references={name: {"untrained": levels} for name in frames})
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    levelled = [(2.5, "x"), (0.2, "x2"), (9.0, "x3")]
    assert [(mark.y[0], mark.xaxis) for mark in marks] == [pair for pair in levelled for _ in frames]
    for first, second in zip(marks[::2], marks[1::2]):  # a place for each model, in the order of the legend
        assert 1.4 < first.x[0] < second.x[0] < figure.layout.xaxis.range[1]
    assert figure.layout.yaxis.range[1] >= 2.5 and figure.layout.yaxis3.range[1] >= 9
    assert all(note.x == 1.4 for note in figure.layout.annotations if "uniform" in note.text)  # ends with the steps
    assert "marked at the right: bahdanau untrained 2.50 nats, maximum 0.20, 9.0 positions" in figure.description
