"""attention.py: masks, padding, permutations, dropout, and what is refused."""

import pytest
import torch
from attention_scores import DK, DV, B, S, T, every, module_query_and_score, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from attnviz.attention import (
    Attention,
    Dot,
    General,
    MultiHead,
    ScaledDot,
    attend,
    dot_scores,
    masked_softmax,
    scaled_dot_scores,
)

# Properties.
shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 7))
seeds = st.integers(0, 2**31)


def scores_and_mask(shape, seed):
    """Scores (B, T, S) over a wide range, and a mask in which every row sees something."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(shape, generator=generator) * 10 ** torch.randint(-2, 4, (), generator=generator)
    mask = torch.rand(shape, generator=generator) < 0.5
    always = torch.randint(shape[2], shape[:2], generator=generator)
    return scores, mask | F.one_hot(always, shape[2]).bool()


@given(shapes, seeds)
def test_rows_sum_to_one_and_hidden_keys_get_exactly_zero(shape, seed):
    scores, mask = scores_and_mask(shape, seed)
    for weights in (masked_softmax(scores), masked_softmax(scores, mask)):
        torch.testing.assert_close(weights.sum(-1), torch.ones(shape[:2]), atol=1e-5, rtol=0)
        assert (weights >= 0).all()
    assert (masked_softmax(scores, mask)[~mask] == 0).all()


def test_hidden_is_minus_infinity_and_not_merely_low():
    # softmax of -1e9 and of a visible -1e30 would give the hidden key everything
    assert masked_softmax(torch.tensor([[-1e30, 0.0]]), torch.tensor([[True, False]])).tolist() == [[1.0, 0.0]]


@given(seeds)
def test_hidden_scores_do_not_matter(seed):
    scores, mask = scores_and_mask((2, 3, 5), seed)
    changed = torch.where(mask, scores, torch.full_like(scores, 1e30))
    assert torch.equal(masked_softmax(scores, mask), masked_softmax(changed, mask))


@every
@settings(max_examples=15, deadline=None)
@given(seed=seeds, padding=st.integers(1, 4))
@torch.no_grad()
def test_padding_changes_nothing(name, seed, padding):
    module, query, _ = module_query_and_score(name)
    keys, values = numbers(B, S, DK, seed=seed), numbers(B, S, DV, seed=seed + 1)
    junk = [1e3 * numbers(B, padding, width, seed=seed + 2) for width in (DK, DV)]
    mask = (torch.arange(S + padding) < S).expand(B, 1, -1)
    context, weights = module(query, keys, values)
    padded_context, padded = module(query, torch.cat([keys, junk[0]], 1), torch.cat([values, junk[1]], 1), mask)
    torch.testing.assert_close(padded[..., :S], weights, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(padded_context, context, atol=1e-5, rtol=1e-5)
    assert (padded[..., S:] == 0).all()


@every
@settings(max_examples=15, deadline=None)
@given(seed=seeds, order=st.permutations(range(S)))
@torch.no_grad()
def test_permuting_keys_permutes_weights(name, seed, order):
    module, query, _ = module_query_and_score(name)
    keys, values = numbers(B, S, DK, seed=seed), numbers(B, S, DV, seed=seed + 1)
    context, weights = module(query, keys, values)
    moved_context, moved = module(query, keys[:, order], values[:, order])
    torch.testing.assert_close(moved, weights[..., order], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(moved_context, context, atol=1e-5, rtol=1e-5)


@every
@torch.no_grad()
def test_prepared_keys_are_the_same_attention(name):
    module, query, _ = module_query_and_score(name)
    keys, values = numbers(B, S, DK, seed=1), numbers(B, S, DV, seed=2)
    prepared = module.prepare(keys)
    for t in range(T):  # a decoder prepares once and reads one query at a time
        context, weights = module.read(query[:, t : t + 1], prepared, values)
        wanted_context, wanted = module(query, keys, values)
        torch.testing.assert_close(weights[:, 0], wanted[:, t], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(context[:, 0], wanted_context[:, t], atol=1e-6, rtol=1e-5)


# Dropout: what is shown is what was there before it.
def test_weights_come_back_undropped():
    torch.manual_seed(0)
    scores, values = numbers(1, 40, 50), numbers(1, 50, 4, seed=1)
    context, weights = attend(scores, values, dropout=0.5)
    assert torch.equal(weights, masked_softmax(scores)) and (weights > 0).all()
    assert not torch.allclose(context, weights @ values)  # but the context was made from dropped ones


@pytest.mark.parametrize("module", [General(4, 4, dropout=0.5), MultiHead(4, 2, dropout=0.5)])
@torch.no_grad()
def test_dropout_is_for_training_only(module):
    query, keys = numbers(1, 6, 4), numbers(1, 20, 4, seed=1)

    def run():
        return module(query, keys, keys) if isinstance(module, Attention) else module(query, keys)

    (context, weights), (again, same) = module.eval() and (run(), run())
    assert torch.equal(context, again) and torch.equal(weights, same)
    (trained, training_weights), (other, _) = module.train() and (run(), run())
    assert torch.equal(training_weights, weights) and not torch.equal(trained, other)
    torch.testing.assert_close(training_weights.sum(-1), torch.ones(training_weights.shape[:-1]), atol=1e-5, rtol=0)


# Errors.
def refused(call):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    return type(error.value), str(error.value)


def test_a_row_that_sees_nothing_is_refused():
    mask = torch.tensor([[True, False], [False, False]])
    wanted = (ValueError, "every query must see at least one key; the mask hides all keys of some row")
    assert refused(lambda: masked_softmax(torch.zeros(1, 2, 2), mask)) == wanted


def test_a_mask_of_numbers_is_refused():
    wanted = (ValueError, "mask must be bool, True where a key is visible; got torch.float32")
    assert refused(lambda: masked_softmax(torch.zeros(1, 2), torch.ones(1, 2))) == wanted


@pytest.mark.parametrize("score", [dot_scores, scaled_dot_scores, Dot().score, ScaledDot().score])
def test_widths_that_differ_are_refused_where_they_must_agree(score):
    wanted = (
        ValueError,
        "dot scores need queries and keys of the same width; got 3 and 4 "
        "(use general, concat or additive for different widths)",
    )
    assert refused(lambda: score(torch.zeros(1, 1, 3), torch.zeros(1, 2, 4))) == wanted


def test_heads_must_divide_the_width():
    for heads in (4, 0, -5):
        wanted = (ValueError, f"width must be a multiple of heads; got width 10 and {heads} heads")
        assert refused(lambda: MultiHead(10, heads)) == wanted


def test_multi_head_keeps_its_names_on_disk():
    shapes = {name: tuple(value.shape) for name, value in MultiHead(4, 2).state_dict().items()}
    assert shapes == {
        "query.weight": (4, 4),
        "query.bias": (4,),
        "memory.weight": (8, 4),
        "memory.bias": (8,),
        "output.weight": (4, 4),
        "output.bias": (4,),
    }


def test_a_score_must_be_defined():
    class Half(Attention):
        pass

    assert refused(lambda: Half()(*[torch.zeros(1, 1, 1)] * 3)) == (TypeError, "Half must define score()")
