"""Figures of many sentences, as data."""

import numpy as np
import pytest

from attnviz.figures import reliability
from attnviz.figures.many import BINS, distribution, scatter

VALUES = {"Bahdanau": [0.0, 0.0, 0.5, 1.0, float("nan")], "<b>x": [1.0, 1.0]}
RISKS = [(0.04, 0.02, 50), (0.31, 0.4, 51)]


def test_a_distribution_has_the_share_of_sentences_in_each_bin():
    chart = distribution(VALUES, "Entropy (nats)")
    first, second = chart.data
    assert len(first.x) == BINS + 1 and first.x[0] == 0 and first.x[-1] == 1
    assert sum(first.y) == pytest.approx(1, abs=1e-3) and sum(second.y) == pytest.approx(1, abs=1e-3)
    assert (first.y[0], first.y[BINS // 2], first.y[BINS - 1]) == (0.5, 0.25, 0.25)
    assert second.name == "&lt;b&gt;x"
    assert chart.description == "Entropy (nats) of the sentences, by mechanism. Means: Bahdanau 0.38, <b>x 1.00."


def test_a_name_without_a_number_has_no_line_and_nothing_at_all_is_an_error():
    assert [trace.name for trace in distribution({"a": [1.0, 2.0], "b": [float("nan")]}, "x").data] == ["a"]
    with pytest.raises(ValueError) as error:
        distribution({"a": [float("nan")]}, "x")
    assert str(error.value) == "values must hold at least one number; got none"


def test_a_scatter_has_a_point_for_each_sentence_and_its_text_escaped():
    points = {"Bahdanau": ([3, 4], [0.5, 0.25])}
    chart = scatter(points, ("Length", "Entropy (nats)"), {"Bahdanau": ["<eos> a", "b"]})
    (trace,) = chart.data
    np.testing.assert_array_equal(trace.x, [3, 4])
    np.testing.assert_array_equal(trace.y, [0.5, 0.25])
    assert trace.hovertext[0] == "&lt;eos&gt; a"
    assert chart.layout.xaxis.title.text == "Length" and chart.layout.yaxis.title.text == "Entropy (nats)"
    assert chart.description == "Entropy (nats) against Length of 2 sentences, for Bahdanau."


def test_no_sentence_is_said():
    chart = scatter({"a": ([], [])}, ("x", "y"), {"a": []})
    assert chart.layout.annotations[0].text == "no sentence"


@pytest.mark.parametrize("dark", [False, True])
def test_plotly_takes_every_property(dark):
    """The figures are made without its checks."""
    import plotly.graph_objects as go

    for chart in (
        distribution(VALUES, "x", dark=dark),
        scatter({"a": ([1], [2])}, ("x", "y"), {"a": ["t"]}, dark=dark),
    ):
        go.Figure(chart.to_dict())
        assert chart.dark is dark


def test_references_are_marked_on_the_axis_in_the_colour_of_the_name():
    marks = {"Bahdanau": {"untrained": 0.9, "shuffled": 0.7}}
    chart = distribution({"Bahdanau": [0.1, 0.5]}, "Entropy", references=marks, uniform=1.0)
    line, *others = chart.data
    assert [(mark.x[0], mark.y[0], mark.marker.symbol) for mark in others] == [
        (0.9, 0, "triangle-up-open"),
        (0.7, 0, "x-thin-open"),
    ]
    assert {mark.marker.color for mark in others} == {line.line.color} and not any(mark.showlegend for mark in others)
    assert chart.layout.shapes[0].x0 == 1 and chart.layout.annotations[0].text == "uniform 1"
    assert chart.description.endswith("Untrained: Bahdanau 0.90. Shuffled: Bahdanau 0.70. Uniform attention: 1.00.")


@pytest.mark.parametrize(
    "lengths, dtick", [([8, 9, float("nan"), 10], 1), ([8, 40, 9, 10], None), ([8, 9.5, 9, 10], None), ([], None)]
)
def test_few_counts_have_no_tick_between_them(lengths, dtick):
    values = [0.5 * place for place in range(len(lengths))]
    layout = scatter({"a": (lengths, values)}, ("x", "y"), {"a": ["t"] * len(lengths)}).layout
    assert (layout.xaxis.dtick, layout.yaxis.dtick) == (dtick, None)


def test_points_beside_the_diagonal():
    figure = reliability(RISKS, "en-fr/<b>")
    diagonal, points = figure.data
    assert diagonal.x == diagonal.y == (0, 1)
    assert (points.x, points.y, points.customdata) == ((0.04, 0.31), (0.02, 0.4), (50, 51))
    assert (
        figure.description
        == "Share of poor translations by their estimated risk: 2% at a risk of 4%, 40% at a risk of 31%."
    )
    assert "&lt;b&gt;" in figure.layout.title.text


def test_without_bins():
    with pytest.raises(ValueError, match="there must be at least one bin; got none"):
        reliability([])
