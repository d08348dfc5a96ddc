"""translator.py: text in, Trace out, and nothing else changed."""

import random
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch

import attnviz
from attnviz import checkpoints, decode, loops
from attnviz.loading import load
from attnviz.mechanisms import MECHANISMS
from attnviz.text import BOS, EOS
from attnviz.trace import Trace
from attnviz.translator import BEAMS, LONGEST, TextError, Translator, describe

TYPED = "The black dog runs."
every = pytest.mark.parametrize("mechanism", MECHANISMS)
models = {}


@pytest.fixture
def translator(root, mechanism):
    """A tiny checkpoint, written and read by the real code, made to end its sentences."""
    if mechanism not in models:
        model = Translator.load(f"en-fr/{mechanism}", root)
        if hasattr(model.model, "output_bias"):
            model.model.output_bias[EOS] = 0.4
        models[mechanism] = model
    return models[mechanism]


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
    assert trace.source == translator.text.encode(TYPED).tokens and trace.source[-1].special
    assert len(trace.log_probs) == len(trace.alternatives) == targets
    assert {len(step) for step in trace.alternatives} == {5}


@every
@pytest.mark.parametrize("settings", [{}, {"beam": 4}, {"target": "Le chien noir court."}])
def test_log_probs_and_weights_are_forwards(translator, mechanism, settings):
    trace, text = translator.trace(TYPED, **settings), translator.text
    if "target" in settings:
        said = text.ids(settings["target"])
    elif "beam" in settings:
        said = decode.beam(translator.model, torch.tensor([text.ids(TYPED)]), settings["beam"], end_loops=True)
    else:
        greedy = decode.greedy(translator.model, torch.tensor([text.ids(TYPED)]), end_loops=True)
        said = greedy.tokens[0].tolist()
    logits, weights = translator.model(torch.tensor([text.ids(TYPED)]), torch.tensor([[BOS, *said[:-1]]]))
    log_probs = torch.log_softmax(logits[0], -1)
    np.testing.assert_allclose(trace.log_probs, [log_probs[t, i] for t, i in enumerate(said)], atol=1e-5)
    assert (weights is None) == (trace.maps == ())
    if weights is not None:
        wanted = weights[0].reshape(-1, len(said), len(trace.source))
        np.testing.assert_allclose(trace.map("cross").weights, wanted, atol=1e-5)
    for t, step in enumerate(trace.alternatives):
        best = log_probs[t].exp().topk(5)
        np.testing.assert_allclose([choice.probability for choice in step], best.values, atol=1e-5)
        assert [choice.text for choice in step] == [text.piece(i) for i in best.indices.tolist()]


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
    assert trace.target == translator.text.encode(target).tokens
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
    ids = translator.text.ids(words)
    monkeypatch.setattr(decode, "best", lambda t, logits: torch.tensor([ids[t]]))  # a model of our choosing
    own, forced = translator.trace(TYPED), translator.trace(TYPED, words)
    assert (own.forced, own.translation) == (False, words)
    assert replace(own, forced=True) == forced


@every
@pytest.mark.parametrize("steps, complete", [(4, False), (5, True)])  # the fifth is <eos>
def test_a_target_cut_by_the_limit_says_so(translator, monkeypatch, steps, complete):
    ids = translator.text.ids("Le chien noir court")
    assert len(ids) == 5 and ids[-1] == EOS
    monkeypatch.setattr(decode, "best", lambda t, logits: torch.tensor([ids[t]]))  # a model of our choosing
    monkeypatch.setattr(decode, "limit", lambda length: steps)
    trace = translator.trace(TYPED)
    assert trace.complete is complete and len(trace.target) == steps and trace.translation == "Le chien noir court"


@every
def test_a_beam_is_no_less_probable_than_a_beam_of_one(translator, monkeypatch):
    # No theorem: a beam may drop greedy's path for better beginnings. It holds for these models, and for most.
    monkeypatch.setattr(loops, "TIMES", {})  # these models go in circles
    step, more = translator.model.step, torch.zeros(len(translator.text))
    sentences = (TYPED, "The cat sleeps.", "The white grey horse jumps.")

    def ending(*args):
        found = step(*args)
        return found._replace(logits=found.logits + more)

    monkeypatch.setattr(translator.model, "step", ending)
    while not all(translator.trace(typed, beam=beam).complete for typed in sentences for beam in (1, BEAMS)):
        more[EOS] += 0.2
    for typed in sentences:
        greedy, found = translator.trace(typed, beam=1), translator.trace(typed, beam=BEAMS)
        assert greedy == translator.trace(typed)
        assert found.log_prob / len(found.target) >= greedy.log_prob / len(greedy.target) - 1e-5


