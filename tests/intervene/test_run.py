"""A translation under a change: identity changes nothing, analytic contexts, scopes, and a model that stays as it
was."""

import dataclasses

import numpy as np
import pytest
import torch
from alike import alike

import attnviz
from attnviz import intervene
from attnviz.intervene import Given, Hide, Identity, LastOnly, Scope, Uniform
from attnviz.intervene.changed import Changed, at_steps
from attnviz.mechanisms import MECHANISMS
from attnviz.networks import decode

ATTENDING = [name for name in MECHANISMS if MECHANISMS[name].kinds]
TEXT, TARGET = "The black dog runs.", "Le chien noir court."


@pytest.fixture(scope="module")
def models(root):
    return {name: attnviz.load(f"en-fr/{name}", root) for name in MECHANISMS}


@pytest.mark.parametrize("name", ATTENDING)
def test_identity_changes_nothing_bit_for_bit(models, name):
    outcome = intervene.run(models[name], TEXT, Identity(), target=TARGET)
    assert outcome.forced == outcome.before and outcome.free == models[name].trace(TEXT)
    assert not outcome.total_variation.any() and not outcome.log_prob_changes.any()
    assert all(a == b for a, b in zip(outcome.forced.maps, outcome.before.maps))
    np.testing.assert_allclose(outcome.before.log_probs, models[name].trace(TEXT, TARGET).log_probs, atol=1e-5)


@pytest.mark.parametrize("name", ATTENDING)
def test_own_weights_given_back_change_nothing(models, name):
    """A change that puts the very weights of a step in their place, at that step."""
    trace = models[name].trace(TEXT, TARGET)
    row = tuple(trace.map("cross", 0).weights[0, 2].tolist())
    outcome = intervene.run(models[name], TEXT, Given(row), Scope(steps=(2,), layer=0, head=0), TARGET)
    np.testing.assert_allclose(outcome.total_variation, 0, atol=1e-5)
    assert outcome.steps.tolist() == [step == 2 for step in range(len(trace.target))]


@pytest.mark.parametrize("name", [name for name in ATTENDING if name not in ("transformer", "luong-local")])
@pytest.mark.parametrize("change", [Uniform(), LastOnly()], ids=str)
def test_uniform_and_last_only_are_a_fixed_context(models, name, change):
    """Then the context is the mean, or the last, of the annotations at every step: the same forward pass with that in
    its place."""
    model = models[name]
    outcome = intervene.run(model, TEXT, change, target=TARGET)
    source, target = (torch.tensor([model.tokenizer.ids(text)]) for text in (TEXT, TARGET))
    with torch.inference_mode():
        memory = model.model.encode(source)
        fixed = memory.values.mean(1, keepdim=True) if isinstance(change, Uniform) else memory.values[:, -1:]
        same = memory._replace(values=fixed.expand_as(memory.values))  # whatever the weights, that is what they mix
        inputs = torch.cat([torch.tensor([[2 - 1]]), target[:, :-1]], dim=1)
        readouts, _, _ = model.model.force(same, inputs)
        logits = model.model.logits(readouts)
    wanted = logits[0].log_softmax(-1).gather(1, target[0][:, None])[:, 0]
    np.testing.assert_allclose(outcome.forced.log_probs, wanted, atol=2e-5)
    row = np.full(source.shape[1], 1 / source.shape[1]) if isinstance(change, Uniform) else np.eye(source.shape[1])[-1]
    np.testing.assert_allclose(outcome.forced.map().weights[0], np.tile(row, (target.shape[1], 1)), atol=1e-7)


def test_uniform_heads_of_a_transformer_read_the_mean_of_their_values(models):
    model = models["transformer"]
    outcome = intervene.run(model, TEXT, Uniform(), Scope(layer=1), TARGET)
    source, target = (torch.tensor([model.tokenizer.ids(text)]) for text in (TEXT, TARGET))
    with torch.inference_mode():
        memory = model.model.encode(source)
        below, (keys, values) = memory.cross
        mean = values.mean(2, keepdim=True).expand_as(values)
        inputs = torch.cat([torch.tensor([[1]]), target[:, :-1]], dim=1)
        readouts, _, _ = model.model.force(memory._replace(cross=(below, (keys, mean))), inputs)
        logits = model.model.logits(readouts)
    wanted = logits[0].log_softmax(-1).gather(1, target[0][:, None])[:, 0]
    np.testing.assert_allclose(outcome.forced.log_probs, wanted, atol=2e-5)


