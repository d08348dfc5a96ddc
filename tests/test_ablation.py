"""ablation.py: heads off against a context multiplied by zero; nothing of the model itself changes."""

import itertools
import math

import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnviz
from attnviz import ablation
from attnviz.heads import Head
from attnviz.mechanisms import Config
from attnviz.models.classifier import Classifier
from attnviz.models.model import TextError
from attnviz.networks.registry import build

TEXT, TARGET = "The black dog runs.", "Le chien noir court."
KINDS = {"encoder": ("encoder", "attention"), "decoder": ("decoder", "attention"), "cross": ("decoder", "cross")}


@pytest.fixture(scope="module")
def model(root):
    return attnviz.load("en-fr/transformer", root)


def all_heads():
    return [Head(kind, layer, head) for kind in KINDS for layer in range(2) for head in range(2)]


def by_hand(model, off, source, inputs):
    """Michel et al. 2019, eq. 2, as written: each head's context times 0 or 1, on its way into the output
    projection."""
    hooks = []
    for kind, layer in {(head.kind, head.layer) for head in off}:
        stack, name = KINDS[kind]
        block = getattr(getattr(model, stack)[layer], name)
        gates = torch.tensor([float(Head(kind, layer, head) not in off) for head in range(block.heads)])

        def gate(_, arguments, gates=gates, block=block):
            context = arguments[0]  # (B, T, H*d)
            return ((context.unflatten(-1, (block.heads, -1)) * gates[:, None]).flatten(-2),)

        hooks.append(block.output.register_forward_pre_hook(gate))
    try:
        with torch.no_grad():
            return model(source, inputs)[0]
    finally:
        for hook in hooks:
            hook.remove()


@settings(max_examples=20)
@given(st.sets(st.sampled_from(all_heads())))
def test_off_is_the_context_times_zero(model, off):
    source, inputs = torch.tensor([[5, 9, 11, 3]]), torch.tensor([[2, 7, 8, 10]])
    with torch.no_grad():
        reduced = ablation.without(model.model, model.projections(), off)(source, inputs)[0]
        plain = model.model(source, inputs)[0]
    torch.testing.assert_close(reduced, by_hand(model.model, off, source, inputs), atol=1e-5, rtol=1e-5)
    assert torch.equal(reduced, plain) == (not off)


def test_the_model_stays_as_it_is_and_is_shared(model):
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    changed = ablation.without(model.model, model.projections(), [Head("cross", 1, 0), Head("encoder", 0, 1)])
    assert all(torch.equal(value, before[name]) for name, value in model.model.state_dict().items())
    ours, theirs = dict(changed.named_parameters()), dict(model.model.named_parameters())
    assert all(ours[name].data_ptr() == theirs[name].data_ptr() for name in theirs) and ours.keys() == theirs.keys()
    assert not any(module._forward_pre_hooks for module in model.model.modules())
    assert not changed.training and not any(p.requires_grad for p in changed.parameters())


def test_every_head_of_a_model(model, root):
    assert ablation.heads(model) == all_heads()
    assert ablation.heads(attnviz.load("en-fr/bahdanau", root)) == []


def test_a_head_that_is_not_there(model, root):
    with pytest.raises(ValueError) as error:
        ablation.without(model.model, model.projections(), [Head("cross", 2, 0)])
    assert str(error.value) == "heads must be heads of the model (encoder 0.0 and 11 more heads); got cross 2.0"
    with pytest.raises(ValueError, match=r"^heads must be heads of the model \(it has none\); got cross 0.0$"):
        ablation.switch_off(attnviz.load("en-fr/luong-dot", root), [Head("cross", 0, 0)])


def test_a_translator_without_heads_says_so(model):
    off = [Head("encoder", 1, 0), Head("cross", 0, 1)]
    changed = ablation.switch_off(model, off)
    assert changed.name == "en-fr/transformer without cross 0.1, encoder 1.0" == changed.trace(TEXT).model
    assert ablation.switch_off(model, []) is model and model.name == "en-fr/transformer"
    assert ablation.switch_off(model, all_heads()).name == "en-fr/transformer without cross 0.0 and 11 more heads"


def test_cross_heads_off_leave_the_encoder_and_those_below_alone(model):
    before, after = model.trace(TEXT, TARGET), ablation.switch_off(model, [Head("cross", 0, 0)]).trace(TEXT, TARGET)
    assert before.map("encoder", 1) == after.map("encoder", 1) and before.map("cross", 0) == after.map("cross", 0)
    assert before.map("decoder", 0) == after.map("decoder", 0)
    assert before.map("decoder", 1) != after.map("decoder", 1) and before.map("cross", 1) != after.map("cross", 1)


