"""recurrent.py and luong.py: batches and steps that change nothing, and what is so in training only."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrents import W, attending, both_cells, every, ids, luong, padded, random_model, untouched

from attnviz.data.tokenizer import BOS, PAD
from attnviz.mechanisms import Config
from attnviz.networks.recurrent import Recurrent
from attnviz.networks.registry import build


def unrolled(model, source, target, mask=None):
    """The decoder one step at a time: logits (B, T, V), weights (B, T, S) or None."""
    memory = model.encode(source, mask)
    state, logits, weights = memory.state, [], []
    for token in target.unbind(1):
        step = model.step(memory, state, token)
        state = step.state
        logits.append(step.logits)
        weights += [layer[:, 0] for layer in step.cross]
    return torch.stack(logits, 1), torch.stack(weights, 1) if weights else None


def close(a, b, atol=1e-5):
    assert (a is None) == (b is None)
    if a is not None:
        torch.testing.assert_close(a, b, atol=atol, rtol=1e-5)


# Two paths agree.

MASKS = (None, torch.arange(7) < torch.tensor([[7], [3], [1]]))


@every
@both_cells
@pytest.mark.parametrize("mask", MASKS)
def test_forward_is_stepwise(name, cell, mask):
    model, source, target = random_model(name, cell), ids(3, 7), ids(3, 5, seed=1)
    for forward, stepwise in zip(model(source, target, mask), unrolled(model, source, target, mask)):
        close(forward, stepwise, atol=2e-6)


@every
@both_cells
@settings(max_examples=12, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), seed=st.integers(0, 1000))
def test_a_sentence_is_the_same_alone_and_in_a_batch(name, cell, lengths, seed):
    model, target = random_model(name, cell, seed), ids(len(lengths), 4, seed=seed)
    sentences = [ids(length, seed=seed + i) for i, length in enumerate(lengths)]
    source = padded(sentences)
    logits, weights = model(source, target, source != PAD)
    for i, sentence in enumerate(sentences):
        alone, row = model(sentence[None], target[i : i + 1])
        close(logits[i], alone[0])
        if weights is not None:
            close(weights[i, :, : len(sentence)], row[0])
            assert (weights[i, :, len(sentence) :] == 0).all()


@every
@both_cells
def test_what_stands_in_the_padding_does_not_matter(name, cell):
    model, source, target, mask = (
        random_model(name, cell),
        ids(2, 6),
        ids(2, 4, seed=1),
        torch.arange(6) < torch.tensor([[6], [2]]),
    )
    (logits, weights), (other, same) = model(source, target, mask), model(torch.where(mask, source, 7), target, mask)
    assert torch.equal(logits, other)
    assert (weights is same is None) or torch.equal(weights, same)


# Training.


@attending
def test_no_softmax_is_saturated_before_anything_is_learnt(name):
    """Dot products whose states do not start smaller have 0.59 of the largest entropy, the cosine of CONTRIBUTING.md
    0.948, those that ship from 0.975."""
    torch.manual_seed(0)
    model = build(Config(name, 300, {"dropout": 0.3}))  # of the width that is trained
    _, weights = model(*(torch.randint(4, 300, (8, 16)) for _ in range(2)))
    share = torch.special.entr(weights).sum(-1).mean().item() / np.log(16)
    assert share > 0.9, "the softmax is nearly saturated before anything is learnt: let the scores begin smaller"


@luong
def test_scores_of_luongs_decoders_are_not_made_from_what_dropout_left(name):
    model, directions = untouched(name, dropout=0.5).train(), torch.randn(1, 6, 2 * W)
    values, prepared = model.annotate(directions)
    dropped = values == 0
    assert dropped.any() and torch.equal(prepared, model.attention.prepare(model.join(directions)))
    torch.testing.assert_close(values[~dropped], 2 * model.join(directions)[~dropped])


@every
def test_dropout_is_for_training_only(name):
    model, source, target = untouched(name, dropout=0.5).eval(), ids(1, 6), ids(1, 3, seed=1)
    assert torch.equal(model(source, target)[0], model(source, target)[0])
    model.train()
    assert not torch.equal(model(source, target)[0], model(source, target)[0])


@attending
def test_attention_dropout_is_an_option_of_every_mechanism_that_attends(name):
    model, source, target = untouched(name, attention_dropout=0.5).train(), ids(1, 6), torch.tensor([[BOS]])
    runs = [model(source, target) for _ in range(8)]
    assert any(not torch.equal(runs[0][0], logits) for logits, _ in runs)
    for _, weights in runs:  # those of the first step come before what was dropped, and are shown undropped
        assert torch.equal(weights, runs[0][1])


@every
@both_cells
def test_what_is_trained_at_once_has_the_gradients_of_the_steps(name, cell):
    source, target, mask = ids(2, 5), ids(2, 4, seed=1), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    stepped, at_once = untouched(name, cell).train(), untouched(name, cell).train()
    at_once.load_state_dict(stepped.state_dict())
    stepped(source, target, mask)[0].logsumexp(-1).sum().backward()
    at_once.logits(at_once.readouts(at_once.encode(source, mask), target)).logsumexp(-1).sum().backward()
    for weight, same in zip(stepped.parameters(), at_once.parameters()):
        torch.testing.assert_close(weight.grad, same.grad)


@every
@both_cells
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_reach_every_parameter_and_are_finite(name, cell, dtype):
    model = untouched(name, cell).train().to(dtype)
    logits, _ = model(ids(2, 5), ids(2, 4, seed=1), torch.tensor([[True] * 5, [True] * 3 + [False] * 2]))
    logits.float().logsumexp(-1).sum().backward()
    assert isinstance(model, Recurrent) and logits.dtype == dtype
    for which, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all() and parameter.grad.any(), which
