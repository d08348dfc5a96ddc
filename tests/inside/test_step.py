"""inside.step against the forward pass itself: hooks in the test catch what the model computes, on tiny and on shipped
models."""

from contextlib import nullcontext
from unittest import mock

import numpy as np
import pytest
import tiny
import torch

import attnviz
from attnviz import inside
from attnviz.mechanisms import MECHANISMS, Config
from attnviz.models.names import ModelName
from attnviz.models.translator import Translator
from attnviz.networks import decode
from attnviz.networks.recurrent import GRUCell
from attnviz.networks.registry import build
from attnviz.select import words

ATTENDING = [name for name in MECHANISMS if MECHANISMS[name].kinds]
TEXT, TARGET = "The black dog runs.", "Le chien noir court."
SHIPPED = [name for name in attnviz.available() if not name.endswith(("/fixed-context", "/writer"))]
TEXTS = {"reverse": "a b c d", "sst2": "A moving film that is never dull."}


@pytest.fixture(scope="module")
def models(root):
    return {name: attnviz.load(f"en-fr/{name}", root) for name in MECHANISMS}


def reader(network, layer):
    """The module that reads the context, and where in its input the context is."""
    if hasattr(network, "decoder"):
        return network.decoder[layer].cross.output, slice(None)
    if hasattr(network, "pooling"):
        return network.output, slice(None)
    if hasattr(network, "attentional"):
        return network.attentional, slice(None, network.attentional.in_features - network.cell.hidden_size)
    return network.cell, slice(network.embedding.embedding_dim, None)


def contexts(model, text, target, layer):
    """A trace, and the context of each of its steps, all heads side by side, as a forward pass step by step reads
    it."""
    module, place = reader(model.model, layer)
    seen = []

    def note(_module, inputs):
        seen.append(inputs[0].reshape(-1)[place].numpy())

    def noted(*inputs):  # of a cell, which is called without hooks
        note(module, inputs)
        return type(module).forward(module, *inputs)

    hook = module.register_forward_pre_hook(note)
    is_cell = isinstance(module, GRUCell)
    with hook, mock.patch.object(module, "forward", noted) if is_cell else nullcontext():
        trace = model.trace(text, target)
        if target is not None:  # forced in one pass; the hook wants the steps
            seen.clear()
            ids = torch.tensor([model.tokenizer.ids(target)])
            decode.unroll(
                model.model, torch.tensor([model.tokenizer.ids(text)]), None, lambda t, _: ids[:, t], ids.shape[1]
            )
    return trace, seen


