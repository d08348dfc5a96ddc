"""translator.py: text in, Trace out, and nothing else changed."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from alike import alike
from refused_texts import refused

import attnviz
from attnviz.data import loops
from attnviz.data.tokenizer import BOS, EOS
from attnviz.loading import load
from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoints
from attnviz.models.model import TextError, describe
from attnviz.models.translator import BEAMS, Translator
from attnviz.networks import decode
from attnviz.trace import Trace

TYPED = "The black dog runs."
every = pytest.mark.parametrize("mechanism", MECHANISMS)


@every
def test_what_a_beam_ends_with(translator, mechanism):
    """The first is the trace's, and the log-probability of each is that of forcing its text."""
    listed = translator.hypotheses(TYPED, 4)
    trace = translator.trace(TYPED, beam=4)
    assert (listed[0].text, listed[0].log_prob) == (trace.translation, pytest.approx(trace.log_prob, abs=1e-3))
    assert 1 <= len(listed) <= 4
    with pytest.raises(ValueError, match="beam must be from 1 to 20"):
        translator.hypotheses(TYPED, 0)


# What a trace holds.
@every
@pytest.mark.parametrize("settings", [{}, {"beam": 3}, {"target": "Le chien noir court."}])
def test_shapes(translator, mechanism, settings):
    trace = translator.trace(TYPED, **settings)
    assert isinstance(trace, Trace) and trace.level == "pieces"
    assert (trace.model, trace.mechanism, trace.text) == (f"en-fr/{mechanism}", mechanism, TYPED)
    sources, targets = len(trace.source), len(trace.target)
    heads, layers = (2, 2) if mechanism == "transformer" else (1, int(mechanism != "fixed-context"))
    wanted = {("cross", layer): (heads, targets, sources) for layer in range(layers)}
    if mechanism == "transformer":
        wanted |= {("encoder", layer): (heads, sources, sources) for layer in range(layers)}
        wanted |= {("decoder", layer): (heads, targets, targets) for layer in range(layers)}
    assert {(m.kind, m.layer): m.weights.shape for m in trace.maps} == wanted
    assert set(MECHANISMS[mechanism].kinds) == {m.kind for m in trace.maps}
    assert trace.source == translator.tokenizer.encode(TYPED).tokens and trace.source[-1].special
    assert len(trace.log_probs) == len(trace.alternatives) == targets
    assert {len(step) for step in trace.alternatives} == {5}


@every
@pytest.mark.parametrize("settings", [{}, {"beam": 4}, {"target": "Le chien noir court."}])
def test_log_probs_and_weights_are_forwards(translator, mechanism, settings):
    trace, text = translator.trace(TYPED, **settings), translator.tokenizer
    if "target" in settings:
        ids = text.ids(settings["target"])
    elif "beam" in settings:
        ids = decode.beam(translator.model, torch.tensor([text.ids(TYPED)]), settings["beam"], end_loops=True)
    else:
        greedy = decode.greedy(translator.model, torch.tensor([text.ids(TYPED)]), end_loops=True)
        ids = greedy.tokens[0].tolist()
    logits, weights = translator.model(torch.tensor([text.ids(TYPED)]), torch.tensor([[BOS, *ids[:-1]]]))
    log_probs = torch.log_softmax(logits[0], -1)
    np.testing.assert_allclose(trace.log_probs, [log_probs[t, i] for t, i in enumerate(ids)], atol=1e-5)
    assert (weights is None) == (trace.maps == ())
    if weights is not None:
        wanted = weights[0].reshape(-1, len(ids), len(trace.source))
        np.testing.assert_allclose(trace.map("cross").weights, wanted, atol=1e-5)
    for t, step in enumerate(trace.alternatives):
        best = log_probs[t].exp().topk(5)
        np.testing.assert_allclose([choice.probability for choice in step], best.values, atol=1e-5)
        assert [choice.text for choice in step] == [text.choice(i) for i in best.indices.tolist()]


@pytest.mark.parametrize("mechanism", ["fixed-context"])
@pytest.mark.parametrize("settings", [{}, {"beam": 4}, {"target": "Le chien noir court."}])
def test_a_model_without_attention_gives_a_trace_without_maps(translator, settings):
    trace = translator.trace(TYPED, **settings)
    assert trace.maps == () and trace.log_prob < 0 and all(len(step) == 5 for step in trace.alternatives)
    assert Trace.from_json(trace.to_json()) == trace
    assert refused(trace.map, ValueError) == "en-fr/fixed-context has no attention, so it has no map to show; got cross"


@every
def test_forced_says_so_and_spells_the_target_as_typed(translator):
    target = "Le  chien, l’été <eos> !"
    trace = translator.trace(TYPED, target)
    assert trace.forced and trace.complete and trace.translation == target
    assert trace.target == translator.tokenizer.encode(target).tokens
    own = translator.trace(TYPED)
    assert not own.forced and not translator.trace(TYPED, beam=2).forced


