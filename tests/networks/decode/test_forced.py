"""Forced decoding agrees with stepwise decoding and with forward."""

import pytest
import torch
from decoding import RECURRENT, V, close, every, ids, padded, random_model
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.data.tokenizer import BOS, EOS, PAD, UNK
from attnviz.mechanisms import MECHANISMS
from attnviz.networks import decode


# Forced, stepwise and forward.
@every
@pytest.mark.parametrize("length", [1, 6])
def test_forced_is_stepwise_is_forward(name, length):
    model, source = random_model(name), ids(1, 5)
    target = torch.cat([ids(1, length - 1, seed=1), torch.tensor([[EOS]])], 1)
    unrolled = decode.forced(model, source, target)
    assert torch.equal(unrolled.tokens, target)
    forward, weights = model(source, torch.cat([torch.tensor([[BOS]]), target[:, :-1]], 1))
    torch.testing.assert_close(unrolled.logits, forward, atol=1e-5, rtol=1e-5)
    assert (weights is None) == (not unrolled.cross)
    if weights is not None:
        torch.testing.assert_close(unrolled.cross[-1].view_as(weights), weights, atol=1e-6, rtol=1e-5)
    memory = model.encode(source)
    state, token = memory.state, torch.tensor([BOS])
    for t in range(length):
        step = model.step(memory, state, token)
        state, token = step.state, target[:, t]
        close(unrolled.logits[:, t], step.logits)
        for whole, now in zip(unrolled.cross, step.cross, strict=True):
            close(whole[:, :, t], now)
        for whole, now in zip(unrolled.decoder, step.decoder, strict=True):
            close(whole[:, :, t, : t + 1], now)
            assert (whole[:, :, t, t + 1 :] == 0).all()


@pytest.mark.parametrize(
    "name, options", [(name, {}) for name in MECHANISMS] + [(name, {"cell": "lstm"}) for name in RECURRENT]
)
@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4), st.integers(0, 3))
def test_a_batch_is_forced_as_its_sentences_are(name, options, sizes, seed):
    """sizes : source and target lengths. Also by the loop over `step`, which has every product in it."""
    model = random_model(name, seed, **options)
    pairs = [
        (ids(1, size, seed=seed + i), torch.cat([ids(1, steps - 1, seed=seed + i + 9), torch.tensor([[EOS]])], 1))
        for i, (size, steps) in enumerate(sizes)
    ]
    source, target = padded([source for source, _ in pairs]), padded([target for _, target in pairs])
    together = decode.forced(model, source, target, source != PAD)
    assert together.lengths() == [steps for _, steps in sizes]
    for i, (source, target) in enumerate(pairs):
        alone = decode.unroll(model, source, None, lambda t, _: target[:, t], target.shape[1])
        size, steps = sizes[i]
        close(together.logits[i, :steps], alone.logits[0])
        for batched, wanted in zip(together.cross, alone.cross, strict=True):
            close(batched[i, :, :steps, :size], wanted[0])
            assert (batched[i, :, :, size:] == 0).all()
        for batched, wanted in zip(together.encoder, alone.encoder, strict=True):
            close(batched[i, :, :size, :size], wanted[0])
        for batched, wanted in zip(together.decoder, alone.decoder, strict=True):
            close(batched[i, :, :steps, :steps], wanted[0])


@every
def test_forced_says_what_it_is_told_whatever_the_model_would_say(name):
    target = torch.tensor([[UNK, 7, PAD, EOS, 9, EOS]])  # an <eos> in the middle ends it: nothing comes after one
    unrolled = decode.forced(random_model(name), ids(1, 3), target)
    assert unrolled.tokens.tolist() == [[UNK, 7, PAD, EOS]]


@every
def test_shapes(name):
    model, source = random_model(name), ids(2, 5)
    unrolled = decode.unroll(model, source, None, decode.best, 3)
    heads, layers = (2, 2) if name == "transformer" else (1, int(name != "fixed-context"))
    steps = unrolled.tokens.shape[1]
    assert unrolled.logits.shape == (2, steps, V)
    assert [w.shape for w in unrolled.cross] == [(2, heads, steps, 5)] * layers
    own = layers if name == "transformer" else 0
    assert [w.shape for w in unrolled.encoder] == [(2, heads, 5, 5)] * own
    assert [w.shape for w in unrolled.decoder] == [(2, heads, steps, steps)] * own