def test_one_head_and_one_layer_alone(models):
    outcome = intervene.run(models["transformer"], TEXT, LastOnly(), Scope(steps=(0,), layer=0, head=1), TARGET)
    before, after = outcome.before, outcome.forced
    assert after.map("cross", 0).weights[1, 0, -1] == 1
    np.testing.assert_array_equal(after.map("cross", 0).weights[0, 0], before.map("cross", 0).weights[0, 0])
    np.testing.assert_array_equal(after.map("decoder", 0).weights, before.map("decoder", 0).weights)
    assert not np.array_equal(after.map("cross", 1).weights, before.map("cross", 1).weights)


def test_steps_before_the_change_are_untouched(models):
    outcome = intervene.run(models["bahdanau"], TEXT, Uniform(), Scope(steps=(2,)), TARGET)
    assert not outcome.total_variation[:2].any() and outcome.total_variation[2:].all()
    assert outcome.log_prob_changes[:2].tolist() == [0, 0]


def test_steps_of_function_words(models):
    """Le is one; chien, noir and court are not, nor is the full stop."""
    trace = models["bahdanau"].trace(TEXT, TARGET)
    for words, wanted in (("function", {0}), ("content", {1, 2, 3})):
        outcome = intervene.run(models["bahdanau"], TEXT, Uniform(), Scope(words=words), TARGET)
        chosen = {token.word for token, changed in zip(trace.target, outcome.steps) if changed}
        assert chosen == wanted


def test_free_decoding_changes_where_such_a_word_would_be_said():
    """On a trained model: the translation stays in words, and steps of the other kind have their own weights as long
    as the history is the same."""
    model = attnviz.load("en-fr/bahdanau")
    text = "The black dog is running."
    plain = model.trace(text)
    free = intervene.run(model, text, Uniform(), Scope(words="function")).free
    first = plain.target[0].text
    assert first == "Le" and np.ptp(free.map().weights[0, 0]) < 1e-6  # an article
    content = next(step for step, token in enumerate(free.target) if token.text == "chien")
    assert np.ptp(free.map().weights[0, content]) > 0.1


def test_a_hidden_token_gets_nothing(models):
    outcome = intervene.run(models["luong-general"], TEXT, Hide((1,)), target=TARGET)
    assert not outcome.forced.map().weights[..., 1].any() and not outcome.free.map().weights[..., 1].any()
    assert outcome.forced.model == "en-fr/luong-general (source token 2 hidden)"


def state(model):
    return {name: value.clone() for name, value in model.model.state_dict().items()}, set(vars(model.model))


@pytest.mark.parametrize("name", ["bahdanau", "transformer"])
def test_nothing_is_left_in_the_model(models, name):
    model = models[name]
    (weights, attributes), before = state(model), model.trace(TEXT)
    intervene.run(model, TEXT, Uniform(), target=TARGET)
    with pytest.raises(ValueError, match=r"^weights must be one per source token, \d+; got 1$"):
        intervene.run(model, TEXT, Given((1.0,)), target=TARGET)
    after, left = state(model)
    assert all(torch.equal(value, after[key]) for key, value in weights.items()) and attributes == left
    assert model.trace(TEXT) == before and not model.model.training


def test_a_network_changed_is_read_by_every_decoder(models):
    """Greedy in a batch, too: rows do not meet."""
    network = models["luong-dot"].model
    source = torch.tensor([models["luong-dot"].tokenizer.ids(TEXT)] * 2)
    changed = Changed(network, Uniform(), Scope(), at_steps(None))
    decoded = decode.greedy(changed, source)
    assert torch.equal(decoded.tokens[0], decoded.tokens[1])
    torch.testing.assert_close(decoded.cross[0], torch.full_like(decoded.cross[0], 1 / source.shape[1]))


