"""The reliability diagram as data."""

import pytest

from attnviz.figures import reliability

BINS = [(0.04, 0.02, 50), (0.31, 0.4, 51)]


def test_points_beside_the_diagonal():
    figure = reliability(BINS, "en-fr/<b>")
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