@every
def test_the_log_probability_alone_is_that_of_the_trace(translator):
    target = "Le chien noir court."
    assert translator.log_prob(TYPED, target) == pytest.approx(translator.trace(TYPED, target).log_prob, abs=1e-4)
    assert refused(lambda: translator.log_prob(TYPED, ""), TextError) == "the target is empty; type a sentence"


@every
def test_forcing_the_words_it_chose_gives_the_same_trace(translator, monkeypatch):
    words = "Le chien noir court."
    ids = translator.tokenizer.ids(words)
    monkeypatch.setattr(decode, "best", lambda t, logits: torch.tensor([ids[t]]))  # a model of our choosing
    own, forced = translator.trace(TYPED), translator.trace(TYPED, words)
    assert (own.forced, own.translation) == (False, words)
    alike(forced, replace(own, forced=True))


@every
@pytest.mark.parametrize("steps, complete", [(4, False), (5, True)])  # the fifth is <eos>
def test_a_target_cut_by_the_limit_says_so(translator, monkeypatch, steps, complete):
    ids = translator.tokenizer.ids("Le chien noir court")
    assert len(ids) == 5 and ids[-1] == EOS
    monkeypatch.setattr(decode, "best", lambda t, logits: torch.tensor([ids[t]]))  # a model of our choosing
    monkeypatch.setattr(decode, "limit", lambda length: steps)
    trace = translator.trace(TYPED)
    assert trace.complete is complete and len(trace.target) == steps and trace.translation == "Le chien noir court"


@every
def test_a_beam_is_no_less_probable_than_a_beam_of_one(translator, monkeypatch):
    # No theorem: a beam may drop greedy's path for better beginnings. It holds for these models, and for most.
    monkeypatch.setattr(loops, "LOOP_TIMES", {})  # these models repeat themselves
    logits, more = translator.model.logits, torch.zeros(len(translator.tokenizer))
    sentences = (TYPED, "The cat sleeps.", "The white grey horse jumps.")
    monkeypatch.setattr(translator.model, "logits", lambda readout: logits(readout) + more)
    while not all(translator.trace(typed, beam=beam).complete for typed in sentences for beam in (1, BEAMS)):
        more[EOS] += 0.2
    for typed in sentences:
        greedy, widest = translator.trace(typed, beam=1), translator.trace(typed, beam=BEAMS)
        assert greedy == translator.trace(typed)
        assert widest.log_prob / len(widest.target) >= greedy.log_prob / len(greedy.target) - 1e-5


@every
@pytest.mark.parametrize(
    "typed", ["a", "👍", "שלום", "<b>x</b> </script>", "  The \t dog\n", "日本 dog", "<eos>", "\u202edog", "…"]
)
def test_anything_that_can_be_read_gives_a_trace(translator, typed):
    trace = translator.trace(typed, typed)
    assert trace.text == trace.translation == typed
    assert Trace.from_json(trace.to_json()) == trace


# No side effects.
def weights_and_random_states(translator):
    parameters = {name: value.clone() for name, value in translator.model.state_dict().items()}
    return parameters, (torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state()))


@every
@pytest.mark.parametrize(
    "settings, fails",
    [
        ({}, None),
        ({"beam": 3}, None),
        ({"target": "Le chien."}, None),
        ({"target": ""}, TextError),
        ({"beam": 99}, ValueError),
        ({"beam": 3}, KeyboardInterrupt),
    ],
)
def test_nothing_else_changes(translator, settings, fails, monkeypatch):
    parameters, randomness = weights_and_random_states(translator)
    if fails is KeyboardInterrupt:  # in the middle of decoding
        step, calls = translator.model.step, []

        def interrupted(*args):
            calls.append(args)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return step(*args)

        monkeypatch.setattr(translator.model, "step", interrupted)
    if fails:
        with pytest.raises(fails):
            translator.trace(TYPED, **settings)
    else:
        translator.trace(TYPED, **settings)
    monkeypatch.undo()
    after, random_after = weights_and_random_states(translator)
    assert checkpoints.same(after, parameters) and random_after == randomness
    assert not any(part.training for part in translator.model.modules())
    assert not any(p.requires_grad for p in translator.model.parameters())
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


@every
def test_the_same_text_gives_the_same_trace(translator):
    assert translator.trace(TYPED) == translator.trace(TYPED)
    assert translator.trace(TYPED) != translator.trace("The cat sleeps.")


# Loading.
@every
def test_loading(root, mechanism):
    model = attnviz.load(f"en-fr/{mechanism}", root)
    assert model.name in attnviz.available(root) and model.mechanism == mechanism
    assert model.title == MECHANISMS[mechanism].title and model.card["parameters"] == 1234
    assert load(model.name, root).trace(TYPED) == model.trace(TYPED)
    assert Translator.load(model.name, root, model.tokenizer).tokenizer is model.tokenizer
    assert describe(model.name, root) == model.card | {
        "name": model.name,
        "mechanism": mechanism,
        "title": model.title,
        "to_fetch": False,
        "problem": None,
    }
