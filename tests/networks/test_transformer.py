"""transformer.py: kept keys and values, padding, the future, positions, dropout."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers_by_hand import FIRST, LENGTHS, H, V, at_once, close, ids, random_transformer, stepwise

from attnviz.data.tokenizer import BOS, PAD
from attnviz.networks import Walk
from attnviz.networks.transformer import QuickWalk, Transformer, positions


# Two paths agree.
@FIRST
@pytest.mark.parametrize("mask", [None, LENGTHS])
def test_kept_keys_and_values_change_nothing(mask, norm_first):
    model, source, target = random_transformer(layers=3, norm_first=norm_first), ids(3, 6), ids(3, 7, seed=1)
    (logits, cross, own), (kept_logits, kept_cross, kept_own) = (
        at_once(model, source, target, mask),
        stepwise(model, source, target, mask),
    )
    close(kept_logits, logits)
    assert len(cross) == len(own) == len(kept_cross) == len(kept_own) == 3
    for a, b in zip(cross + own, kept_cross + kept_own):
        close(a, b)


def walked(walk, target) -> tuple:
    """Logits (B, T, V), and the maps, of the steps whose tokens before are target (B, T)."""
    logits = [walk(token[:, None]) for token in target.unbind(1)]
    return torch.cat(logits, dim=1), *walk.maps()


@pytest.mark.parametrize("mask", [None, LENGTHS])
@pytest.mark.parametrize("steps", [1, 7, 40])  # more than the room for keys and values at the beginning
def test_a_quick_walk_is_step_by_step(mask, steps):
    model = random_transformer(layers=3).eval()
    source, target = ids(3, 6), ids(3, steps, seed=1)
    memory = model.encode(source, mask)
    with torch.inference_mode():
        quick, slow = model.walk(memory), Walk(model, memory)
        assert isinstance(quick, QuickWalk)
        (logits, cross, own), (wanted, wanted_cross, wanted_own) = walked(quick, target), walked(slow, target)
    close(logits, wanted)
    assert len(cross) == len(own) == 3
    for ours, theirs in zip(cross + own, wanted_cross + wanted_own, strict=True):
        assert ours.shape == theirs.shape
        close(ours, theirs)
    assert not own[0].triu(1).any()


def test_a_quick_walk_follows_weights_that_change():
    model, target = random_transformer(layers=2).eval(), ids(1, 4, seed=1)
    with torch.inference_mode():
        memory = model.encode(ids(1, 5))
        before = walked(model.walk(memory), target)[0]
    with torch.no_grad():
        model.decoder[0].attention.memory.bias.add_(1)
        model.decoder[1].attention.query.weight.mul_(-2)
    with torch.inference_mode():
        after, wanted = (walked(walk, target)[0] for walk in (model.walk(memory), Walk(model, memory)))
    close(after, wanted)
    assert not torch.allclose(before, after)


def test_a_walk_is_slow_where_modules_are_changed_or_watched():
    """Hooks see every call, other modules are used, and a norm after the sub-layers stays there."""
    seen = []
    watched, other, post = (
        random_transformer().eval(),
        random_transformer().eval(),
        random_transformer(norm_first=False).eval(),
    )
    watched.decoder[0].cross.output.register_forward_pre_hook(lambda module, inputs: seen.append(inputs))
    other.decoder[0].feed = nn.Sequential(other.decoder[0].feed)
    for model in (watched, other, post, random_transformer().train()):
        walk = model.walk(model.encode(ids(1, 4)))
        assert type(walk) is Walk
        walk(torch.tensor([[BOS]]))
    assert len(seen) == 1


def test_logits_follow_weights_that_change():
    model = random_transformer().eval()
    readout = torch.randn(1, model.embedding.embedding_dim)
    with torch.no_grad():
        before = model.logits(readout)
        model.embedding.weight.mul_(2)
        close(model.logits(readout), 2 * before)


def test_several_tokens_after_kept_ones_change_nothing():
    model, target = random_transformer(), ids(2, 6, seed=1)
    memory = model.encode(ids(2, 4))
    whole, _, own, _ = model.decode(memory, memory.state, target)
    first, state, _, _ = model.decode(memory, memory.state, target[:, :2])
    rest, _, rest_own, _ = model.decode(memory, state, target[:, 2:])
    close(torch.cat([first, rest], 1), whole)
    close(rest_own[0], own[0][:, :, 2:])


def test_forward_is_decode_with_the_last_layers_weights():
    model, source, target = random_transformer(), ids(3, 6), ids(3, 5, seed=1)
    logits, weights = model(source, target, LENGTHS)
    wanted, cross, _ = at_once(model, source, target, LENGTHS)
    assert torch.equal(logits, wanted) and torch.equal(weights, cross[-1])


@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(1, 8), min_size=1, max_size=5), seed=st.integers(0, 1000))
def test_a_sentence_is_the_same_alone_and_in_a_batch(lengths, seed):
    model, target = random_transformer(seed), ids(len(lengths), 4, seed=seed)
    source = torch.full((len(lengths), max(lengths)), PAD)
    for i, length in enumerate(lengths):
        source[i, :length] = ids(length, seed=seed + i)
    mask = source != PAD
    logits, cross, own = at_once(model, source, target, mask)
    encoder = model.encode(source, mask).maps
    for i, length in enumerate(lengths):
        alone_logits, alone_cross, alone_own = at_once(model, source[i : i + 1, :length], target[i : i + 1])
        close(logits[i], alone_logits[0])
        for together, alone in zip([*cross, *encoder], [*alone_cross, *model.encode(source[i : i + 1, :length]).maps]):
            rows = alone.shape[2]
            close(together[i, :, :rows, :length], alone[0])
            assert (together[i, :, :, length:] == 0).all()
        for together, alone in zip(own, alone_own):
            close(together[i], alone[0])


# What the decoder may see.
@pytest.mark.parametrize("run", [at_once, stepwise])
@pytest.mark.parametrize("changed", range(5))
def test_the_future_cannot_change_the_past(run, changed):
    model, source, target = random_transformer(), ids(1, 6), ids(1, 5, seed=1)
    other = target.clone()
    other[:, changed] = (target[:, changed] - 3) % (V - 4) + 4
    (logits, cross, own), (other_logits, other_cross, other_own) = run(model, source, target), run(model, source, other)
    assert torch.equal(logits[:, :changed], other_logits[:, :changed])
    for a, b in zip(cross + own, other_cross + other_own):
        assert torch.equal(a[:, :, :changed], b[:, :, :changed])
    assert not torch.allclose(logits[:, changed], other_logits[:, changed], atol=1e-4)


@pytest.mark.parametrize("run", [at_once, stepwise])
def test_causal_weights_are_exactly_zero_and_rows_sum_to_one(run):
    model, source = random_transformer(), ids(3, 6)
    _, cross, own = run(model, source, ids(3, 5, seed=1), LENGTHS)
    above = torch.ones(5, 5).triu(1).bool()
    for weights in own:
        assert (weights[:, :, above] == 0).all() and (weights[:, :, ~above] > 0).all()
    for weights in [*own, *cross, *model.encode(source, LENGTHS).maps]:
        close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_unequal_lengths_and_one_token():
    model = random_transformer()
    for source_length, target_length in ((1, 1), (1, 7), (9, 1), (4, 6)):
        logits, cross, own = at_once(model, ids(1, source_length), ids(1, target_length, seed=1))
        maps = model.encode(ids(1, source_length)).maps
        assert logits.shape == (1, target_length, V)
        assert cross[0].shape == (1, H, target_length, source_length)
        assert own[0].shape == (1, H, target_length, target_length)
        assert maps[0].shape == (1, H, source_length, source_length) and len(maps) == len(cross) == len(own) == 2


def test_positions_by_hand():
    # width 4: rates 1 and 10000^(-2/4) = .01; rows [sin p, cos p, sin .01p, cos .01p]
    wanted = [[0, 1, 0, 1], [0.841471, 0.540302, 0.0099998, 0.99995], [0.909297, -0.416147, 0.0199987, 0.9998]]
    torch.testing.assert_close(positions(3, 4), torch.tensor(wanted), atol=1e-6, rtol=0)


def test_the_same_word_in_another_place_is_another_input():
    model = random_transformer()
    assert not torch.allclose(model.embed(torch.tensor([[5, 5]]))[0, 0], model.embed(torch.tensor([[5, 5]]))[0, 1])
    assert torch.equal(model.embed(torch.tensor([[5]]), first=3), model.embed(torch.tensor([[9, 9, 9, 5]]))[:, 3:])


def test_the_position_limit():
    model = random_transformer(longest=6)
    assert model(ids(1, 6), ids(1, 6))[0].shape == (1, 6, V)
    memory = model.encode(ids(1, 6))
    for call in (
        lambda: model.encode(ids(1, 7)),
        lambda: model.decode(memory, memory.state, ids(1, 7)),
        lambda: stepwise(model, ids(1, 6), ids(1, 7)),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == "the model takes at most 6 tokens; got 7"


def test_dropout_is_for_training_only():
    model = random_transformer(dropout=0.5, attention_dropout=0.5)
    assert torch.equal(model(ids(1, 6), ids(1, 3))[0], model(ids(1, 6), ids(1, 3))[0])
    model.train()
    assert not torch.equal(model(ids(1, 6), ids(1, 3))[0], model(ids(1, 6), ids(1, 3))[0])
    rows = model(ids(1, 6), torch.tensor([[BOS, 5]]))[1].sum(-1)  # weights shown are the undropped ones
    close(rows, torch.ones_like(rows))


def test_dropout_of_hidden_units_is_that_of_the_rest_unless_it_is_given():
    for options, wanted in ({}, 128), ({"activation_dropout": 0.0}, 0), ({"activation_dropout": 0.25}, 64):  # of 256
        model = random_transformer(dropout=0.5, **options)
        assert {layer.feed.dropout.dropped for layer in [*model.encoder, *model.decoder]} == {wanted}
        assert {layer.dropout.dropped for layer in [*model.encoder, *model.decoder]} == {model.dropout.dropped} == {128}
    with pytest.raises(ValueError, match="^activation_dropout must be at least 0 and below 1; got 1$"):
        random_transformer(activation_dropout=1)


def test_post_norm_begins_with_the_weights_of_glorot_and_bengio():
    model = Transformer(V, 32, H, 1, 64, norm_first=False)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and name != "embedding.weight":
            bound = (6 / sum(parameter.shape)) ** 0.5  # uniform up to it on both sides
            assert 0.97 * bound < parameter.abs().max() <= bound, name
        elif "norms" not in name and parameter.dim() == 1:
            assert not parameter.any(), name
    assert not any(name.startswith(("encoder_norm", "decoder_norm")) for name in model.state_dict())


@FIRST
def test_gradients_reach_every_parameter(norm_first):
    model = random_transformer(norm_first=norm_first).requires_grad_(True).train()
    logits, _ = model(ids(3, 6), ids(3, 5, seed=1), LENGTHS)
    (logits.logsumexp(-1) - logits[..., 0]).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()] == []