@every
@pytest.mark.parametrize("typed", ["a", "👍", "שלום", "<b>x</b> </script>", "  The \t dog\n", "日本 dog", "<eos>", "\u202edog", "…"])
def test_anything_that_can_be_read_gives_a_trace(translator, typed):
    trace = translator.trace(typed, typed)
    assert trace.text == trace.translation == typed
    assert Trace.from_json(trace.to_json()) == trace


# What is refused, in whole sentences.


def refused(call, kind=TextError):
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    return str(error.value)


@every
@pytest.mark.parametrize("blank", ["", " ", "\t\n \u00a0"])
def test_empty_texts(translator, blank):
    assert refused(lambda: translator.trace(blank)) == "the text is empty; type a sentence"
    assert refused(lambda: translator.trace(TYPED, blank)) == "the target is empty; type a sentence"


@every
def test_texts_of_invisible_characters(translator):
    assert refused(lambda: translator.trace("\u200b\u200b")) == "the text holds no visible character; type a sentence"
    assert refused(lambda: translator.trace(TYPED, "\x00")) == "the target holds no visible character; type a sentence"


@every
def test_bytes_that_are_no_text(translator):
    wanted = "the text holds bytes that are no characters; type it again, in UTF-8"
    assert refused(lambda: translator.trace("caf\udce9")) == wanted


@every
def test_long_texts(translator):
    dogs = " ".join(["dog"] * 500)
    pieces = len(translator.text.ids(dogs))
    wanted = (f"the text is too long: {pieces} pieces with the end mark, and the models read at most 200; "
              "shorten it or split it into sentences")
    assert refused(lambda: translator.trace(dogs)) == wanted
    assert refused(lambda: translator.trace(TYPED, dogs)) == wanted.replace("text", "target", 1)


@every
def test_the_longest_text_is_read(translator):
    typed = "dog"
    while len(translator.text.ids(typed + " dog")) <= LONGEST:
        typed += " dog"
    assert len(translator.trace(typed, typed).source) == len(translator.text.ids(typed))
    assert 2 * LONGEST + 10 == decode.limit(LONGEST) <= 512  # the Transformer's places


@every
@pytest.mark.parametrize("beam", [0, -1, BEAMS + 1])
def test_beams_out_of_range(translator, beam):
    assert refused(lambda: translator.trace(TYPED, beam=beam), ValueError) == f"beam must be from 1 to 20; got {beam}"


# No side effects.


def everything(translator):
    parameters = {name: value.clone() for name, value in translator.model.state_dict().items()}
    return parameters, (torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state()))


@every
@pytest.mark.parametrize("settings, fails", [
    ({}, None), ({"beam": 3}, None), ({"target": "Le chien."}, None),
    ({"target": ""}, TextError), ({"beam": 99}, ValueError), ({"target": "Le chien."}, KeyboardInterrupt),
])
def test_nothing_else_changes(translator, settings, fails, monkeypatch):
    parameters, randomness = everything(translator)
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
    after, random_after = everything(translator)
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
    assert Translator.load(model.name, root, model.text).text is model.text
    assert describe(model.name, root) == model.card | {
        "name": model.name, "mechanism": mechanism, "title": model.title, "problem": None}


@pytest.mark.parametrize("missing", ["bahdanau/config.json", "bahdanau/model.safetensors", "tokenizer.json"])
def test_a_checkpoint_described_as_sound_is_one_that_loads(tmp_path, missing):
    folder = tiny.write_models(tmp_path) / "en-fr"
    (folder / "bahdanau" / "card.json").unlink()  # it may be missing
    assert describe("en-fr/bahdanau", tmp_path)["problem"] is None and load("en-fr/bahdanau", tmp_path).card == {}
    (folder / missing).unlink()
    assert describe("en-fr/bahdanau", tmp_path) == {
        "name": "en-fr/bahdanau", "problem": refused(lambda: load("en-fr/bahdanau", tmp_path), checkpoints.CheckpointError)}


def test_a_tokenizer_of_another_pair_is_refused(root, tmp_path):
    target = tiny.write_models(tmp_path / "other")
    small = tiny.train_vocabulary(["ab ab abc abc"], 10)
    small.save(target / "en-fr" / "tokenizer.json")
    size = len(tiny.vocabulary())
    wanted = (f"en-fr/bahdanau: the model knows {size} pieces and the tokenizer {len(small)}; they do not belong together")
    assert refused(lambda: Translator.load("en-fr/bahdanau", target), checkpoints.CheckpointError) == wanted