def test_the_effect_on_a_given_output(model):
    off = [Head("cross", 1, 1)]
    effect = ablation.effect(model, off, TEXT, TARGET)
    changed = ablation.switch_off(model, off)
    assert effect.off == tuple(off) and effect.before.translation == effect.after.translation == TARGET
    assert effect.change == changed.trace(TEXT, TARGET).log_prob - model.trace(TEXT, TARGET).log_prob != 0
    assert effect.free.translation == changed.trace(TEXT).translation and not effect.free.forced
    assert effect.after.alternatives != effect.before.alternatives


def test_the_effect_on_the_models_own_output(model):
    effect = ablation.effect(model, [Head("decoder", 0, 0)], TEXT)
    assert effect.before.translation == model.trace(TEXT).translation and effect.before.forced
    assert ablation.effect(model, [], TEXT).change == 0


def test_importance_is_the_effect_of_each_head(model):
    measured = list(ablation.importance(model, TEXT, TARGET))
    assert [importance.head for importance in measured] == all_heads()
    assert [(importance.done, importance.total) for importance in measured] == [(i, 12) for i in range(1, 13)]
    for importance in measured[::5]:
        assert importance.change == pytest.approx(
            ablation.effect(model, [importance.head], TEXT, TARGET).change, abs=1e-4
        )


def test_importance_can_be_stopped(model, monkeypatch):
    calls, real = [], ablation.without
    monkeypatch.setattr(ablation, "without", lambda *given: calls.append(given[-1]) or real(*given))
    some = list(itertools.islice(ablation.importance(model, TEXT, TARGET), 3))
    assert len(calls) == 3
    frame = ablation.table(some, ablation.heads(model))
    assert list(frame) == ["kind", "layer", "head", "change"] and len(frame) == 12
    assert frame.change.notna().tolist() == [True] * 3 + [False] * 9


def test_importance_of_some_heads(model):
    [importance] = ablation.importance(model, TEXT, TARGET, only=[Head("cross", 0, 1)])
    assert (
        importance.head == Head("cross", 0, 1)
        and (importance.done, importance.total) == (1, 1)
        and math.isfinite(importance.change)
    )


@pytest.fixture(scope="module")
def classifier():
    """Untrained, of two layers and two heads."""
    text = tiny.vocabulary()
    torch.manual_seed(0)
    model = build(Config("self-attention", len(text), tiny.CLASSIFIER)).eval().requires_grad_(False)
    return Classifier("sst2/self-attention", "self-attention", model, text, {})


def test_heads_of_a_classifier(classifier):
    assert ablation.heads(classifier) == [Head("encoder", layer, head) for layer in range(2) for head in range(2)]
    effect = ablation.effect(classifier, [Head("encoder", 0, 1)], TEXT)
    label = classifier.trace(TEXT).translation
    probability = {choice.text: choice.probability for choice in effect.free.alternatives[0]}[label]
    assert effect.after.translation == label and effect.change == pytest.approx(
        math.log(probability) - classifier.trace(TEXT).log_prob
    )
    assert effect.change != 0 and effect.before.alternatives == classifier.trace(TEXT).alternatives
    changes = [importance.change for importance in ablation.importance(classifier, TEXT, label)]
    assert len(changes) == 4 and changes[1] == pytest.approx(effect.change)


def test_a_label_that_there_is_not(classifier):
    with pytest.raises(ValueError, match="^target must be one of negative, positive; got 'neutral'$"):
        next(ablation.importance(classifier, TEXT, "neutral"))


def test_a_text_that_no_model_takes(model):
    with pytest.raises(TextError, match="^the text is empty; type a sentence$"):
        next(ablation.importance(model, " ", TARGET))
    with pytest.raises(TextError, match="^the target is empty; type a sentence$"):
        ablation.effect(model, [], TEXT, " ")


def test_training_is_as_before(model, root):
    assert tiny.WIDTHS["transformer"]["heads"] == 2
    rng = torch.get_rng_state()
    list(ablation.importance(model, TEXT, TARGET, only=[Head("encoder", 0, 0)]))
    assert torch.equal(rng, torch.get_rng_state()) and not model.model.training
