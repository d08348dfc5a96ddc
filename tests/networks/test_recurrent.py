"""Recurrent decoders: the papers' equations in NumPy, the order of looking and stepping, and what is refused."""

import numpy as np
import pytest
import torch
from equations import EQUATIONS
from recurrents import SUMMED, E, V, W, attending, both_cells, every, ids, luong, random_model, untouched

from attnviz.data.tokenizer import BOS
from attnviz.mechanisms import Config
from attnviz.networks.registry import build


@every
@both_cells
@pytest.mark.parametrize("length", [1, 9])
def test_agrees_with_the_equations(name, cell, length):
    model = random_model(name, cell)
    source, target = ids(1, length), torch.cat([torch.tensor([[BOS]]), ids(1, 3, seed=1)], 1)
    logits, weights = model(source, target)
    assert name in EQUATIONS, f"add the equation of {name} to EQUATIONS in tests/helpers/networks/equations.py"
    wanted_logits, wanted_weights = EQUATIONS[name](model, source[0].tolist(), target[0].tolist())
    np.testing.assert_allclose(logits[0], wanted_logits, atol=2e-5)
    assert (weights is None) == (wanted_weights is None)
    if weights is not None:
        np.testing.assert_allclose(weights[0], wanted_weights, atol=2e-6)
        assert ((weights[0] == 0).numpy() == (wanted_weights == 0)).all()


# The order that makes the mechanism.


def first_rows(name, cell, tokens):
    """The weights of each step when the decoder reads these tokens."""
    return random_model(name, cell)(ids(1, 5), torch.tensor([tokens]))[1][0]


@both_cells
def test_bahdanau_looks_before_it_steps(cell):
    # Row t is made with s_{t-1}: a change of the token given at step t leaves row t as it is and changes the next.
    first, other = (first_rows("bahdanau", cell, [BOS, 5, token, 7]) for token in (6, 9))
    assert torch.equal(first[:3], other[:3])
    assert not torch.allclose(first[3], other[3], atol=1e-5)


@luong
@both_cells
def test_luong_steps_before_it_looks(name, cell):
    # Row t is made with s_t, which has read the token given at step t: that very row changes.
    first, other = first_rows(name, cell, [BOS, 5, 6, 7]), first_rows(name, cell, [BOS, 5, 9, 7])
    assert torch.equal(first[:2], other[:2])
    assert not torch.allclose(first[2], other[2], atol=1e-5)


def test_bahdanau_asks_with_the_previous_state_whatever_the_cell_makes_of_it():
    model, source = random_model("bahdanau"), ids(1, 5)
    before = model.step(model.encode(source), model.encode(source).state, torch.tensor([BOS])).cross[0]
    torch.nn.init.normal_(model.cell.weight_ih, std=3)
    after = model.step(model.encode(source), model.encode(source).state, torch.tensor([BOS]))
    assert torch.equal(before, after.cross[0])


@luong
@both_cells
def test_luong_feeds_the_attentional_vector_into_the_next_step(name, cell):
    model = random_model(name, cell)
    memory = model.encode(ids(1, 5))
    first = model.step(memory, memory.state, torch.tensor([BOS]))
    *state, vector = first.state
    torch.testing.assert_close(first.logits, model.logits(vector))  # the logits are made from that vector
    fed = model.step(memory, first.state, torch.tensor([5]))
    starved = model.step(memory, (*state, torch.zeros_like(vector)), torch.tensor([5]))
    assert not torch.allclose(fed.cross[0], starved.cross[0], atol=1e-5)
    assert (memory.state[-1] == 0).all()  # nothing has been attended to before the first step


# Without attention.


@both_cells
def test_a_fixed_context_is_the_same_at_every_step_and_all_there_is(cell):
    model = random_model("fixed-context", cell)
    memory = model.encode(ids(2, 7))
    assert (
        memory.values.shape == (2, 2 * W)
        and memory.prepared is memory.values
        and memory.mask is None
        and memory.maps == ()
    )
    state = memory.state
    for token in (BOS, 5, 6):
        step = model.step(memory, state, torch.tensor([token, token]))
        other = model.step(memory._replace(values=memory.values + 1), state, torch.tensor([token, token]))
        assert step.cross == step.decoder == () and not torch.allclose(step.logits, other.logits, atol=1e-4)
        state = step.state
    assert model(ids(2, 7), ids(2, 3))[1] is None


