"""A model that writes: what it reads, its traces, what it writes on, and what it refuses."""

import math

import pytest
import tiny_writer
import torch

import attnviz
from attnviz import ablation
from attnviz.data.tokenizer import BOS, UNK
from attnviz.models import checkpoint_files
from attnviz.models.model import TextError
from attnviz.models.writer import Writer, beginning
from attnviz.networks.writing import Sampling, allowed
from attnviz.trace import Trace

PROMPT = "The dog runs.\n  The “black” dog"
MODELS = ("en/writer", "shakespeare/writer")


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    root = tiny_writer.write_models(tmp_path_factory.mktemp("writers"))
    models = {name: attnviz.load(name, root) for name in MODELS}
    return models.__getitem__


@pytest.fixture(params=MODELS)
def model(load, request):
    return load(request.param)


def logits_of(model, ids):
    return model.model(torch.tensor([[BOS, *ids[:-1]]]))[0][0]


def test_it_is_loaded_by_its_name(model):
    assert isinstance(model, Writer) and model.limit == 32 and model.head_kinds == ("decoder",) and not model.labels
    assert model.card == {} and len(model.projections()) == 2  # one a layer, at which heads are switched off


def test_tokens_show_what_was_typed(load):
    tokens = load("en/writer").read(PROMPT).tokens
    assert [token.text for token in tokens if token.text in ("\n", "“", "”")] == ["\n", "“", "”"]
    assert all(PROMPT[token.start : token.end] == token.text for token in tokens)
    letters = load("shakespeare/writer").read("Dog \n A").tokens
    assert [token.text for token in letters] == ["D", "o", "g", " ", "\n", " ", "A"]


def test_a_text_is_read(model):
    trace = model.trace(PROMPT)
    ids = model.read(PROMPT).ids
    assert trace.source == trace.target == model.read(PROMPT).tokens and trace.translation == trace.text == PROMPT
    assert trace.forced and trace.complete and trace.mechanism == "writer"
    logits = logits_of(model, ids)
    wanted = logits.log_softmax(dim=-1)[range(len(ids)), ids]
    assert trace.log_probs == pytest.approx(wanted.tolist(), abs=1e-5)
    assert model.log_prob(PROMPT) == pytest.approx(trace.log_prob, abs=1e-4)
    assert [attention.kind for attention in trace.maps] == ["decoder"] * 2
    for attention in trace.maps:
        assert attention.weights.shape == (2, len(ids), len(ids)) and not attention.weights[:, 0, 1:].any()
    assert trace.keys(trace.maps[0])[0].text == "<bos>" and trace.queries(trace.maps[0]) == trace.target
    best = logits.softmax(dim=-1).max(dim=-1).values.tolist()
    assert [step[0].probability for step in trace.alternatives] == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("settings", [{"temperature": 0}, {"temperature": 0.9, "top_k": 20, "seed": 4}, {}])
def test_a_text_is_written_on(model, settings):
    trace = model.write("The dog", 12, **settings)
    count = len(trace.source)
    assert trace.target[:count] == trace.source == model.read("The dog").tokens and not trace.forced
    assert trace.text == "The dog" and trace.translation.startswith("The dog")
    assert len(trace.target) == count + 12 or trace.target[-1].special == trace.complete is True
    ids = model.ids(trace)
    wanted = logits_of(model, ids).log_softmax(dim=-1)[range(len(ids)), ids]
    assert trace.log_probs == pytest.approx(wanted.tolist(), abs=1e-4)  # of large logits
    assert model.write("The dog", 12, **settings) == trace or trace.maps  # NumPy arrays do not compare
    assert model.write("The dog", 12, **settings).translation == trace.translation
    assert Trace.from_json(trace.to_json()).target == trace.target


def test_the_text_is_what_its_pieces_spell(model):
    """Also over a line break, and where the prompt ends with a space, which the next piece brings."""
    for seed in range(6):
        trace = model.write("A boy.\nThe ", 20, seed=seed)
        ids = model.ids(trace)
        assert trace.translation == model.tokenizer.spelled(ids) and UNK not in ids
        for token in trace.target:
            assert token.special or trace.translation[token.start : token.end] == token.text


