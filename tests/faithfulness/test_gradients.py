"""Attributions against finite differences in double precision, and what must hold of them."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import attnviz
from attnviz import faithfulness
from attnviz.mechanisms import MECHANISMS

ATTENDING = [name for name in MECHANISMS if MECHANISMS[name].kinds]
TEXT, TARGET = "The black dog runs.", "Le chien noir court."


@pytest.fixture(scope="module")
def subjects(root):
    """mechanism -> a translation by a tiny model, in double precision."""
    made = {}
    for name in ATTENDING:
        model = attnviz.load(f"en-fr/{name}", root)
        subject = faithfulness.subject(model, TEXT, TARGET)
        made[name] = replace(subject, model=replace(model, model=copy.deepcopy(model.model).double()))
    return made


@pytest.mark.parametrize("name", ATTENDING)
def test_gradients_match_finite_differences(subjects, name):
    """The derivative along a random direction, by central differences with a step of 1e-6."""
    subject, step = subjects[name], 1
    vectors = subject.vectors
    direction = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    inputs = vectors.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(subject.of_vectors(inputs, step).sum(), inputs)
    ahead, behind = (subject.of_vectors(vectors + sign * 1e-6 * direction, step) for sign in (1, -1))
    assert float((gradient * direction).sum()) == pytest.approx(float((ahead - behind) / 2e-6), rel=1e-6, abs=1e-9)
    computed = faithfulness.gradient_times_input(subject, [step])
    np.testing.assert_allclose(computed[0], (gradient * vectors).sum(-1)[0], rtol=1e-9)


@pytest.mark.parametrize("name", ATTENDING)
def test_integrated_gradients_are_complete(subjects, name):
    """Sundararajan et al. 2017, proposition 1: they sum to f(input) - f(baseline), but for what delta says."""
    subject, steps = subjects[name], (0, 2)
    computed = faithfulness.integrated_gradients(subject, steps, points=100)
    nothing = torch.zeros_like(subject.vectors)
    for row, step in enumerate(steps):
        change = float(subject.of_vectors(subject.vectors, step) - subject.of_vectors(nothing, step))
        assert computed.values[row].sum() - change == pytest.approx(computed.delta[row], abs=1e-9)
        if name not in ("transformer", "luong-local"):  # a norm turns sharply near zeros, a window jumps: delta says so
            assert abs(computed.delta[row]) < 1e-3


def test_integrated_gradients_ask_between_tokens_whether_they_are_to_end(subjects):
    calls = []

    def end():
        calls.append(1)
        if len(calls) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        faithfulness.integrated_gradients(replace(subjects["bahdanau"], on_step=end), points=128)


def test_the_forward_pass_is_that_of_the_trace(subjects):
    """Log-probabilities of rows of the embedding, and of ids, are those of the trace of the model."""
    for subject in subjects.values():
        wanted = subject.trace.log_probs
        np.testing.assert_allclose(subject.log_probs([subject.source])[0], wanted, atol=1e-5)
        for step in (0, len(wanted) - 1):
            assert float(subject.of_vectors(subject.vectors, step)[0]) == pytest.approx(wanted[step], abs=1e-5)


def test_sources_of_many_lengths_do_not_meet(subjects):
    for subject in subjects.values():
        shorter = subject.source[2:]
        both = subject.log_probs([subject.source, shorter])
        np.testing.assert_allclose(both[1], subject.log_probs([shorter])[0], atol=1e-10)


@pytest.mark.parametrize("name", ["bahdanau", "transformer"])
def test_leave_one_out_by_hand(subjects, name):
    subject = subjects[name]
    computed = faithfulness.leave_one_out(subject)
    assert computed.shape == (len(subject.target), len(subject.source))
    without = subject.source[:1] + subject.source[2:]
    wanted = subject.log_probs([subject.source])[0] - subject.log_probs([without])[0]
    np.testing.assert_allclose(computed[:, 1], wanted, atol=1e-10)


def test_nothing_is_left_in_the_model(root):
    model = attnviz.load("en-fr/luong-general", root)
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    faithfulness.integrated_gradients(faithfulness.subject(model, TEXT), [0], points=4)
    assert all(torch.equal(value, before[name]) for name, value in model.model.state_dict().items())
    assert not any(parameter.requires_grad or parameter.grad is not None for parameter in model.model.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in model.model.modules())
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def test_a_label_is_explained_too():
    subject = faithfulness.subject(attnviz.load("sst2/self-attention"), "A moving film that is never dull.")
    assert subject.attention.shape == (1, len(subject.source)) and len(subject.target) == 1
    computed = faithfulness.integrated_gradients(subject, points=64)
    assert computed.values.shape == subject.attention.shape and abs(computed.delta[0]) < 0.05
    assert float(subject.log_probs([subject.source])[0, 0]) == pytest.approx(subject.trace.log_probs[0], abs=1e-5)


def test_refusals(root):
    with pytest.raises(ValueError, match=r"^model must have attention; en-fr/fixed-context has none to test$"):
        faithfulness.subject(attnviz.load("en-fr/fixed-context", root), TEXT, TARGET)
