"""Self-attention of a model that writes, changed; and another word in its prompt."""

import numpy as np
import pytest
import tiny_writer
import torch

import attnviz
from attnviz import intervene
from attnviz.data.tokenizer import BOS
from attnviz.intervene import Hide, Identity, Permuted, Scope, Uniform
from attnviz.intervene.changed import ChangedWriter
from attnviz.networks.writing import Sampling

HOW = Sampling(0.8, 0, 1.0, 3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return attnviz.load("en/writer", tiny_writer.write_models(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="module")
def trace(model):
    return model.write("The dog runs. The", 6, 0.8, seed=3)


def test_without_a_change_the_text_is_the_same(model, trace):
    outcome = intervene.written(model, trace, Identity(), how=HOW)
    assert outcome.free.translation == trace.translation and outcome.free.target == trace.target
    assert outcome.total_variation == pytest.approx(0)
    assert outcome.before.log_probs == pytest.approx(trace.log_probs, abs=1e-4)


def test_one_head_is_changed_at_one_step_and_nothing_before_it(model, trace):
    step, place = 4, Scope(steps=(4,), layer=0, head=1)
    outcome = intervene.written(model, trace, Uniform(), place, HOW)
    before, after = (side.map("decoder", 0).weights.copy() for side in (outcome.before, outcome.forced))
    assert after[1, step, : step + 1] == pytest.approx(1 / (step + 1)) and not after[1, step, step + 1 :].any()
    before[1, step] = after[1, step]
    assert after == pytest.approx(before, abs=1e-6)
    assert outcome.total_variation[:step] == pytest.approx(0, abs=1e-6) and outcome.total_variation[step] > 1e-4
    assert outcome.steps.tolist() == [number == step for number in range(len(trace.target))]


@pytest.mark.parametrize("change", [Permuted(7), Uniform(), Hide((2,))], ids=str)
def test_a_text_read_at_once_is_as_one_read_token_by_token(model, trace, change):
    network = ChangedWriter(model.model, change, Scope())
    ids = torch.tensor([[BOS, *model.ids(trace)[:-1]]])
    with torch.inference_mode():
        whole, state, steps = network.read(ids), (), []
        for token in ids.unbind(1):
            steps.append(network.read(token[:, None], state))
            state = steps[-1].state
    single = torch.cat([step.readouts for step in steps], dim=1)
    assert torch.allclose(single, whole.readouts, atol=1e-4)
    if isinstance(change, Hide):
        assert not whole.maps[0][..., 3:, 2].any() and whole.maps[0][..., 1, :2].sum() == pytest.approx(2)


def test_the_effect_of_each_step_is_that_of_a_change_at_this_step_alone(model, trace):
    effects = list(intervene.written_effects(model, trace, Uniform(), rows=2))
    assert [effect.step for effect in effects] == list(range(len(trace.target)))
    for step in (1, 5):
        alone = intervene.written(model, trace, Uniform(), Scope(steps=(step,)), HOW)
        variation = intervene.total_variation(effects[step].plain, effects[step].changed)
        assert variation.tolist() == pytest.approx([alone.total_variation[step]] * 2, abs=1e-5)
        weights = trace.map("decoder", 1).weights[:, step, : step + 1]
        assert effects[step].weights[1].numpy() == pytest.approx(weights, abs=1e-5)


def test_what_was_written_after_another_prompt(model, trace):
    word = intervene.words(trace)[1]
    outcome = intervene.written_after(model, trace, word, "cat", HOW)
    assert outcome.forced.text == "The cat runs. The" and outcome.free.text == outcome.forced.text
    count = len(trace.target) - trace.given
    assert [token.text for token in outcome.forced.target[-count:]] == [token.text for token in trace.target[-count:]]
    assert outcome.log_prob_changes.shape == outcome.total_variation.shape == (count,)
    wanted = np.subtract(outcome.forced.log_probs[-count:], trace.log_probs[-count:])
    assert outcome.log_prob_changes == pytest.approx(wanted, abs=1e-5) and np.abs(wanted).max() > 0


def test_what_cannot_be_changed_is_said(model, trace):
    for scope, message in (
        (Scope(layer=2), "layer must be None or from 0 to 1; got 2"),
        (Scope(head=9), "head must be None or from 0 to 1; got 9"),
        (Scope(steps=(99,)), "steps must be from 0 to"),
        (Scope(words="function"), "it has no steps of kinds of words"),
    ):
        with pytest.raises(ValueError, match=message):
            intervene.written(model, trace, Uniform(), scope)
    read = model.trace("The dog runs.")
    with pytest.raises(ValueError, match="let it write one"):
        intervene.written_after(model, read, intervene.words(read)[0])
