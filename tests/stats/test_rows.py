"""The statistics of a row: scipy, hand-worked cases, and properties that any statistic of its name must have."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from measured_rows import COLUMNS, REFERENCE

from attnviz import stats

distributions = (
    hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.floats(0, 1))
    .filter(lambda a: (a.sum(-1) > 1e-3).all())
    .map(lambda a: a / a.sum(-1, keepdims=True))
)


def message(error):
    return str(error.value)


def row(*weights, **options):
    return stats.rows([weights], **options).iloc[0]


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_reference_matrix(dtype):
    frame = stats.rows(REFERENCE.astype(dtype))
    assert frame.entropy_nats.round(4).tolist() == [1.2235, 1.1127, 1.1699, 0.9481, 1.1127, 0.5819]
    assert round(frame.entropy_nats.mean(), 4) == 1.0248 and round(frame.entropy_nats.std(ddof=0), 4) == 0.2153
    assert round(frame.max_weight.mean(), 4) == 0.7267 and round(frame.max_weight.std(ddof=0), 4) == 0.0748
    assert frame.effective_threshold.tolist() == [1] * 6  # .10 is not above .1, in float32 either
    assert frame.argmax.tolist() == [0, 1, 5, 3, 2, 6]


def test_the_frame():
    frame = stats.rows([[0.5, 0.5], [1, 0], [0, 1]])
    assert list(frame.columns) == COLUMNS == list(stats.STATISTICS)
    assert frame.index.name == "query" and frame.index.tolist() == [0, 1, 2]


def test_one_row_by_hand():
    """a = 1/2, 1/4, 1/4, 0. H = 1/2 ln 2 + 2 (1/4) ln 4 = 1.5 ln 2. Sum a^2 = 3/8. Position (0 * 2 + 1 + 2) / 4.
    Gini, ascending 0, 1/4, 1/4, 1/2: sum (2i - n - 1) a_i / n = (-3 * 0 - 1 * 1/4 + 1 * 1/4 + 3 * 1/2) / 4 = 3/8."""
    statistics = row(0.5, 0.25, 0.25, 0)
    ln2 = np.log(2)
    wanted = [1.5 * ln2, 1.5, 1.5 * ln2 / np.log(4), 0.5, 3, 2**1.5, 8 / 3, 3 / 8, 0, 0.75]
    assert statistics.astype(float).tolist() == pytest.approx(wanted)


@given(distributions)
def test_entropy_is_scipys(weights):
    frame = stats.rows(weights)
    np.testing.assert_allclose(frame.entropy_nats, scipy.stats.entropy(weights, axis=1), atol=1e-12)
    np.testing.assert_allclose(frame.entropy_bits, scipy.stats.entropy(weights, base=2, axis=1), atol=1e-12)


@given(distributions)
def test_gini_is_the_mean_difference_of_all_pairs(weights):
    """Sum over all pairs of |a_i - a_j| / (2 n sum a)."""
    pairs = np.abs(weights[:, :, None] - weights[:, None, :]).sum((1, 2)) / (2 * weights.shape[1])
    np.testing.assert_allclose(stats.rows(weights).gini, pairs, atol=1e-12)


@given(distributions)
def test_bounds(weights):
    n, frame = weights.shape[1], stats.rows(weights)
    few = 1e-9
    for name in ("effective_entropy", "effective_inverse"):
        assert frame[name].between(1 - few, n + few).all()
    assert (frame.effective_inverse <= frame.effective_entropy + few).all()  # Renyi: order 2 never exceeds order 1
    assert frame.gini.between(0, (n - 1) / n + few).all() and frame.max_weight.between(1 / n - few, 1 + few).all()
    assert frame.expected_position.between(-few, n - 1 + few).all()
    assert (frame.entropy_nats >= 0).all() and frame.effective_threshold.between(0, 10).all()
    assert frame.normalised_entropy.isna().all() if n == 1 else frame.normalised_entropy.between(0, 1 + few).all()


@given(distributions, st.randoms(use_true_random=False))
def test_the_order_of_keys_matters_only_to_positions(weights, random):
    order = list(range(weights.shape[1]))
    random.shuffle(order)
    before, after = stats.rows(weights), stats.rows(weights[:, order])
    same = [name for name in COLUMNS if name not in ("argmax", "expected_position")]
    np.testing.assert_allclose(before[same], after[same], atol=1e-12)
    np.testing.assert_allclose(after.expected_position, weights[:, order] @ np.arange(len(order)), atol=1e-12)


@given(distributions, st.integers(1, 3), st.sampled_from([np.float64, np.float32]))
def test_keys_that_are_not_visible_change_nothing(weights, padding, dtype):
    weights = weights.astype(dtype)
    wider = np.pad(weights, ((0, 0), (0, padding)))
    visible = np.arange(wider.shape[1]) < weights.shape[1]
    padded = stats.rows(wider, visible=np.tile(visible, (len(weights), 1)))
    pd.testing.assert_frame_equal(padded, stats.rows(weights), atol=1e-9)


@pytest.mark.parametrize("n", [2, 7, 64])
def test_uniform_and_one_hot(n):
    uniform, sharp = row(*[1 / n] * n), row(*[0] * (n - 1), 1)
    assert uniform.normalised_entropy == pytest.approx(1) and uniform.gini == pytest.approx(0, abs=1e-12)
    assert uniform.effective_entropy == pytest.approx(n) and uniform.effective_inverse == pytest.approx(n)
    assert uniform.expected_position == pytest.approx((n - 1) / 2)
    assert sharp.entropy_nats == 0 and not np.signbit(sharp.entropy_nats) and sharp.normalised_entropy == 0
    assert sharp.effective_inverse == 1 and sharp.gini == pytest.approx((n - 1) / n) and sharp["argmax"] == n - 1


def test_a_single_key():
    statistics = row(1.0)
    assert np.isnan(statistics.normalised_entropy)
    assert statistics.drop("normalised_entropy").astype(float).tolist() == [0, 0, 1, 1, 1, 1, 0, 0, 0]


def test_normalised_by_the_visible_keys():
    """Causal, two of three visible, half and half: entropy ln 2 of at most ln 2, not of ln 3."""
    frame = stats.rows([[1, 0, 0], [0.5, 0.5, 0], [1 / 3] * 3], visible=np.tri(3, dtype=bool))
    assert np.isnan(frame.normalised_entropy[0]) and frame.normalised_entropy[1:].tolist() == pytest.approx([1, 1])
    assert frame.gini.tolist() == pytest.approx([0, 0, 0])


def test_threshold_is_strict():
    assert [row(0.5, 0.3, 0.2, threshold=t).effective_threshold for t in (0, 0.2, 0.25, 0.3, 0.5, 1)] == [
        3,
        2,
        2,
        1,
        0,
        0,
    ]
    tenth = np.full((1, 10), 0.1, dtype=np.float32)
    assert stats.rows(tenth).effective_threshold[0] == 0


def test_a_blank_row():
    frame = stats.rows([[np.nan, np.nan], [0.25, 0.75]], visible=[[False, False], [True, True]])
    assert frame.iloc[0].isna().all() and frame.iloc[1].notna().all()
    assert frame["argmax"][1] == 1 and stats.rows([[0.25, 0.75]])["argmax"].dtype == np.int64


def test_the_first_of_equal_keys_is_the_argmax():
    assert row(0.2, 0.4, 0.4)["argmax"] == 1


def test_a_row_that_is_off_by_less_than_the_tolerance_is_a_distribution():
    assert row(0.5, 0.50005).normalised_entropy <= 1
    assert row(0, 1.00005).entropy_nats == 0 and row(0, 1.00005).max_weight == 1.00005


@pytest.mark.parametrize(
    "weights, options, wanted",
    [
        ([0.5, 0.5], {}, "weights must have axes [queries, keys], with at least one key; got shape (2,)"),
        (np.zeros((2, 0)), {}, "weights must have axes [queries, keys], with at least one key; got shape (2, 0)"),
        ([[0.5, 0.5], [0.5, 0.4]], {}, "weights of every row must sum to 1; got [0.5, 0.4] in row 1"),
        ([[np.inf, 0]], {}, "weights of every row must sum to 1; got [inf, 0.0] in row 0"),
        ([[1.5, -0.5]], {}, "weights of every row must be at least 0; got [1.5, -0.5] in row 0"),
        (
            [[1, 0], [np.nan, 1]],
            {},
            "weights of every row must hold numbers, or NaN in the whole row; got [nan, 1.0] in row 1",
        ),
        (
            [[0.5, 0.5]],
            {"visible": [[True, False]]},
            "weights of every row must be 0 where a key is not visible; got [0.5, 0.5] in row 0",
        ),
        ([[0.5, 0.5]], {"visible": [True, True]}, "visible must have the shape of the weights, (1, 2); got (2,)"),
        ([[0.5, 0.5]], {"threshold": -0.1}, "threshold must be from 0 to 1; got -0.1"),
        ([[0.5, 0.5]], {"threshold": np.nan}, "threshold must be from 0 to 1; got nan"),
    ],
)
def test_rows_refuses(weights, options, wanted):
    with pytest.raises(ValueError) as error:
        stats.rows(weights, **options)
    assert message(error) == wanted


def test_rows_leaves_its_input_alone():
    weights = REFERENCE.copy()
    stats.rows(weights)
    np.testing.assert_array_equal(weights, REFERENCE)
