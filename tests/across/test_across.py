"""One value per sentence, outliers, and bootstrap intervals: by hand, against scipy, and what always holds."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import attnviz
from attnviz import stats
from attnviz.across import VALUES, bootstrap, outliers, paired_bootstrap, sentence, share_above

TRACE = attnviz.from_arrays(
    {"cross": [[[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]]], "encoder": [[[[1.0, 0.0], [0.0, 1.0]]]]},
    ["a", "b"],
    ["c", "d"],
)


def test_a_sentence_s_value_is_the_mean_over_steps_and_heads_of_a_kind():
    columns = stats.steps(TRACE).to_dict("series")
    assert sentence(columns)["max_weight"] == pytest.approx((0.5 + 1 + 0.75 + 0.5) / 4)
    assert sentence(columns, "encoder")["max_weight"] == 1
    assert list(sentence(columns)) == list(VALUES)
    assert np.isnan(sentence(columns, "decoder")["gini"])


def test_outliers_by_hand():
    """Median 3, median absolute deviation 1: (100 - 3) / 1.4826."""
    outlying = outliers(pd.Series([1, 2, 3, 4, 100, np.nan], index=list("abcdef")))
    assert outlying.to_dict() == {"e": pytest.approx(97 / 1.4826)}
    assert outliers(pd.Series([1.0, 1, 1, 1, 9])).empty  # most values are equal
    both = outliers(pd.Series([-200, 1, 2, 3, 4, 100]))
    assert both.index.tolist() == [0, 5]


def test_the_share_above_a_value():
    quantiles = np.linspace(0, 10, 101)
    assert share_above(2.5, quantiles) == pytest.approx(0.75)
    assert share_above(-1, quantiles) == 1 and share_above(11, quantiles) == 0


def test_the_paired_interval_agrees_with_scipy():
    generator = np.random.default_rng(1)
    a, b = generator.normal(1, 2, 200), generator.normal(0.4, 2, 200)
    ours = paired_bootstrap(a, b)
    theirs = scipy.stats.bootstrap((a - b,), np.mean, n_resamples=4000, method="percentile", rng=2).confidence_interval
    assert ours.mean == pytest.approx((a - b).mean()) and ours.pairs == 200
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.04)


def test_the_interval_of_two_samples_agrees_with_scipy():
    generator = np.random.default_rng(1)
    a, b = generator.normal(1, 2, 300), generator.normal(0, 1, 200)
    ours = bootstrap(a, b)
    theirs = scipy.stats.bootstrap(
        (a, b), lambda x, y, axis: x.mean(axis) - y.mean(axis), n_resamples=4000, method="percentile", rng=2
    ).confidence_interval
    assert ours.mean == pytest.approx(a.mean() - b.mean()) and ours.pairs is None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.04)


def test_pairs_with_a_gap_are_left_out():
    assert paired_bootstrap([1, 2, np.nan], [0, 0, 0]).pairs == 2
    assert paired_bootstrap([1, 2, np.nan], [0, 0, 0]).mean == 1.5


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.integers(0, 5))
def test_what_always_holds(values, seed):
    same = paired_bootstrap(values, values, seed, resamples=50)
    assert (same.mean, same.low, same.high, same.clear) == (0, 0, 0, False)
    shifted = paired_bootstrap(np.array(values) + 1, values, seed, resamples=50)
    assert shifted.clear and shifted.low <= shifted.mean + 1e-9 and shifted.mean <= shifted.high + 1e-9
    assert paired_bootstrap(values, np.zeros(len(values)), seed, 50) == paired_bootstrap(
        values, np.zeros(len(values)), seed, 50
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_bootstrap([1, 2], [1]), "a and b must have the same length; got shapes (2,) and (1,)"),
        (lambda: paired_bootstrap([np.nan], [1]), "a and b must have at least one pair without NaN; got none"),
        (lambda: bootstrap([1], [np.nan]), "b must have at least one value that is not NaN; got none"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
