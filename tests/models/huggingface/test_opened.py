"""Steps of encoder–decoders of the transformers library, opened, changed and tested, against the library itself: its
own passes with other parameters, hooks, finite differences."""

import copy
import dataclasses

import any_family
import families
import family_table
import numpy as np
import pytest
import torch

import attnviz
from attnviz import faithfulness, function_words, inside, intervene
from attnviz.faithfulness.sentence import results
from attnviz.intervene import Given, Hide, Identity, LastOnly, Scope, Uniform

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT, TARGET = "The black dogs are running.", "Le chien noir court."
FAMILIES = ("t5", "marian", "mbart", "m2m_100")  # no scaling; fixed places; places in a table; places by ids


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """family -> a small model, of which cross-attention says more of the output than in one with random weights."""
    root, made = tmp_path_factory.mktemp("opened"), {}

    def model(family):
        if family in families.FAMILIES:
            folder = families.write(root / family, family)
        else:
            name, tokenizer = family_table.listed()[family]
            folder = any_family.write(root / family, name, tokenizer(), pad_token_id=0, eos_token_id=1)
        model = attnviz.load(f"hf:{folder}")
        for module in cross(model.model):
            output(module).weight.mul_(30)
        for module in model.model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.fill_(1)
        return model

    return lambda family: made.get(family) or made.setdefault(family, model(family))


def cross(network):
    """The modules of cross-attention, by the names that families give them."""
    ends = ("encoder_attn", "EncDecAttention")
    return [module for path, module in network.named_modules() if path.endswith(ends)]


def output(module):
    return module.o if hasattr(module, "o") else module.out_proj


@pytest.mark.parametrize("family", ["t5", "marian", "mbart"])
@torch.inference_mode()
def test_attention_is_changed_at_words_of_a_kind_in_forced_and_in_free_text(models, family):
    """Forced: at the words of the text. Free: where the unchanged model, after the same text, would choose one; here a
    loop decodes with the choices made by hand, a pass without attention changed and one with it at each step."""
    model = models(family).producing("fra_Latn")
    kinds = function_words.kinds(TARGET, model.read(TARGET, target=True).tokens, "fr")
    for words in ("function", "content"):
        outcome = intervene.run(model, TEXT, Uniform(), Scope(words=words), TARGET)
        assert outcome.steps.tolist() == [kind == words for kind in kinds] and outcome.steps.any()
        even = np.isclose(outcome.forced.map("cross", -1).weights, 1 / len(outcome.forced.source), atol=1e-6).all(
            (0, 2)
        )
        assert even.tolist() == outcome.steps.tolist()
        ids, places = [model.start], []
        source = model.read(TEXT).ids
        network = model.opened_network()
        while len(ids) <= 12:
            network.rows = None
            best = network(torch.tensor([source]), torch.tensor([ids]))[0][0].argmax(-1)
            kind = function_words.kind(model.tokenizer.decode([int(best[-1])]), "fr")
            places += [len(ids) - 1] if kind == words else []
            network.rows = lambda layer, first, weights: torch.stack(
                [
                    torch.full_like(row, 1 / row.shape[-1]) if t in places else row
                    for t, row in enumerate(weights.unbind(2))
                ],
                2,
            )
            ids.append(int(network(torch.tensor([source]), torch.tensor([ids]))[0][0, -1].argmax()))
        written = [token.text.lstrip("#·") for token in outcome.free.target][:11]
        assert written == [model.output(number).lstrip("#·") for number in ids[1 : len(written) + 1]]
    preserved = faithfulness.preserved(faithfulness.subject(model, TEXT, TARGET))
    assert {*preserved["kind"]} == {*kinds} >= {"function", "content"}


def queries_at_zero(model):
    """A copy of the network whose cross-attention has equal scores: its queries are 0."""
    network = copy.deepcopy(model.model)
    for module in cross(network):
        for parameter in (module.q if hasattr(module, "q") else module.q_proj).parameters():
            parameter.zero_()
    return network


