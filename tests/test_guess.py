"""A guess beside the rows of models, worked out by hand."""

import numpy as np
import pytest
import synthetic

from attnviz import guess, select
from attnviz.figures import guess_bars
from attnviz.guess import Overlap
from attnviz.trace.arrays import from_arrays

GRID = select.select(synthetic.trace("The black dog", "Le chien noir"))
ROW = GRID.weights[1].astype(float)
COUNT = len(ROW)


def grid_of(weights, keys, **how):
    """The grid of a row of weights."""
    arrays = {"cross": [np.array([weights])]}
    return select.select(from_arrays(arrays, list(keys), ["x"], special=["<eos>"]), **how)


def test_by_hand():
    """Row (.5, .3, .2) and a guess of 3 points on the first key and 1 on the last: min(.75, .5) + min(.25, .2) = .7."""
    grid = grid_of([[0.5, 0.3, 0.2]], "abc")
    seen = guess.compare(grid, 0, [3, 0, 1])
    assert (seen.covered, seen.overlap) == pytest.approx((0.7, 0.7))
    assert seen.even == pytest.approx(1 / 3 + 0.3 + 0.2)


def test_the_row_itself_overlaps_whole_and_one_minus_half_the_distance_else():
    assert guess.compare(GRID, 1, ROW).overlap == pytest.approx(1)
    points = np.arange(COUNT)[::-1].astype(float)
    distance = np.abs(points / points.sum() - ROW).sum() / 2
    assert guess.compare(GRID, 1, points).overlap == pytest.approx(1 - distance)


@pytest.mark.parametrize(
    "step, points, message",
    [
        (9, ROW, "step must be one of 0 to"),
        (0, ROW[:-1], f"points must be one number for each of {COUNT} keys; got {COUNT - 1}"),
        (0, 0 * ROW, "points must not all be 0"),
        (0, -ROW, "0 or more"),
        (0, np.nan * ROW, "finite"),
    ],
)
def test_what_is_no_guess(step, points, message):
    with pytest.raises(ValueError, match=message):
        guess.compare(GRID, step, points)


def test_a_blank_row_cannot_be_guessed():
    blank = grid_of([[0.0, 1.0]], ["a", "<eos>"], special=False)
    with pytest.raises(ValueError, match="row 1 has no weights to guess"):
        guess.compare(blank, 0, [1])


def test_the_score_of_several_steps_is_the_mean():
    assert guess.mean([Overlap(1, 0.5, 0.2), Overlap(0, 0.1, 0.4)]) == Overlap(0.5, 0.3, pytest.approx(0.3))


def test_in_plain_words():
    sure, other = Overlap(0.83, 0.71, 0.2), Overlap(0.4, 0.31, 0.2)
    assert guess.sentence({"Bahdanau": sure, "Luong": other}) == (
        "Bahdanau has 83% of its weight on your words; Luong has 40% of its weight on your words. Your guess resembles "
        "Bahdanau most: they overlap by 71%."
    )
    assert "Bahdanau and Luong most equally" in guess.sentence({"Bahdanau": sure, "Luong": sure})
    assert guess.sentence({"Luong": other}, "letter") == (
        "Luong has 40% of its weight on your letters; your guess and its row overlap by 31%."
    )


def test_the_picture_has_the_row_and_the_guess_over_it():
    shares = guess.shares([2, *[0] * (COUNT - 2), 2])
    row, outlined = guess_bars(GRID, 1, shares).data
    assert np.allclose(row.y, ROW, atol=1e-4) and np.allclose([share or 0 for share in outlined.y], shares)
    with pytest.raises(ValueError, match="one share per key"):
        guess_bars(GRID, 1, shares[1:])