def check(model, text, target=None, layer=-1, head=0):
    trace, read = contexts(model, text, target, layer)
    weights = trace.map("cross", layer).weights
    for step in (0, len(trace.target) // 2, len(trace.target) - 1):
        opened = inside.step(model, trace, step, layer, head)
        close = dict(rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(opened.weights, weights[head, step], **close)
        width = len(read[step]) // len(weights)
        np.testing.assert_allclose(opened.context, read[step][head * width : (head + 1) * width], **close)
        np.testing.assert_allclose(opened.weighted.sum(0), opened.context, **close)
        products = opened.parts.terms.sum(-1) + (np.log(opened.window.gaussian) if opened.window else 0)
        np.testing.assert_allclose(products[opened.mask], opened.scores[opened.mask], rtol=1e-5, atol=2e-5)
        for ours, theirs in zip(opened.alternatives, trace.alternatives[step], strict=True):
            assert ours.text == theirs.text and ours.probability == pytest.approx(theirs.probability, abs=1e-5)
        assert opened.token == trace.target[step] and opened.keys == trace.source


@pytest.mark.parametrize("target", [None, TARGET])
@pytest.mark.parametrize("name", ATTENDING)
def test_every_number_is_that_of_the_forward_pass(models, name, target):
    check(models[name], TEXT, target)


@pytest.mark.parametrize("layer, head", [(0, 0), (0, 1), (1, 1)])
def test_each_head_of_a_transformer(models, layer, head):
    check(models["transformer"], TEXT, TARGET, layer, head)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_models(name):
    text = TEXTS.get(ModelName.parse(name).pair, "The black dog is running across the grass.")
    check(attnviz.load(name), text)


def test_a_translation_found_by_a_beam():
    model = attnviz.load("en-fr/luong-general")
    trace = model.trace("Two men are standing in front of a building.", beam=5)
    opened = inside.step(model, trace, 3)
    np.testing.assert_allclose(opened.weights, trace.map().weights[0, 3], atol=1e-5)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("name", ["bahdanau", "luong-concat"])
def test_who_asks(name, cell):
    """Bahdanau's weights come of the state before the step, Luong's of the one after: by the score's own formula."""
    text = tiny.vocabulary()
    torch.manual_seed(4)
    network = build(Config(name, len(text), {**tiny.WIDTHS[name], "cell": cell})).eval().requires_grad_(False)
    model = Translator(f"en-fr/{name}", name, network, text, {})
    trace = model.trace(TEXT, TARGET)
    opened, later = inside.step(model, trace, 2), inside.step(model, trace, 3)
    before, after = opened.states
    np.testing.assert_array_equal(after, later.states[0])
    assert opened.asks == {"bahdanau": "before", "luong-concat": "after"}[name]
    np.testing.assert_array_equal(opened.query, before if name == "bahdanau" else after)
    assert not np.array_equal(before, after)


def test_the_window_of_local_attention(models):
    """Luong et al. 2015, eq. 10 with D = 3, so sigma = 1.5."""
    trace = models["luong-local"].trace("The black white grey dog runs.")
    opened = inside.step(models["luong-local"], trace, 1)
    away = np.arange(len(opened.keys)) - opened.window.centre
    np.testing.assert_allclose(opened.window.gaussian, np.exp(-(away**2) / (2 * 1.5**2)), rtol=1e-4)
    np.testing.assert_array_equal(opened.mask, np.abs(away) <= 3)
    assert (opened.weights[~opened.mask] == 0).all() and opened.window.reach == 3


def test_the_largest_terms_come_first(models):
    trace = models["bahdanau"].trace(TEXT)
    parts = inside.step(models["bahdanau"], trace, 0).parts
    listed = parts.largest(1, 16)
    assert sorted(number for number, _ in listed) == list(range(16)) and parts.unit == "hidden unit"
    assert [abs(value) for _, value in listed] == sorted(abs(parts.terms[1]), reverse=True)


def test_nothing_changes(models):
    model = models["transformer"]
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    random_state = torch.get_rng_state()
    trace = model.trace(TEXT)
    opened = inside.step(model, trace, 1)
    assert all(torch.equal(value, before[name]) for name, value in model.model.state_dict().items())
    assert torch.equal(random_state, torch.get_rng_state()) and not model.model.training
    assert not any(module._forward_hooks for module in model.model.modules())
    with pytest.raises(ValueError, match="read-only"):
        opened.scores[0] = 1


def refusal(*arguments, **named):
    with pytest.raises(ValueError) as error:
        inside.step(*arguments, **named)
    return str(error.value)


def test_refusals(models):
    model = models["transformer"]
    trace = model.trace(TEXT, TARGET)
    last = len(trace.target) - 1
    assert refusal(model, trace, last + 1) == (
        f"step must be from 0 to {last}, as the target has tokens; got {last + 1}"
    )
    assert refusal(model, trace, 0, head=2) == "head must be from 0 to 1; got 2"
    assert refusal(models["fixed-context"], models["fixed-context"].trace(TEXT), 0) == (
        "model must have attention to a source; no step of en-fr/fixed-context can be opened"
    )
    assert refusal(models["bahdanau"], models["luong-dot"].trace(TEXT, TARGET), 1).startswith(
        "trace must be one that en-fr/bahdanau made as it is now: at step 1 its weights differ by up to 0."
    )
    assert (
        refusal(model, words(trace), 0) == "trace must be at the level of pieces, as a model makes it; got one of words"
    )


def test_a_trace_of_another_vocabulary(models):
    trace = attnviz.load("en-fr/bahdanau").trace("A young woman smiles.")
    assert refusal(models["bahdanau"], trace, 0) == (
        f"trace must be of a model with this vocabulary; it divides {trace.translation!r} otherwise"
    )


@pytest.mark.parametrize("name", ["en/writer", "shakespeare/writer"])
def test_a_model_that_writes(name):
    """Its context is what the matrix after attention reads in a full pass."""
    model = attnviz.load(name)
    trace, seen = model.write("O, what a", 5, 0.0), []
    hook = model.model.decoder[1].attention.output.register_forward_pre_hook(lambda _, given: seen.append(given[0][0]))
    try:
        model.again(trace)
    finally:
        hook.remove()
    for step, head in ((0, 0), (4, 2), (len(trace.target) - 1, 5)):
        opened = inside.step(model, trace, step, 1, head)
        width = len(opened.context)
        np.testing.assert_allclose(opened.context, seen[0][step, head * width : (head + 1) * width], atol=1e-5)
        np.testing.assert_allclose(opened.parts.terms.sum(-1), opened.scores, atol=2e-5)
        np.testing.assert_allclose(opened.weights, trace.map("decoder", 1).weights[head, step, : step + 1], atol=1e-5)
        assert opened.keys == (trace.start, *trace.target[:step]) and opened.asks == "text"
        for ours, theirs in zip(opened.alternatives, trace.alternatives[step], strict=True):
            assert ours.text == theirs.text and ours.probability == pytest.approx(theirs.probability, abs=1e-5)
    assert "<bos> is the first" in inside.symbols(opened)
