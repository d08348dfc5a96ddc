"""Dropout from few random bits is dropout: the share, the scale, the gradient, and nothing in evaluation mode."""

import pytest
import torch
from scipy.stats import binomtest

from attnviz.networks.cpu import Dropout


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("shape", [(100_003,), (37, 41, 53), (8, 1, 9_999)])
def test_share_and_scale(p, shape):
    torch.manual_seed(3)
    dropped = round(p * 256) / 256
    x = torch.ones(shape)
    y = Dropout(p)(x)
    assert y.shape == x.shape and set(y.unique().tolist()) == {0.0, torch.tensor(1 / (1 - dropped)).item()}
    assert binomtest(int((y == 0).sum()), y.numel(), dropped).pvalue > 1e-4


def test_neighbours_are_dropped_independently():
    """All eight bytes of a 64-bit draw are used: each place, and each pair of neighbours, falls as often as it
    should."""
    torch.manual_seed(4)
    zero = (Dropout(0.5)(torch.ones(8 * 40_000)) == 0).view(-1, 8).double()
    assert (zero.mean(0) - 0.5).abs().max() < 0.02
    assert (torch.corrcoef(zero.T) - torch.eye(8)).abs().max() < 0.03


def test_the_gradient_is_zero_where_the_output_is():
    x = torch.randn(1000, requires_grad=True)
    y = Dropout(0.25)(x)
    y.sum().backward()
    assert torch.equal(x.grad == 0, y == 0)
    torch.testing.assert_close(x.grad[y != 0], torch.full_like(x.grad[y != 0], 1 / 0.75))


def test_seeded_like_everything_else():
    layer = Dropout(0.3)
    draws = []
    for _ in range(2):
        torch.manual_seed(5)
        draws.append(layer(torch.ones(999)))
    assert torch.equal(*draws) and not torch.equal(draws[0], layer(torch.ones(999)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_evaluation_and_zero_leave_it_alone(dtype):
    x = torch.randn(50, dtype=dtype)
    assert Dropout(0.5).eval()(x) is x and Dropout(0.0)(x) is x
    assert Dropout(0.5)(x).dtype == dtype


@pytest.mark.parametrize("p", [-0.1, 1.0, 2])
def test_a_share_that_is_none(p):
    with pytest.raises(ValueError, match=f"dropout must be at least 0 and below 1; got {p}"):
        Dropout(p)