def test_a_piece_within_a_word_belongs_to_its_word(load):
    model = load("en/writer")
    trace = model.write("The bla", 12, seed=2)
    words = [token.word for token in trace.target if not token.special]
    assert words == sorted(words)
    for before, token in zip(trace.target, trace.target[1:]):
        if token.text.isalpha() and before.text.isalpha() and not token.special:
            assert (token.word == before.word) == (token.start == before.end)


def test_other_seeds_write_other_texts(model):
    assert len({model.write("The dog", 12, 5.0, seed=seed).translation for seed in range(4)}) > 1


def test_greedy_needs_no_seed(model):
    assert model.write("The", 8, 0, seed=1).translation == model.write("The", 8, 0, seed=2).translation


def test_it_stops_where_its_context_ends(model):
    prompt = "The dog"
    for steps in (31, 10**9):
        trace = model.write(prompt, steps, seed=3)
        assert len(trace.target) == 32 or trace.target[-1].special


def test_what_it_would_say_after_each_layer(model):
    trace = model.write("The dog", 9, seed=5)
    layers = model.lens(trace)
    assert len(layers) == 3 and all(len(layer.log_probs) == len(trace.target) for layer in layers)
    assert layers[-1].log_probs == pytest.approx(trace.log_probs, abs=1e-4)
    first = model.tokenizer.choice(int(logits_of_embedding(model).argmax()))
    assert layers[0].alternatives[0][0].text == first != ""


def logits_of_embedding(model):
    """What <bos> says without any layer."""
    network = model.model
    return network.logits(network.decoder_norm(network.embedding(torch.tensor(BOS))))


def test_the_parts_of_each_logit_add_up_to_it(model):
    trace = model.write("The dog", 9, seed=5)
    parts, ids = model.contributions(trace), model.ids(trace)
    assert parts.heads.shape == (2, 2, len(ids))
    torch.testing.assert_close(parts.total(), logits_of(model, ids)[range(len(ids)), ids], atol=1e-4, rtol=1e-4)


def test_many_texts(model):
    traces = list(model.traces(["The dog", "", "A boy"], keep=("maps", "statistics")))
    assert isinstance(traces[1], TextError) and traces[0].trace.text == "The dog"
    assert traces[2].frame().shape[0] == 2 * 2 * len(traces[2].target)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda model: model.write("The", 0), "steps must be a whole number of at least 1; got 0"),
        (lambda model: model.write("The", True), "steps must be a whole number of at least 1; got True"),
        (lambda model: model.write("The", 2.5), "steps must be a whole number of at least 1; got 2.5"),
        (lambda model: model.write("The", 3, math.nan), "temperature must be from 0 to 100; got nan"),
        (lambda model: model.write("The", 3, top_p=0), "top_p must be above 0 and at most 1; got 0"),
        (lambda model: model.write(" \n", 3), "the prompt is empty; type a sentence"),
        (lambda model: model.trace("The", "dog"), "{name} writes on after a text, so it takes no target"),
        (lambda model: model.log_prob("The", "dog"), "{name} writes on after a text, so it takes no target"),
        (lambda model: model.check_beam(2), "beam must be 1 for {name}, which writes on after a text; got 2"),
    ],
)
def test_what_cannot_be_is_refused(model, call, message):
    with pytest.raises(ValueError) as caught:
        call(model)
    assert str(caught.value) == message.format(name=model.name)


def test_a_text_must_fit_the_context(model):
    full = next(text for n in range(99) if len(model.read(text := "." * n + "a").ids) == 32)
    assert len(model.trace(full).target) == 32
    with pytest.raises(TextError) as caught:
        model.write(full)
    unit = f"{model.task.piece}s"
    message = f"the prompt is too long to write on: 32 {unit} fill the context of {model.name}; shorten it"
    assert str(caught.value) == message
    with pytest.raises(TextError) as caught:
        model.trace(f"{full}.")
    assert str(caught.value) == f"the text is too long: 33 {unit}, and {model.name} reads at most 32; shorten it"