def test_a_fixed_context_is_dropped_in_training_and_the_first_state_is_not():
    model, summaries = untouched("fixed-context", dropout=0.5).train(), []
    torch.nn.init.ones_(model.start.weight)  # every part of s_0 is tanh of the sum of c
    torch.nn.init.zeros_(model.start.bias)
    model.summary.register_forward_hook(lambda layer, args, out: summaries.append(torch.tanh(out)))
    memory = model.encode(ids(4, 6))
    values, (summary,) = memory.values, summaries
    assert (values == 0).any() and (values[values != 0] == 2 * summary[values != 0]).all()
    torch.testing.assert_close(memory.state[0], torch.tanh(summary.sum(-1, keepdim=True)).expand(4, W))


def test_a_fixed_context_reads_both_ends():
    model, source = random_model("fixed-context"), ids(1, 6)
    whole = model.encode(source).values
    for place in range(6):
        changed = source.clone()
        changed[0, place] = (changed[0, place] - 3) % (V - 4) + 4
        assert not torch.allclose(model.encode(changed).values, whole, atol=1e-5)


# Shapes and states.


@attending
@both_cells
def test_rows_are_distributions_of_the_right_shape(name, cell):
    model = random_model(name, cell)
    memory = model.encode(ids(2, 5))
    step = model.step(memory, memory.state, torch.tensor([BOS, BOS]))
    wide = W if name in SUMMED else 2 * W
    assert memory.values.shape == (2, 5, wide) and memory.maps == () and step.decoder == ()
    assert step.logits.shape == (2, V) and len(step.cross) == 1 and step.cross[0].shape == (2, 1, 5)
    torch.testing.assert_close(step.cross[0].sum(-1), torch.ones(2, 1), atol=1e-5, rtol=0)


def test_an_lstms_state_has_a_memory_cell_and_attention_reads_the_other():
    for name, rest in (("fixed-context", 0), ("bahdanau", 0), ("luong-general", 1)):
        shapes = {
            cell: [tuple(part.shape) for part in random_model(name, cell).encode(ids(2, 5)).state]
            for cell in ("gru", "lstm")
        }
        assert shapes == {"gru": [(2, W)] + [(2, E)] * rest, "lstm": [(2, W)] * 2 + [(2, E)] * rest}
    model = random_model("bahdanau", "lstm")
    memory = model.encode(ids(1, 5))
    h, c = memory.state
    states = ((h, c), (h, c + 1), (h + 1, c))
    row, other_c, other_h = (model.step(memory, state, torch.tensor([BOS])).cross[0] for state in states)
    assert torch.equal(row, other_c) and not torch.allclose(row, other_h, atol=1e-4)


# What is refused.


def refused(call):
    with pytest.raises(ValueError) as error:
        call()
    return str(error.value)


@every
def test_unknown_cells(name):
    assert refused(lambda: untouched(name, "elman")) == "cell must be one of gru, lstm; got 'elman'"


def test_a_fixed_context_has_no_attention_to_drop():
    assert refused(lambda: untouched("fixed-context", attention_dropout=0.1)) == (
        "fixed-context has no option attention_dropout; it has width, embedding_width, dropout, cell"
    )


@attending
def test_a_dropout_is_a_share(name):
    for value in (1, -0.5, 1.5, float("nan")):
        message = f"attention_dropout must be at least 0 and below 1; got {value}"
        assert refused(lambda value=value: untouched(name, attention_dropout=value)) == message
        assert refused(lambda value=value: untouched(name, dropout=value)) == message.removeprefix("attention_")


def test_a_window_reaches_a_key():
    assert build(Config("luong-local", V, {"width": W})).attention.reach == 10  # the paper's
    assert (
        refused(lambda: build(Config("luong-local", V, {"width": W, "reach": 0})))
        == "reach must be at least 1, so that every window holds a key; got 0"
    )
