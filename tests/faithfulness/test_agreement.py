"""Kendall's tau-b against scipy, and attention against random attributions."""

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as oracle

from attnviz import faithfulness

numbers = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12)


@given(numbers)
def test_tau_b_is_scipys(pairs):
    a, b = (np.array(side, dtype=float) for side in zip(*pairs))
    wanted = oracle.kendalltau(a, b, variant="b").statistic
    np.testing.assert_allclose(faithfulness.tau_b(a[None], b[None])[0], wanted, atol=1e-12)  # NaN for NaN, too


@pytest.mark.parametrize("size", [5, 14])
def test_random_attributions_agree_with_nothing(size):
    """Tau of 2000 random orders has mean 0 within three standard errors, and Kendall's spread."""
    generator = np.random.default_rng(0)
    taus = faithfulness.tau_b(generator.random((2000, size)), generator.random((2000, size)))
    spread = faithfulness.spread_of_tau(size)
    assert abs(taus.mean()) < 3 * spread / 2000**0.5 and taus.std() == pytest.approx(spread, rel=0.05)


def test_a_frame_of_two_methods():
    tokens = synthetic.tokens("Le chien")
    attention = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]])
    same, against = attention.copy(), -attention[:, ::-1]
    frame = faithfulness.agreement(attention, {"same": same, "turned": against}, tokens)
    assert frame["token"].tolist() == ["Le", "chien", "<eos>"] * 2 and frame["step"].tolist() == [0, 1, 2] * 2
    assert frame[frame["method"] == "same"]["tau_b"].tolist() == [1, 1, 1]
    assert frame[frame["method"] == "same"]["top1"].all()
    turned = frame[frame["method"] == "turned"]
    np.testing.assert_allclose(turned["tau_b"], [-1, -1, 1 / 3])  # by size, whatever the sign
    assert turned["top1"].tolist() == [False, False, True]


def test_refusals():
    with pytest.raises(
        ValueError, match=r"^both must have shape \(target tokens, source tokens\); got \(1, 2\) and \(1, 3\)$"
    ):
        faithfulness.tau_b(np.zeros((1, 2)), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="^size must be at least 2; got 1$"):
        faithfulness.spread_of_tau(1)
