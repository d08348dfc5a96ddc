"""transformer.py: against torch's own layers with copied weights, with and without kept keys and values."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attnviz.data.tokenizer import BOS, PAD
from attnviz.networks.transformer import DecoderLayer, EncoderLayer, Transformer, positions

V, D, H, HIDDEN = 30, 8, 2, 12


def made(seed=0, layers=2, **options):
    torch.manual_seed(seed)
    model = Transformer(V, D, H, layers, HIDDEN, **options).eval().requires_grad_(False)
    for name, parameter in model.named_parameters():  # biases and norms start at 0 and 1, which would hide a mix-up
        if parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


def ids(*shape, seed=0):
    return torch.randint(4, V, shape, generator=torch.Generator().manual_seed(seed))


def close(a, b, atol=1e-5):
    torch.testing.assert_close(a, b, atol=atol, rtol=1e-5)


def stepwise(model, source, target, mask=None):
    """One token at a time with kept keys and values: logits (B, T, V), cross (B, H, T, S) and own (B, H, T, T) by
    layer."""
    memory = model.encode(source, mask)
    state, logits, cross, own = memory.state, [], [], []
    for token in target.unbind(1):
        step = model.step(memory, state, token)
        state = step.state
        logits.append(step.logits)
        cross.append(step.cross)
        own.append([nn.functional.pad(w, (0, target.shape[1] - w.shape[-1])) for w in step.decoder])
    return torch.stack(logits, 1), [torch.stack(w, 2) for w in zip(*cross)], [torch.stack(w, 2) for w in zip(*own)]


def at_once(model, source, target, mask=None):
    """All tokens in one call, nothing kept: what `stepwise` gives."""
    memory = model.encode(source, mask)
    logits, _, own, cross = model.decode(memory, memory.state, target)
    return logits, list(cross), list(own)


# The oracle: torch's layers with the same numbers in them, and the norm before or after each sub-layer.

FIRST = pytest.mark.parametrize("norm_first", [True, False])


def copy_attention(theirs, ours):
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.memory.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.memory.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def torch_layer(ours):
    build = nn.TransformerDecoderLayer if isinstance(ours, DecoderLayer) else nn.TransformerEncoderLayer
    theirs = build(D, H, HIDDEN, dropout=0, batch_first=True, norm_first=ours.norm_first).eval().requires_grad_(False)
    copy_attention(theirs.self_attn, ours.attention)
    if isinstance(ours, DecoderLayer):
        copy_attention(theirs.multihead_attn, ours.cross)
    theirs.linear1.load_state_dict(ours.feed.enter.state_dict())
    theirs.linear2.load_state_dict(ours.feed.leave.state_dict())
    for number, norm in enumerate(ours.norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())
    return theirs


def hidden(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


LENGTHS = torch.arange(6) < torch.tensor([[6], [2], [4]])  # (B, S) True = a real token


@FIRST
@torch.no_grad()
def test_encoder_layer_agrees_with_torch(norm_first):
    ours = made(norm_first=norm_first).encoder[1]
    assert isinstance(ours, EncoderLayer)
    x = hidden(3, 6, D)
    out, weights = ours(x, LENGTHS[:, None, None, :])
    theirs = torch_layer(ours)
    close(out[LENGTHS], theirs(x, src_key_padding_mask=~LENGTHS)[LENGTHS])
    seen = theirs.norm1(x) if norm_first else x
    close(weights, theirs.self_attn(seen, seen, seen, key_padding_mask=~LENGTHS, average_attn_weights=False)[1])


@FIRST
@torch.no_grad()
def test_decoder_layer_agrees_with_torch(norm_first):
    ours = made(norm_first=norm_first).decoder[1]
    x, memory = hidden(3, 5, D), hidden(3, 6, D, seed=1)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    out, _, own, cross = ours(x, (), causal, ours.cross.remember(memory), LENGTHS[:, None, None, :])
    theirs = torch_layer(ours)
    close(out, theirs(x, memory, tgt_mask=~causal, memory_key_padding_mask=~LENGTHS))
    seen = theirs.norm1(x) if norm_first else x
    context, wanted = theirs.self_attn(seen, seen, seen, attn_mask=~causal, average_attn_weights=False)
    close(own, wanted)
    asked = theirs.norm2(x + context) if norm_first else theirs.norm1(x + context)
    close(cross, theirs.multihead_attn(asked, memory, memory, key_padding_mask=~LENGTHS, average_attn_weights=False)[1])


@FIRST
@torch.no_grad()
def test_the_whole_model_agrees_with_torch(norm_first):
    model, source, target = made(norm_first=norm_first), ids(3, 6), ids(3, 5, seed=1)
    width = torch.arange(0, D, 2)

    def embed(tokens):  # Vaswani et al. 2017, sec. 3.4 and 3.5, position by position
        place = torch.stack(
            [
                torch.stack([f(p / 10_000 ** (width / D)) for f in (torch.sin, torch.cos)], 1).flatten()
                for p in range(tokens.shape[1])
            ]
        )
        return model.embedding.weight[tokens] * D**0.5 + place

    def end(x, norm):  # of a stack; the layers of a post-norm one end with a norm
        return nn.functional.layer_norm(x, (D,), norm.weight, norm.bias) if norm_first else x

    x = embed(source)
    for layer in model.encoder:
        x = torch_layer(layer)(x, src_key_padding_mask=~LENGTHS)
    memory, y = end(x, model.encoder_norm), embed(target)
    for layer in model.decoder:
        y = torch_layer(layer)(y, memory, tgt_mask=~torch.ones(5, 5).tril().bool(), memory_key_padding_mask=~LENGTHS)
    y = end(y, model.decoder_norm)
    close(model(source, target, LENGTHS)[0], y @ model.embedding.weight.T, atol=1e-4)


# Two paths agree.


@FIRST
@pytest.mark.parametrize("mask", [None, LENGTHS])
def test_kept_keys_and_values_change_nothing(mask, norm_first):
    model, source, target = made(layers=3, norm_first=norm_first), ids(3, 6), ids(3, 7, seed=1)
    (logits, cross, own), (kept_logits, kept_cross, kept_own) = (
        at_once(model, source, target, mask),
        stepwise(model, source, target, mask),
    )
    close(kept_logits, logits)
    assert len(cross) == len(own) == len(kept_cross) == len(kept_own) == 3
    for a, b in zip(cross + own, kept_cross + kept_own):
        close(a, b)


def test_several_tokens_after_kept_ones_change_nothing():
    model, target = made(), ids(2, 6, seed=1)
    memory = model.encode(ids(2, 4))
    whole, _, own, _ = model.decode(memory, memory.state, target)
    first, state, _, _ = model.decode(memory, memory.state, target[:, :2])
    rest, _, rest_own, _ = model.decode(memory, state, target[:, 2:])
    close(torch.cat([first, rest], 1), whole)
    close(rest_own[0], own[0][:, :, 2:])


def test_forward_is_decode_with_the_last_layers_weights():
    model, source, target = made(), ids(3, 6), ids(3, 5, seed=1)
    logits, weights = model(source, target, LENGTHS)
    wanted, cross, _ = at_once(model, source, target, LENGTHS)
    assert torch.equal(logits, wanted) and torch.equal(weights, cross[-1])


@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(1, 8), min_size=1, max_size=5), seed=st.integers(0, 1000))
def test_a_sentence_is_the_same_alone_and_in_a_batch(lengths, seed):
    model, target = made(seed), ids(len(lengths), 4, seed=seed)
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
    model, source, target = made(), ids(1, 6), ids(1, 5, seed=1)
    other = target.clone()
    other[:, changed] = (target[:, changed] - 3) % (V - 4) + 4
    (logits, cross, own), (other_logits, other_cross, other_own) = run(model, source, target), run(model, source, other)
    assert torch.equal(logits[:, :changed], other_logits[:, :changed])
    for a, b in zip(cross + own, other_cross + other_own):
        assert torch.equal(a[:, :, :changed], b[:, :, :changed])
    assert not torch.allclose(logits[:, changed], other_logits[:, changed], atol=1e-4)


@pytest.mark.parametrize("run", [at_once, stepwise])
def test_causal_weights_are_exactly_zero_and_rows_sum_to_one(run):
    model, source = made(), ids(3, 6)
    _, cross, own = run(model, source, ids(3, 5, seed=1), LENGTHS)
    above = torch.ones(5, 5).triu(1).bool()
    for weights in own:
        assert (weights[:, :, above] == 0).all() and (weights[:, :, ~above] > 0).all()
    for weights in [*own, *cross, *model.encode(source, LENGTHS).maps]:
        close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_unequal_lengths_and_one_token():
    model = made()
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
    model = made()
    assert not torch.allclose(model.embed(torch.tensor([[5, 5]]))[0, 0], model.embed(torch.tensor([[5, 5]]))[0, 1])
    assert torch.equal(model.embed(torch.tensor([[5]]), first=3), model.embed(torch.tensor([[9, 9, 9, 5]]))[:, 3:])


def test_the_position_limit():
    model = made(longest=6)
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
    model = made(dropout=0.5, attention_dropout=0.5)
    assert torch.equal(model(ids(1, 6), ids(1, 3))[0], model(ids(1, 6), ids(1, 3))[0])
    model.train()
    assert not torch.equal(model(ids(1, 6), ids(1, 3))[0], model(ids(1, 6), ids(1, 3))[0])
    rows = model(ids(1, 6), torch.tensor([[BOS, 5]]))[1].sum(-1)  # weights shown are the undropped ones
    close(rows, torch.ones_like(rows))


def test_dropout_of_hidden_units_is_that_of_the_rest_unless_it_is_given():
    for options, wanted in ({}, 128), ({"activation_dropout": 0.0}, 0), ({"activation_dropout": 0.25}, 64):  # of 256
        model = made(dropout=0.5, **options)
        assert {layer.feed.dropout.dropped for layer in [*model.encoder, *model.decoder]} == {wanted}
        assert {layer.dropout.dropped for layer in [*model.encoder, *model.decoder]} == {model.dropout.dropped} == {128}
    with pytest.raises(ValueError, match="^activation_dropout must be at least 0 and below 1; got 1$"):
        made(activation_dropout=1)


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
    model = made(norm_first=norm_first).requires_grad_(True).train()
    logits, _ = model(ids(3, 6), ids(3, 5, seed=1), LENGTHS)
    (logits.logsumexp(-1) - logits[..., 0]).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()] == []
