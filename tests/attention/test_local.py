"""attention.Local: the paper's product in NumPy loops, windows that are never empty, and gradients through the centre.

The cases worked by hand are in test_attention_by_hand.py; the whole decoder is in test_recurrent.py.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.attention import General, Local

DQ, DK, DV, B, T, S = 5, 7, 3, 2, 3, 12


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def local_attention(reach=2.0, spread=3.0, seed=3, dropout=0.0):
    torch.manual_seed(seed)
    module = Local(DQ, DK, reach, dropout).requires_grad_(False)
    for parameter in module.parameters():
        parameter.mul_(spread)
    return module


def product(module, query, keys, length):
    """The paper's a_t of one query, not renormalised, over keys 0 to length - 1: eq. 7 over the window, times eq.
    10."""
    query, keys = query.double().numpy(), keys.double().numpy()
    w, hidden, place = (layer.weight.double().numpy() for layer in (module.key, module.hidden, module.place))
    p = length / (1 + math.exp(-(place[0] @ np.tanh(hidden @ query))))
    inside = [s for s in range(length) if abs(s - p) <= module.reach]
    powers = {s: math.exp(query @ w @ keys[s]) for s in inside}
    sigma = module.reach / 2
    return [
        powers[s] / sum(powers.values()) * math.exp(-((s - p) ** 2) / (2 * sigma**2)) if s in inside else 0.0
        for s in range(length)
    ]


LENGTHS = (S, 5)
MASK = torch.arange(S).expand(B, 1, S) < torch.tensor(LENGTHS)[:, None, None]


@pytest.mark.parametrize("reach", [1, 2.0, 4.5])
def test_a_row_is_the_papers_product_over_its_sum(reach):
    module, query = local_attention(reach), numbers(B, T, DQ)
    keys, values = numbers(B, S, DK, seed=1), numbers(B, S, DV, seed=2)
    context, weights = module(query, keys, values, MASK)
    inside = 0
    for b, length in enumerate(LENGTHS):
        for t in range(T):
            row = np.array(product(module, query[b, t], keys[b], length))
            assert 0 < row.sum() < 1  # what the paper leaves
            np.testing.assert_allclose(weights[b, t, :length], row / row.sum(), atol=1e-6)
            np.testing.assert_allclose(context[b, t], row / row.sum() @ values[b, :length].double().numpy(), atol=1e-5)
            assert ((weights[b, t, :length] == 0).numpy() == (row == 0)).all() and (weights[b, t, length:] == 0).all()
            inside += int((row > 0).sum())
    assert inside < T * sum(LENGTHS)  # some keys were out of reach


def test_a_wide_window_is_the_general_score():
    # D = 10^6: a Gaussian that is flat over 12 keys, all of them in reach
    module, query, keys = local_attention(1e6), numbers(B, T, DQ), numbers(B, S, DK, seed=1)
    plain = General(DQ, DK).requires_grad_(False)
    plain.key.load_state_dict(module.key.state_dict())
    torch.testing.assert_close(module(query, keys, keys, MASK), plain(query, keys, keys, MASK), atol=1e-6, rtol=1e-5)


@given(size=st.integers(1, 40), share=st.floats(0, 1, width=32), reach=st.floats(1, 50))
def test_no_window_is_empty(size, share, reach):
    # p is from 0 to S, both included where the sigmoid is 0 or 1: the nearest key is at most 1 away
    _, window = Local(1, 1, reach).around(size * torch.tensor([share]), size)
    assert window.any()


@settings(max_examples=40, deadline=None)
@given(
    spread=st.sampled_from([0.0, 1.0, 30.0, 1e4]),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    reach=st.floats(1, 12),
    seed=st.integers(0, 1000),
)
def test_rows_sum_to_one_also_where_the_centre_is_at_an_end(spread, lengths, reach, seed):
    module, size = local_attention(reach, spread, seed), max(lengths)
    module.key.weight.div_(max(spread, 1))
    query, keys = numbers(len(lengths), T, DQ, seed=seed), numbers(len(lengths), size, DK, seed=seed + 1)
    mask = torch.arange(size).expand(len(lengths), 1, -1) < torch.tensor(lengths)[:, None, None]
    _, weights = module(query, keys, keys, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(lengths), T), atol=1e-5, rtol=0)
    centres = module.centre(query, mask.sum(-1))
    away = (torch.arange(size) - centres.unsqueeze(-1)).abs()
    assert (weights[away > reach + 1e-4] == 0).all() and (weights[~mask.expand_as(weights)] == 0).all()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), length=st.integers(1, 9), padding=st.integers(1, 9))
def test_padding_changes_nothing(seed, length, padding):
    module, query = local_attention(), numbers(B, T, DQ, seed=seed)
    keys, junk = numbers(B, length, DK, seed=seed), 1e3 * numbers(B, padding, DK, seed=seed + 1)
    context, weights = module(query, keys, keys)
    both = torch.cat([keys, junk], 1)
    padded_context, padded = module(query, both, both, (torch.arange(length + padding) < length).expand(B, 1, -1))
    torch.testing.assert_close(padded[..., :length], weights, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(padded_context, context, atol=1e-5, rtol=1e-5)
    assert (padded[..., length:] == 0).all()


def test_gradients_are_those_of_the_formula():
    # Against differences in double precision, in the middle between two window edges.
    module = local_attention().double().requires_grad_(True)
    query, keys = (
        numbers(B, T, DQ).double().requires_grad_(True),
        numbers(B, S, DK, seed=1).double().requires_grad_(True),
    )

    def weights(query, keys, hidden, place):
        module_ = {"hidden.weight": hidden, "place.weight": place}
        return torch.func.functional_call(module, module_, (query, keys, keys, MASK))[1]

    assert torch.autograd.gradcheck(weights, (query, keys, module.hidden.weight, module.place.weight))
    module(query, keys, keys, MASK)[1][..., 1].sum().backward()
    assert module.hidden.weight.grad.any() and module.place.weight.grad.any()


@pytest.mark.parametrize("wanted", [3, 8])
def test_the_centre_learns_to_go_where_it_should(wanted):
    # Scores all alike: only the Gaussian can put weight on one key, by moving its centre there.
    module = local_attention(reach=4, spread=1.0).requires_grad_(True)
    query, keys = numbers(1, 1, DQ), torch.ones(1, S, DK)
    optimizer = torch.optim.Adam([module.hidden.weight, module.place.weight], lr=0.02)
    for _ in range(300):
        loss = -module(query, keys, keys)[1][0, 0, wanted].log()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert module.centre(query, torch.tensor([[float(S)]])).item() == pytest.approx(wanted, abs=0.5)


def test_dropout_is_for_training_only():
    module, query, keys = local_attention(reach=6, dropout=0.5).train(), numbers(1, 6, DQ), numbers(1, 20, DK, seed=1)
    (first, shown), (other, same) = module(query, keys, keys), module(query, keys, keys)
    assert torch.equal(shown, same) and not torch.equal(first, other)
    module.eval()
    assert torch.equal(module(query, keys, keys)[0], module(query, keys, keys)[0])


@pytest.mark.parametrize("reach", [0.5, 0, -3])
def test_a_reach_that_may_hold_no_key_is_refused(reach):
    with pytest.raises(ValueError) as error:
        Local(DQ, DK, reach)
    assert str(error.value) == f"reach must be at least 1, so that every window holds a key; got {reach}"