def logits(model, network, text, target):
    source, wanted = (torch.tensor([model.read(words, target=words is target).ids]) for words in (text, target))
    start = torch.tensor([[model.start]])
    given = {"input_ids": source, "decoder_input_ids": torch.cat([start, wanted[:, :-1]], dim=1)}
    with torch.inference_mode():
        return network(**given, attention_mask=torch.ones_like(source)).logits[0]


def distance(a, b):
    return ((a.softmax(-1) - b.softmax(-1)).abs().sum(-1) / 2).numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_uniform_attention_is_that_of_queries_that_are_zero(models, family):
    model = models(family)
    outcome = intervene.run(model, TEXT, Uniform(), target=TARGET)
    plain, even = (logits(model, network, TEXT, TARGET) for network in (model.model, queries_at_zero(model)))
    np.testing.assert_allclose(outcome.total_variation, distance(plain, even), atol=1e-5)
    assert outcome.total_variation.max() > 1e-4 and outcome.before == model.trace(TEXT, TARGET)
    changed = [m.weights for m in outcome.forced.maps if m.kind == "cross"]
    assert all(np.allclose(weights, 1 / weights.shape[-1]) for weights in changed)
    assert model.trace(TEXT, TARGET) == outcome.before  # the model itself has not changed


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_alone_a_layer_and_a_head(models, family):
    """One pass over all steps, and one step after the other with the library's cache, say the same."""
    model, step = models(family), 2
    alone = intervene.run(model, TEXT, LastOnly(), Scope(steps=(step,), layer=1, head=1), TARGET)
    assert alone.steps.tolist() == [place == step for place in range(len(alone.before.target))]
    assert not alone.total_variation[:step].any()
    before, after = (trace.map("cross", 1).weights for trace in (alone.before, alone.forced))
    others = np.delete(after, 1, axis=0)
    np.testing.assert_allclose(others[:, : step + 1], np.delete(before, 1, axis=0)[:, : step + 1], atol=1e-6)
    assert after[1, step].tolist() == [0] * (after.shape[-1] - 1) + [1]
    subject = faithfulness.subject(model, TEXT, TARGET)
    for change in (LastOnly(), Hide((1,))):
        for effect in list(subject.effects(change))[::3]:
            scope = Scope(steps=(effect.step,))
            outcome = intervene.run(model, TEXT, change, scope, TARGET)
            variation = intervene.total_variation(effect.plain, effect.changed)[0]
            assert float(variation) == pytest.approx(outcome.total_variation[effect.step], abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_written_freely_follows_the_change(models, family):
    model = models(family)
    same = intervene.run(model, TEXT, Identity(), target=TARGET)
    assert same.free == model.trace(TEXT) and not same.total_variation.any()
    free = intervene.run(model, TEXT, Uniform(), target=TARGET).free
    even = dataclasses.replace(model, model=queries_at_zero(model)).trace(TEXT)
    assert (free.translation, free.target) == (even.translation, even.target)
    np.testing.assert_allclose(free.log_probs, even.log_probs, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_opened_step_is_what_the_library_computes(models, family):
    model, step, layer, head = models(family), 3, 1, 1
    trace = model.trace(TEXT, TARGET)
    module = cross(model.model)[layer]
    seen = []
    hook = output(module).register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0][0]))
    logits(model, model.model, TEXT, TARGET)
    hook.remove()
    opened = inside.step(model, trace, step, layer, head)
    width = len(opened.context)
    np.testing.assert_allclose(opened.context, seen[0][step, head * width :][:width], atol=1e-5)
    np.testing.assert_allclose(opened.weights, trace.map("cross", layer).weights[head, step], atol=1e-6)
    np.testing.assert_allclose(opened.parts.terms.sum(-1), opened.scores, atol=1e-5)
    assert [(a.text, round(a.probability, 5)) for a in opened.alternatives] == [
        (a.text, round(a.probability, 5)) for a in trace.alternatives[step]
    ]
    root = r" / \sqrt{d}" in inside.formula(opened, 0)
    assert root == (family != "t5") == ("d is the width" in inside.symbols(opened))
    with pytest.raises(ValueError, match="head must be from 0 to"):
        inside.step(model, trace, step, layer, 99)


