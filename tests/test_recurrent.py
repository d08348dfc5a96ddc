"""recurrent.py: the papers' equations in NumPy, the order of looking and stepping, and batches that change nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.recurrent import Bahdanau, LuongGeneral, Recurrent
from attnviz.text import BOS, PAD

V, W, E = 30, 6, 4  # vocabulary, state width, embedding width
both = pytest.mark.parametrize("build", [Bahdanau, LuongGeneral])


def made(build, seed=0):
    torch.manual_seed(seed)
    model = build(V, W, E).eval().requires_grad_(False)
    torch.nn.init.normal_(model.output_bias)
    return model


def ids(*shape, seed=0):
    return torch.randint(4, V, shape, generator=torch.Generator().manual_seed(seed))


def padded(sentences):
    batch = torch.full((len(sentences), max(map(len, sentences))), PAD)
    for row, sentence in zip(batch, sentences):
        row[: len(sentence)] = sentence
    return batch


def unrolled(model, source, target, mask=None):
    """The decoder one step at a time: logits (B, T, V), weights (B, T, S)."""
    memory = model.encode(source, mask)
    state, logits, weights = memory.state, [], []
    for token in target.unbind(1):
        step = model.step(memory, state, token)
        state = step.state
        logits.append(step.logits)
        weights.append(step.cross[0][:, 0])
    return torch.stack(logits, 1), torch.stack(weights, 1)


# The oracle: NumPy, one sentence, one step, from the papers' equations.


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def array(tensor):
    return tensor.detach().double().numpy()


def gru(x, h, w_x, w_h, b_x, b_h):
    """r, z gates; n = tanh(W x + r * (U h)); h' = z h + (1 - z) n. Rows of the matrices: r, z, n (torch's order)."""
    width = len(h)
    a, b = array(w_x) @ x + array(b_x), array(w_h) @ h + array(b_h)
    r, z = sigmoid(a[:width] + b[:width]), sigmoid(a[width : 2 * width] + b[width : 2 * width])
    n = np.tanh(a[2 * width :] + r * b[2 * width :])
    return z * h + (1 - z) * n


def cell(model, x, h):
    return gru(x, h, model.cell.weight_ih, model.cell.weight_hh, model.cell.bias_ih, model.cell.bias_hh)


def embedded(model, token):
    return array(model.embedding.weight)[token] * np.sqrt(E)


def encoded(model, source):
    """h_j = [forward; backward] of each word, and s_0 = tanh(W_s backward_1). Bahdanau et al. 2015, A.2.1 and A.2.2."""
    rnn, annotations = model.encoder.rnn, np.zeros((len(source), 2 * W))
    for suffix, order, part in (("l0", range(len(source)), slice(0, W)),
                                ("l0_reverse", reversed(range(len(source))), slice(W, 2 * W))):
        h = np.zeros(W)
        for j in order:
            h = gru(embedded(model, source[j]), h, *(getattr(rnn, f"{kind}_{suffix}")
                                                     for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))
            annotations[j, part] = h
    return annotations, np.tanh(array(model.start.weight) @ annotations[0, W:] + array(model.start.bias))


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum()


def logits_of(model, readout):
    return array(model.embedding.weight) @ readout + array(model.output_bias)


def bahdanau(model, source, target):
    """e_tj = v tanh(W s_{t-1} + U h_j); c_t; s_t = GRU([y; c_t], s_{t-1}); maxout of U_o s_t + C_o c_t + V_o y."""
    memory, s = encoded(model, source)
    look, logits, weights = model.attention, [], []
    for token in target:
        y = embedded(model, token)
        e = [array(look.energy.weight)[0] @ np.tanh(array(look.query.weight) @ s + array(look.key.weight) @ h) for h in memory]
        a = softmax(np.array(e))
        c = sum(share * h for share, h in zip(a, memory))
        s = cell(model, np.concatenate([y, c]), s)
        t = array(model.deep.weight) @ np.concatenate([s, c, y]) + array(model.deep.bias)
        logits.append(logits_of(model, np.array([max(t[2 * i], t[2 * i + 1]) for i in range(E)])))
        weights.append(a)
    return np.array(logits), np.array(weights)


def luong(model, source, target):
    """s_t = GRU([y; h~_{t-1}], s_{t-1}); a_tj from s_t W h_j; h~_t = tanh(W_c [c_t; s_t]); logits from h~_t."""
    memory, s = encoded(model, source)
    fed, logits, weights = np.zeros(E), [], []
    for token in target:
        s = cell(model, np.concatenate([embedded(model, token), fed]), s)
        a = softmax(np.array([s @ array(model.attention.key.weight) @ h for h in memory]))
        c = sum(share * h for share, h in zip(a, memory))
        fed = np.tanh(array(model.attentional.weight) @ np.concatenate([c, s]))
        logits.append(logits_of(model, fed))
        weights.append(a)
    return np.array(logits), np.array(weights)


@pytest.mark.parametrize("build, equations", [(Bahdanau, bahdanau), (LuongGeneral, luong)])
@pytest.mark.parametrize("length", [1, 5])
def test_agrees_with_the_equations(build, equations, length):
    model = made(build)
    source, target = ids(1, length), torch.cat([torch.tensor([[BOS]]), ids(1, 3, seed=1)], 1)
    logits, weights = model(source, target)
    wanted_logits, wanted_weights = equations(model, source[0].tolist(), target[0].tolist())
    np.testing.assert_allclose(weights[0], wanted_weights, atol=1e-6)
    np.testing.assert_allclose(logits[0], wanted_logits, atol=1e-5)


# The order that makes the mechanism.


def first_rows(build, tokens):
    """The weights of each step when the decoder reads these tokens."""
    return made(build)(ids(1, 5), torch.tensor([tokens]))[1][0]


def test_bahdanau_looks_before_it_steps():
    # Row t is made with s_{t-1}, which has read tokens up to t-2: a change of the token given at step t
    # leaves row t as it is and changes the row after it.
    one, other = first_rows(Bahdanau, [BOS, 5, 6, 7]), first_rows(Bahdanau, [BOS, 5, 9, 7])
    assert torch.equal(one[:3], other[:3])
    assert not torch.allclose(one[3], other[3], atol=1e-6)


def test_luong_steps_before_it_looks():
    # Row t is made with s_t, which has read the token given at step t: that very row changes.
    one, other = first_rows(LuongGeneral, [BOS, 5, 6, 7]), first_rows(LuongGeneral, [BOS, 5, 9, 7])
    assert torch.equal(one[:2], other[:2])
    assert not torch.allclose(one[2], other[2], atol=1e-6)


def test_bahdanau_asks_with_the_previous_state_whatever_the_cell_makes_of_it():
    model, source = made(Bahdanau), ids(1, 5)
    before = model.step(model.encode(source), model.encode(source).state, torch.tensor([BOS])).cross[0]
    torch.nn.init.normal_(model.cell.weight_ih, std=3)
    after = model.step(model.encode(source), model.encode(source).state, torch.tensor([BOS]))
    assert torch.equal(before, after.cross[0])


def test_luong_feeds_the_attentional_vector_into_the_next_step():
    model = made(LuongGeneral)
    memory = model.encode(ids(1, 5))
    first = model.step(memory, memory.state, torch.tensor([BOS]))
    state, vector = first.state
    torch.testing.assert_close(first.logits, model.logits(vector))  # the logits are made from that vector
    fed = model.step(memory, first.state, torch.tensor([5]))
    starved = model.step(memory, (state, torch.zeros_like(vector)), torch.tensor([5]))
    assert not torch.allclose(fed.cross[0], starved.cross[0], atol=1e-6)
    assert (memory.state[1] == 0).all()  # nothing has been attended to before the first step


# Two paths agree.


@both
def test_forward_is_stepwise(build):
    model, source, target = made(build), ids(3, 7), ids(3, 5, seed=1)
    mask = torch.arange(7) < torch.tensor([[7], [3], [1]])
    for visible in (None, mask):
        for forward, stepwise in zip(model(source, target, visible), unrolled(model, source, target, visible)):
            torch.testing.assert_close(forward, stepwise, atol=1e-6, rtol=1e-5)


@both
@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), seed=st.integers(0, 1000))
def test_a_sentence_is_the_same_alone_and_in_a_batch(build, lengths, seed):
    model, target = made(build, seed), ids(len(lengths), 4, seed=seed)
    sentences = [ids(length, seed=seed + i) for i, length in enumerate(lengths)]
    source = padded(sentences)
    logits, weights = model(source, target, source != PAD)
    for i, sentence in enumerate(sentences):
        alone, row = model(sentence[None], target[i : i + 1])
        torch.testing.assert_close(logits[i], alone[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(weights[i, :, : len(sentence)], row[0], atol=1e-5, rtol=0)
        assert (weights[i, :, len(sentence) :] == 0).all()


@both
def test_what_stands_in_the_padding_does_not_matter(build):
    model, source, target = made(build), ids(2, 6), ids(2, 4, seed=1)
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    other = torch.where(mask, source, 7)
    for one, same in zip(model(source, target, mask), model(other, target, mask)):
        assert torch.equal(one, same)


@both
def test_rows_are_distributions_of_the_right_shape(build):
    model = made(build)
    memory = model.encode(ids(2, 5))
    step = model.step(memory, memory.state, torch.tensor([BOS, BOS]))
    assert memory.values.shape == (2, 5, 2 * W) and memory.maps == () and step.decoder == ()
    assert step.logits.shape == (2, V) and len(step.cross) == 1 and step.cross[0].shape == (2, 1, 5)
    torch.testing.assert_close(step.cross[0].sum(-1), torch.ones(2, 1), atol=1e-5, rtol=0)


@both
def test_dropout_is_for_training_only(build):
    torch.manual_seed(0)
    model = build(V, W, E, dropout=0.5, attention_dropout=0.5).eval()
    source, target = ids(1, 6), ids(1, 3, seed=1)
    assert torch.equal(model(source, target)[0], model(source, target)[0])
    model.train()
    assert not torch.equal(model(source, target)[0], model(source, target)[0])


@both
def test_gradients_reach_every_parameter(build):
    model = build(V, W, E).train()
    logits, _ = model(ids(2, 5), ids(2, 4, seed=1), torch.tensor([[True] * 5, [True] * 3 + [False] * 2]))
    logits.logsumexp(-1).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()] == []
    assert isinstance(model, Recurrent)
