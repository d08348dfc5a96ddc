"""Moments of a run: when they are due, and which of them ship."""

import pytest

from attnviz import moments
from attnviz.moments import kept


def test_due_by_hand():
    assert moments.due(10_000, count=4) == {0, 10, 100, 1000}  # 10,000 is the end of the run: the model that ships


@pytest.mark.parametrize("total", [1, 50, 20_000])
def test_due_are_at_most_as_many_as_wanted(total):
    assert 0 in moments.due(total) and len(moments.due(total)) <= kept.COUNT


def test_a_folder_without_moments(tmp_path):
    with pytest.raises(ValueError) as caught:
        moments.files(tmp_path)
    assert str(caught.value) == f"{tmp_path} must hold the moments of a run (train --moments); got none"


@pytest.mark.parametrize(
    "losses, count, places",
    [
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 3, [0, 4, 8]),
        ([9, 8.9, 8.8, 2, 1.5, 1], 3, [0, 3, 5]),
        ([9, 1.2, 1.1, 1], 4, [0, 1, 2, 3]),
        ([9, 5], 2, [0, 1]),
    ],
)
def test_moments_that_ship_are_spaced_by_loss(losses, count, places):
    assert moments.spaced(losses, count) == places


def test_more_moments_than_there_are():
    with pytest.raises(ValueError, match="count must be from 2 to 2; got 3"):
        moments.spaced([2, 1], 3)