def refusal(*arguments, **named):
    with pytest.raises(ValueError) as error:
        intervene.run(*arguments, **named)
    return str(error.value)


def test_refusals(models):
    assert refusal(models["fixed-context"], TEXT, Uniform()) == (
        "model must have attention; a fixed context has none to change"
    )
    assert refusal(models["transformer"], TEXT, Uniform(), Scope(layer=2)) == "layer must be None or from 0 to 1; got 2"
    assert refusal(models["bahdanau"], TEXT, Uniform(), Scope(head=1)) == "head must be None or from 0 to 0; got 1"
    last = len(models["bahdanau"].trace(TEXT, TARGET).target) - 1
    assert refusal(models["bahdanau"], TEXT, Uniform(), Scope(steps=(99,)), TARGET) == (
        f"steps must be from 0 to {last}, as the target has tokens; got 99"
    )


def test_effects_are_of_one_step_alone(models):
    """At each step: what `run` finds when only that step is changed."""
    model = models["luong-concat"]
    source, target = model.tokenizer.ids(TEXT), model.tokenizer.ids(TARGET)
    for effect in intervene.effects(model.model, source, target, Uniform()):
        outcome = intervene.run(model, TEXT, Uniform(), Scope(steps=(effect.step,)), TARGET)
        (alone,) = intervene.total_variation(effect.plain, effect.changed)
        assert float(alone) == pytest.approx(outcome.total_variation[effect.step], abs=1e-6)
        np.testing.assert_allclose(effect.weights[0][0], outcome.before.map().weights[0, effect.step], atol=1e-6)


def test_a_hundred_permutations_are_one_batch(models):
    model, row = models["transformer"], []
    source, target = model.tokenizer.ids(TEXT), model.tokenizer.ids(TARGET)
    for effect in intervene.effects(model.model, source, target, intervene.Permuted(5), rows=100):
        assert effect.changed.shape == (100, len(model.tokenizer))
        row.append(intervene.total_variation(effect.plain, effect.changed))
    stacked = torch.stack(row)
    assert stacked.shape == (len(target), 100) and float(stacked.min()) > 0 and float(stacked.max()) <= 1


def test_effects_of_identity_are_none(models):
    model = models["scaled-dot"]
    for effect in intervene.effects(
        model.model, model.tokenizer.ids(TEXT), model.tokenizer.ids(TARGET), Identity(), rows=3
    ):
        assert torch.allclose(effect.changed, effect.plain, atol=1e-5)


def test_effects_that_are_left_off_leave_gradients_on(models):
    model = models["bahdanau"]
    effects = intervene.effects(model.model, model.tokenizer.ids(TEXT), model.tokenizer.ids(TARGET), Uniform())
    next(effects)
    assert not torch.is_inference_mode_enabled()


def test_what_is_heard_at_a_step_stops_the_decoding(models):
    """Every step of the three decodings is heard; after a stop the model says what it said before."""
    model, heard = models["bahdanau"], []

    def stop():
        raise KeyboardInterrupt

    whole = intervene.run(model, TEXT, intervene.Uniform(), target=TARGET, on_step=lambda: heard.append(1))
    assert len(heard) == 2 * len(whole.before.target) + len(whole.free.target)
    with pytest.raises(KeyboardInterrupt):
        intervene.run(model, TEXT, intervene.Uniform(), target=TARGET, on_step=stop)
    again = intervene.run(model, TEXT, intervene.Uniform(), target=TARGET)
    assert again.forced.log_probs == whole.forced.log_probs and not torch.is_inference_mode_enabled()


def test_changed_models_trace_batches_too(models):
    """Their readouts are logits already: many texts give what each gives alone."""
    model = models["luong-dot"]
    changed = dataclasses.replace(model, model=Changed(model.model, Uniform(), Scope(), at_steps(None)))
    texts, targets = ["The dog runs.", TEXT], ["Le chien court.", TARGET]
    for batched, text, target in zip(changed.traces(texts, targets), texts, targets, strict=True):
        alike(batched, changed.trace(text, target))