@pytest.mark.parametrize("family", FAMILIES)
def test_faithfulness_is_measured_on_the_librarys_probabilities(models, family):
    model = models(family)
    subject = faithfulness.subject(model, TEXT, TARGET)
    whole = model.trace(TEXT, TARGET).log_probs
    np.testing.assert_allclose(subject.log_probs([subject.source])[0], whole, atol=1e-5)
    shorter = [subject.source[:3], subject.source[1:], subject.source]  # padded together, and one by one
    alone = torch.cat([subject.log_probs([source]) for source in shorter])
    np.testing.assert_allclose(subject.log_probs(shorter), alone, atol=1e-5)
    values = faithfulness.gradient_times_input(subject, [2])[0]
    at = torch.tensor([2])
    sides = [subject.of_vectors(subject.vectors * (1 + sign * 1e-2), at) for sign in (1, -1)]
    slope = float((sides[0] - sides[1]).detach()) / 2e-2
    assert values.sum() == pytest.approx(slope, rel=0.05, abs=2e-3)
    tested = results(subject)
    assert len(tested.preserved) == 6 * len(subject.target) and tested.preserved["kind"].eq("other").all()
    assert tested.variation["max_weight"].between(0, 1).all() and len(tested.erased) == 3


def test_a_text_of_its_own_and_a_replaced_word(models):
    model = models("t5")
    subject = faithfulness.subject(model, TEXT)
    assert [model.output(number) for number in subject.target] == [
        model.output(number) for number in model._generated(model.read(TEXT).ids, 1)
    ]
    word = intervene.words(model.trace(TEXT))[1]
    rewritten = intervene.rewrite(model, TEXT, word, "white", TARGET)
    plain, other = (logits(model, model.model, text, TARGET) for text in (TEXT, TEXT.replace(word.text, "white")))
    np.testing.assert_allclose(rewritten.total_variation, distance(plain, other), atol=1e-5)


def test_every_family_that_stays_closed_says_why(models, load):
    bart, bert = load("bart"), load("bert")
    for ask in (
        lambda: inside.step(bert, bert.trace(TEXT), 0),
        lambda: intervene.run(bert, TEXT, Uniform()),
        lambda: faithfulness.subject(bert, TEXT),
    ):
        with pytest.raises(ValueError, match="^model cannot be used here: hf:.* is of the family bert, which"):
            ask()
    led = models("led")
    with pytest.raises(ValueError, match="of the family led: 2 of its 2 layers compute cross-attention in code of"):
        intervene.run(led, TEXT, Uniform(), target=TARGET)
    with pytest.raises(ValueError, match="^words must be None for hf:.*: nothing says in which language"):
        intervene.run(bart, TEXT, Uniform(), Scope(words="content"), TARGET)
    with pytest.raises(ValueError, match="^language must have a list of function words"):
        intervene.run(bart.producing("spa_Latn"), TEXT, Uniform(), Scope(words="content"), TARGET)
    with pytest.raises(ValueError, match="^layer must be None or from 0 to 1; got 2"):
        intervene.run(bart, TEXT, Uniform(), Scope(layer=2), TARGET)
    other = load("t5").trace(TEXT, TARGET)
    with pytest.raises(ValueError, match="^trace must be "):
        inside.step(bart, other, 0)


def test_a_text_of_one_token_has_none_to_leave_out(load, monkeypatch):
    model = load("t5")
    read = type(model).read

    def without_end(self, text, target=False, most=None):
        tokens = read(self, text, target, most)
        return tokens if target else dataclasses.replace(tokens, ids=tokens.ids[:1], tokens=tokens.tokens[:1])

    monkeypatch.setattr(type(model), "read", without_end)
    with pytest.raises(ValueError, match="reads the text as one token, and none can be left out; type a longer text$"):
        faithfulness.subject(model, "dog", TARGET)


def test_own_weights_given_back_change_nothing(load):
    model = load("marian")
    row = tuple(model.trace(TEXT, TARGET).map("cross", 0).weights[0, 2].tolist())
    outcome = intervene.run(model, TEXT, Given(row), Scope(steps=(2,), layer=0, head=0), TARGET)
    np.testing.assert_allclose(outcome.total_variation, 0, atol=1e-5)