def test_a_trace_of_another_vocabulary_has_no_ids(load):
    with pytest.raises(ValueError, match="^trace must be of a model with this vocabulary; it divides 'The dog' other"):
        load("en/writer").ids(load("shakespeare/writer").trace("The dog"))


def not_ended(model, steps):
    """A seed with which the model does not end the text, at temperature 5, and its trace."""
    texts = ((seed, model.write("The dog", steps, 5.0, seed=seed)) for seed in range(99))
    return next((seed, trace) for seed, trace in texts if not trace.target[-1].special)


def test_a_chosen_token_is_taken_and_later_random_numbers_stay(model):
    seed, own = not_ended(model, 6)
    ids, given = model.ids(own), len(own.source)
    same = model.write("The dog", 6, 5.0, seed=seed, choices={2: ids[given + 2]})
    assert model.ids(same) == ids
    other = next(number for number in range(6, 40) if number != ids[given + 2])
    changed = model.ids(model.write("The dog", 6, 5.0, seed=seed, choices={2: other}))
    assert changed[: given + 2] == ids[: given + 2] and changed[given + 2] == other


def test_candidates_have_the_probabilities_of_the_model_and_those_they_are_drawn_with(model):
    trace = not_ended(model, 4)[1]
    ids, how = model.ids(trace), Sampling(0.5, 3)
    logits = logits_of(model, [*ids, 9])[-1]
    candidates = model.candidates(trace, len(ids), how, 5)
    assert [c.probability for c in candidates] == pytest.approx(logits.softmax(-1).topk(5).values.tolist(), abs=1e-4)
    drawn = allowed(logits, how).softmax(-1)
    assert [c.drawn for c in candidates] == pytest.approx([float(drawn[c.id]) for c in candidates], abs=1e-4)
    whole = model.write("The dog", 99, seed=3)  # to its end, or that of the context
    assert model.candidates(whole, len(whole.target), how) == ()


def test_the_beginning_of_what_was_written(model):
    (seed, whole), count = not_ended(model, 9), len(model.read("The dog").ids) + 4
    cut, own = beginning(whole, count), model.write("The dog", 4, 5.0, seed=seed)
    assert cut.target == own.target and cut.translation == own.translation
    assert cut.log_probs == pytest.approx(own.log_probs, abs=1e-4)
    for shorter, alone in zip(cut.maps, own.maps):
        assert abs(shorter.weights - alone.weights).max() < 1e-5


@pytest.mark.parametrize("choices", [{0: 0}, {0: 10**6}, {-1: 9}, {0: "a"}])
def test_tokens_that_cannot_be_chosen(model, choices):
    with pytest.raises(ValueError, match="^choices must be"):
        model.write("The", 3, choices=choices)


def test_heads_of_a_model_that_writes_are_switched_off(model):
    head = ablation.heads(model)[0]
    effect = ablation.effect(model, [head], "The dog")
    [measured] = ablation.importance(model, "The dog", only=[head])
    assert effect.before.translation == effect.after.translation == "The dog"
    assert effect.change == pytest.approx(measured.change, abs=1e-4) and effect.change != 0


SHIPPED = {
    "shakespeare/writer": (
        "val_scenes",
        "nats_a_character_alone",
        1.55,
        "KING RICHARD III:\nWhat sayest thou? speak suddenly; be brief.\n\n"
        "BUCKINGHAM:\nYour grace may do your pleasure.\n",
        1.40,  # 1.325 when it was shipped
    ),
    "en/writer": (
        "stories",
        "bits_a_character",
        1.60,
        "Once upon a time there was an old woman who lived in a little house near the wood.",
        2.3,  # 2.179 when it was shipped
    ),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_models_that_ship_are_as_good_as_their_cards_say(name):
    part, measure, most, text, loss = SHIPPED[name]
    card = checkpoint_files.read_card(name)
    assert card["scores"][part][measure] <= most and card["parameters"] <= 6e6
    trace = attnviz.load(name).trace(text)
    assert -trace.log_prob / len(trace.target) < loss
