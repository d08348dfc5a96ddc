"""Tables of many sentences: by hand, and against numpy and the statistics of uniform maps."""

import numpy as np
import pandas as pd
import pytest

from attnviz import stats
from attnviz.across import VALUES, by_size, correlation, differences, spread, uniform


def test_spread_by_hand():
    numbers = spread(pd.Series([1.0, 3.0, np.nan]))
    assert numbers == {"count": 2, "mean": 2, "std": 1, "0.05": 1.1, "0.25": 1.5, "0.5": 2, "0.75": 2.5, "0.95": 2.9}
    nothing = spread(pd.Series([np.nan]))
    assert nothing["count"] == 0 and np.isnan(nothing["mean"]) and np.isnan(nothing["0.5"])


def test_the_mean_by_size_by_hand():
    x = pd.Series([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, np.nan])
    table = by_size(x, 10 * x)
    assert table[["low", "high", "mean", "sentences"]].to_numpy().tolist() == [
        [1, 2, 15, 2],
        [3, 4, 35, 2],
        [5, 6, 55, 2],
        [7, 8, 75, 2],
        [9, 10, 95, 2],
    ]


def test_the_mean_by_size_of_equal_sizes_and_of_none():
    assert by_size(pd.Series([3, 3]), pd.Series([1, 2])).to_numpy().tolist() == [[3, 3, 1.5, 2]]
    assert by_size(pd.Series([], dtype=float), pd.Series([], dtype=float)).empty


def test_the_correlation_agrees_with_numpy():
    generator = np.random.default_rng(1)
    x, y = pd.Series(generator.normal(size=50)), pd.Series(generator.normal(size=50))
    assert correlation(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert correlation(x, 2 - 3 * x) == pytest.approx(-1)
    assert np.isnan(correlation(x, x * 0)) and np.isnan(correlation(x[:1], y[:1]))


def test_differences_by_pairs_and_of_samples():
    a = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan], "y": [np.nan] * 4}, index=[1, 2, 3, 4])
    b = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [1.0] * 3}, index=[1, 2, 9])
    (paired,) = differences(a, b, ["x", "y"], paired=True).to_dict("records")
    assert (paired["a"], paired["b"], paired["difference"], paired["pairs"]) == (1.5, 0.5, 1, 2)
    assert paired["low"] == paired["high"] == 1  # of every pair
    (sample,) = differences(a, b, ["x", "y"], paired=False).to_dict("records")
    assert (sample["a"], sample["b"], sample["difference"], sample["pairs"]) == (2, 1, 1, None)
    assert sample["low"] < 1 < sample["high"]


def test_no_pair_is_no_row():
    a, b = (pd.DataFrame({"x": [1.0]}, index=[place]) for place in (1, 2))
    assert differences(a, b, ["x"], paired=True).empty


@pytest.mark.parametrize("tokens", [1, 2, 5, 30])
def test_uniform_attention_has_these_statistics(tokens):
    row = stats.rows(np.full((1, tokens), 1 / tokens))
    for name in VALUES:
        if name != "special_mass":
            assert uniform(name, np.array([tokens])) == pytest.approx(row[name].to_numpy(), abs=1e-6, nan_ok=True), name
    assert uniform("special_mass", np.array([tokens])) == 1 / tokens
    assert np.isnan(uniform("log_prob", np.array([tokens]))).all()
