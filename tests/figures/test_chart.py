"""A figure in larger type: every font and margin, and rows that fit."""

import pickle

import grids
import pytest

from attnviz import figures


@pytest.mark.parametrize("draw", [figures.heatmap, lambda grid: figures.step_bars(grid, 1)])
def test_type_and_margins_grow_and_the_weights_stay(draw):
    small = draw(grids.dog())
    large = figures.large(small, 1.5)
    assert large.layout.font.size == 18 and large.layout.xaxis.tickfont.size == 1.5 * small.layout.xaxis.tickfont.size
    assert large.layout.margin.t == round(1.5 * small.layout.margin.t)
    assert large.layout.height == pytest.approx(1.5 * small.layout.height, abs=2)
    values = "z" if small.data[0].type == "heatmap" else "y"
    assert large.to_dict()["data"][0][values] == small.to_dict()["data"][0][values]
    assert large.layout.meta == small.layout.meta and small.layout.font.size == 12


def test_a_plot_is_no_higher_than_asked_and_names_of_rows_fit():
    small = figures.heatmap(grids.dog())
    large = figures.large(small, 2, most=40)
    margin = large.layout.margin
    assert large.layout.height - margin.t - margin.b == 40
    axis = large.layout.yaxis
    assert list(axis.tickvals) == [0, 2] and 18 <= axis.tickfont.size <= 2 * 40 / 3  # px of two of three rows


def test_where_names_of_rows_would_be_too_small_some_are_left_out():
    """3 rows of 8 px have no room for type of 9 px: every second name."""
    axis = figures.large(figures.heatmap(grids.dog()), 1, most=24).layout.yaxis
    assert list(axis.tickvals) == [0, 2] and len(axis.ticktext) == 2 and axis.tickfont.size >= 9


def test_a_factor_that_is_none_is_refused():
    with pytest.raises(ValueError) as error:
        figures.large(figures.heatmap(grids.dog()), 0)
    assert str(error.value) == "factor must be above 0; got 0"


def test_a_copy_and_a_larger_one_keep_the_name():
    chart = figures.heatmap(grids.dog())
    assert chart.name == ""
    chart.name = "heatmap Bahdanau"
    for other in (pickle.loads(pickle.dumps(chart)), figures.large(chart, 1.5)):
        assert (other.name, other.description, other.dark) == (chart.name, chart.description, chart.dark)


def test_above_a_map_that_is_limited_is_only_the_room_of_its_names():
    figure = figures.heatmap(grids.dog())
    free, limited = figures.large(figure, 1.35), figures.large(figure, 1.35, most=200)
    size, longest = limited.layout.xaxis.tickfont.size, max(len(token.text) for token in grids.dog().keys)
    assert size * (0.6 * longest + 1) <= limited.layout.margin.t < free.layout.margin.t
    bars = figures.step_bars(grids.dog(), 0)
    assert figures.large(bars, 1.35, most=200).layout.margin.t == figures.large(bars, 1.35).layout.margin.t


def test_a_representation_is_one_short_line():
    chart = figures.heatmap(grids.dog())
    assert repr(chart).startswith("Chart('") and repr(chart)[7:27] == chart.description[:20]
    assert len(repr(chart)) < 200 and "\n" not in repr(chart)
    assert chart.layout.height  # Plotly's figure now
    assert len(repr(chart)) < 200
