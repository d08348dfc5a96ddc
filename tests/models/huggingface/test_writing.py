"""Causal models of the transformers library write on: as `generate` does, with the weights of a full pass."""

import copy
import dataclasses
import json
from pathlib import Path

import families
import numpy as np
import pytest
import torch

import attnviz
from attnviz import faithfulness, inside, intervene
from attnviz.intervene import Hide, Identity, Scope, Uniform
from attnviz.models.huggingface.writing import WritingModel
from attnviz.models.model import TextError
from attnviz.models.names import without_prefix
from attnviz.networks.writing import Sampling

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
PROMPT = "The black dog"
KINDS = {
    "gpt2": ("GPT2LMHeadModel", families.FAMILIES["gpt2"][2]),
    "llama": ("LlamaForCausalLM", families.FAMILIES["llama"][2]),
    "mistral": ("MistralForCausalLM", {**families.STACK, "num_key_value_heads": 2, "sliding_window": 4}),
    "qwen2": ("Qwen2ForCausalLM", {**families.STACK, "num_key_value_heads": 2}),
    "qwen3": ("Qwen3ForCausalLM", {**families.STACK, "num_key_value_heads": 2, "head_dim": 4}),
    "gemma": ("GemmaForCausalLM", {**families.STACK, "num_key_value_heads": 1, "head_dim": 4}),
    "phi": ("PhiForCausalLM", families.STACK),
    "opt": ("OPTForCausalLM", {**families.STACK, "ffn_dim": 16, "word_embed_proj_dim": 16}),
    "gpt_neox": ("GPTNeoXForCausalLM", families.STACK),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request, tmp_path_factory) -> WritingModel:
    import transformers

    name, settings = KINDS[request.param]
    tokenizer, special = families.FAMILIES["llama" if request.param in ("llama", "mistral") else "gpt2"][0]()
    cls = getattr(transformers, name)
    rows = tokenizer.get_vocab_size() + 8  # tokenizers of some families add tokens of their own
    ends = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(1)
    network = cls(cls.config_class(vocab_size=rows, **settings, **ends))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return attnviz.load(f"hf:{families.save(tmp_path_factory.mktemp('hf'), network, (tokenizer, special))}")


def test_greedy_is_what_the_library_generates(model):
    trace = model.write(PROMPT, 14, 0)
    given = model._beginning(PROMPT).ids
    generated = model.model.generate(torch.tensor([given]), max_new_tokens=14, do_sample=False, use_cache=True)
    assert model.ids(trace) == generated[0].tolist()
    assert trace.given == len(given) - 1 and len(trace.target) == len(generated[0]) - 1
    assert trace.translation.startswith(PROMPT)


def test_weights_and_probabilities_are_those_of_a_full_pass(model):
    trace = model.write(PROMPT, 12, 1.3, top_k=40, seed=5)
    ids = model.ids(trace)
    full = model.model(input_ids=torch.tensor([ids[:-1]]), output_attentions=True)
    assert len(trace.maps) == len(full.attentions)
    for shown, weights in zip(trace.maps, full.attentions):
        assert np.abs(shown.weights - weights[0].numpy()).max() < 1e-5
    log_probs = full.logits[0].log_softmax(-1)[range(len(ids) - 1), ids[1:]]
    assert trace.log_probs == pytest.approx(log_probs.tolist(), abs=1e-4)
    assert all(len(choices) == 5 for choices in trace.alternatives)


def test_the_same_seed_writes_the_same_and_a_choice_leads_elsewhere(model):
    first, again = (model.write(PROMPT, 8, 1.0, seed=3) for _ in range(2))
    assert first == again != model.write(PROMPT, 8, 1.0, seed=4)
    place = first.given + 2
    taken = (*model.ends, model.ids(first)[place + 1])
    other = next(token for token in model.candidates(first, place, Sampling()) if token.id not in taken)
    branch = model.write(PROMPT, 8, 1.0, seed=3, choices={2: other.id})
    assert model.ids(branch)[: place + 1] == model.ids(first)[: place + 1] and model.ids(branch)[place + 1] == other.id


def test_candidates_are_the_models_own(model):
    trace = model.write(PROMPT, 4, 0)
    best = model.candidates(trace, trace.given, Sampling(0))
    assert best[0].id == model.ids(trace)[trace.given + 1] and best[0].drawn == 1
    assert [candidate.probability for candidate in best] == sorted(
        (candidate.probability for candidate in best), reverse=True
    )


def test_it_ends_with_its_end_token_and_at_its_limit(model):
    first = model.write(PROMPT, 1, 0)
    written = model.ids(first)[-1]
    model.model.generation_config.eos_token_id, before = [written, 2], model.model.generation_config.eos_token_id
    try:
        ended = model.write(PROMPT, 9, 0)
    finally:
        model.model.generation_config.eos_token_id = before
    assert ended.complete and model.ids(ended)[-1] == written and len(ended.target) == ended.given + 1
    full = model.write(PROMPT, 10**9, 0.9)
    assert full.complete or len(model.ids(full)) == model.limit


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1; got 0"),
        ({"temperature": float("nan")}, "temperature must be from 0 to 100; got nan"),
        ({"top_p": 0}, "top_p must be above 0 and at most 1; got 0"),
        ({"choices": {0: 10**9}}, "choices must be tokens that .* can write; got number 1000000000"),
        ({"chat": True}, "has no chat template; give the prompt as it is"),
    ],
)
def test_what_cannot_be_written_is_said(model, changes, message):
    with pytest.raises(ValueError, match=message):
        model.write(**{"prompt": PROMPT, "steps": 3} | changes)


def test_an_empty_or_too_long_prompt_is_refused(model):
    for prompt in ("", " \n", "dog " * 100):
        with pytest.raises(TextError):
            model.write(prompt, 3)


def test_a_chat_template_is_shown_as_text(model):
    folder = Path(without_prefix(model.name))
    template, settings = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    template.write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}dog:")
    trace = model.write("run", 3, 0, chat=True)
    assert trace.text == "user: run\ndog:" and trace.translation.startswith(trace.text)
    template.write_text("<s>{{ messages[0].content }} dog")  # Llama's begins so, and its tokenizer adds <s> too
    trace = model.write("run", 3, 0, chat=True)
    assert trace.text.removeprefix("<s>") == "run dog" and model.ids(trace).count(0) == 1
    template.write_text("{{ raise_exception('no') }}")
    with pytest.raises(ValueError, match="the chat template of .* cannot be filled: .*no"):
        model.chat("run")
    template.write_text("{{ ''.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(ValueError, match="cannot be filled"):
        model.chat("run")
    template.unlink()
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"chat_template": "{{ messages[0].content }}!"}))
    assert model.chat("run") == "run!"


def test_a_text_that_was_only_read_has_candidates_and_another_models_trace_is_refused(model):
    read = model.trace(PROMPT)
    assert model.candidates(read, None, Sampling())[0].id == model.ids(model.write(PROMPT, 1, 0))[-1]
    written = model.write(PROMPT, 3, 0)
    with pytest.raises(ValueError, match="trace must be of a text that"):
        model.ids(dataclasses.replace(written, text="The ", source=written.source[:1]))


def test_the_lens_ends_with_the_models_own_logits(model):
    trace = model.write(PROMPT, 6, 0)
    layers = model.lens(trace)
    assert len(layers) == len(trace.maps) + 1
    assert layers[-1].log_probs == pytest.approx(trace.log_probs, abs=1e-4)
    ids = torch.tensor([model.ids(trace)[:-1]])
    hidden = model.model(input_ids=ids, output_hidden_states=True).hidden_states[1]
    by_hand = model.model.get_output_embeddings()(model._final_norm()(hidden))[0].softmax(-1).max(-1).values
    assert [step[0].probability for step in layers[1].alternatives] == pytest.approx(by_hand.tolist(), abs=1e-4)


def test_contributions_sum_to_the_logits_and_a_head_is_what_is_lost_without_it(model):
    """By hand: the vectors before the final norm without what the last head adds, which the norm divides by the same
    number as with it."""
    trace = model.write(PROMPT, 6, 0)
    parts, ids = model.contributions(trace), model.ids(trace)
    place, norm, seen = model.projections()[-1], model._final_norm(), {}
    projection, output = model.model.get_submodule(place.path), model.model.get_output_embeddings()
    hooks = [
        projection.register_forward_pre_hook(lambda module, given: seen.update(contexts=given[0])),
        norm.register_forward_pre_hook(lambda module, given: seen.update(stream=given[0])),
    ]
    with torch.inference_mode():
        logits = model.model(input_ids=torch.tensor([ids[:-1]])).logits[0]
        for hook in hooks:
            hook.remove()
        alone = torch.zeros_like(seen["contexts"])
        alone[..., -(alone.shape[-1] // place.heads) :] = seen["contexts"][..., -(alone.shape[-1] // place.heads) :]
        without = seen["stream"] - (projection(alone) - projection(torch.zeros_like(alone)))
        centred = isinstance(norm, torch.nn.LayerNorm)
        sizes = [
            (x - centred * x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True) for x in (without, seen["stream"])
        ]
        bias = norm.bias if centred else 0
        lost = norm(seen["stream"]) - bias - (norm(without) - bias) * (sizes[0] / sizes[1]).sqrt()
        by_hand = (lost[0] * output.weight[ids[1:]]).sum(-1)
    wanted = logits[range(len(ids) - 1), ids[1:]].tolist()
    assert parts.total().tolist() == pytest.approx(wanted, abs=1e-3) and model.logit(trace) == pytest.approx(wanted[-1])
    assert parts.heads[-1, -1].tolist() == pytest.approx(by_hand.tolist(), abs=1e-3, rel=1e-2)


def test_layers_that_are_more_than_sums_are_refused(tmp_path):
    """Gemma 2 has a norm between attention and the stream."""
    import transformers

    made = families.FAMILIES["gpt2"][0]()
    settings = {**families.STACK, "num_key_value_heads": 2, "head_dim": 4, "vocab_size": made[0].get_vocab_size()}
    network = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**settings))
    gemma = attnviz.load(f"hf:{families.save(tmp_path, network, made)}")
    with pytest.raises(ValueError, match="are more than sums of attention and feed-forward$"):
        gemma.contributions(gemma.write(PROMPT, 3, 0))


def test_a_text_is_read_again_as_it_was_written(model):
    trace = model.write(PROMPT, 8, 0.9, seed=2)
    again, logits = model.again(trace)
    assert again.target == trace.target and again.log_probs == pytest.approx(trace.log_probs, abs=1e-5)
    assert logits.shape == (len(trace.target), len(model.candidates(trace, 0, Sampling(), 10**6)))
    for a, b in zip(again.maps, trace.maps):
        assert np.abs(a.weights - b.weights).max() < 1e-5


def _no_queries(model):
    """A copy of the model whose scores are all equal: its queries are 0."""
    network = copy.deepcopy(model.model)
    for name, module in network.named_modules():
        if name.endswith(("q_proj", "c_attn", "query_key_value")):
            for part in module.parameters():
                if name.endswith("query_key_value"):  # by head: query, key, value
                    part.view(4, 3, -1)[:, 0] = 0
                else:
                    part[..., : network.config.hidden_size if name.endswith("c_attn") else None] = 0
    return dataclasses.replace(model, model=network)


@torch.inference_mode()
def test_uniform_attention_is_that_of_queries_that_are_zero(model):
    """The window of Mistral included: a row is even over what it sees."""
    trace = model.write(PROMPT, 8, 0)
    outcome = intervene.written(model, trace, Uniform())
    plain, even = (writer.again(trace)[1].softmax(-1) for writer in (model, _no_queries(model)))
    assert outcome.total_variation == pytest.approx(((plain - even).abs().sum(-1) / 2).numpy(), abs=1e-5)
    assert outcome.total_variation.max() > 1e-3 and outcome.before.target == trace.target
    assert outcome.free.translation == _no_queries(model).write(PROMPT, 8, 0).translation
    unchanged = intervene.written(model, trace, Identity())
    assert unchanged.free.translation == trace.translation and not unchanged.total_variation.any()


def test_a_change_of_one_step_and_another_word(model):
    trace = model.write(PROMPT, 5, 0)
    effects = list(intervene.written_effects(model, trace, Uniform(), rows=2, first=2))
    step = len(trace.target) - 2
    alone = intervene.written(model, trace, Uniform(), Scope(steps=(step,)))
    variation = intervene.total_variation(effects[step - 2].plain, effects[step - 2].changed)
    assert variation.tolist() == pytest.approx([alone.total_variation[step]] * 2, abs=1e-5)
    assert not alone.total_variation[:step].any()
    hidden = intervene.written(model, trace, Hide((1,))).forced.map("decoder", 1).weights
    assert not hidden[:, 2:, 1].any() and hidden.sum(-1) == pytest.approx(1, abs=1e-5)
    other = intervene.written_after(model, trace, intervene.words(trace)[1], "green")
    wanted = model.again(trace, "The green dog")[0].log_probs
    assert other.free.text == "The green dog" and other.forced.log_probs == wanted
    assert other.log_prob_changes == pytest.approx(np.subtract(wanted, trace.log_probs)[-5:], abs=1e-5)


def test_a_step_is_opened_with_the_numbers_of_the_model(model):
    trace = model.write(PROMPT, 6, 0)
    for step, head in ((0, 0), (2, 1), (len(trace.target) - 1, 0)):
        opened = inside.step(model, trace, step, 1, head)
        assert opened.weights == pytest.approx(trace.map("decoder", 1).weights[head, step, : step + 1], abs=1e-5)
        assert opened.parts.terms.sum(1) == pytest.approx(opened.scores, abs=1e-4)
        assert [a.text for a in opened.alternatives] == [a.text for a in trace.alternatives[step]]
        assert len(opened.keys) == step + 1 and opened.keys[0] == trace.start
    if model.mechanism == "mistral":
        assert opened.mask.tolist() == [False] * (step - 3) + [True] * 4
        assert "outside the window" in inside.formula(opened, 0)


def test_attention_is_tested(model):
    trace = model.write(PROMPT, 4, 0)
    subject = faithfulness.subject(model, PROMPT, trace)
    assert subject.log_probs([subject.source])[0].tolist() == pytest.approx(trace.log_probs[trace.given :], abs=1e-4)
    assert subject.attention.shape == (4, len(trace.source)) and len(subject.effects(Uniform()).__next__().plain)
    shorter = subject.source[:1] + subject.source[2:]
    wanted = model.model(input_ids=torch.tensor([[*shorter, *subject.target[:-1]]])).logits[0].log_softmax(-1)
    rows = range(len(shorter) - 1, len(shorter) + 3)
    assert subject.log_probs([shorter])[0].tolist() == pytest.approx(wanted[rows, subject.target].tolist(), abs=1e-4)


@pytest.mark.parametrize(
    "name, settings, closed, words",
    [
        ("BloomForCausalLM", {"n_layer": 2, "n_head": 4}, True, "compute attention in code of their own"),
        (
            "Gemma2ForCausalLM",
            {**families.STACK, "num_key_value_heads": 2, "head_dim": 4},
            False,
            "it caps its scores before the softmax, so its scores cannot be shown, only its weights",
        ),
    ],
)
def test_what_a_family_hides_is_said(tmp_path, name, settings, closed, words):
    import transformers

    tokenizer, special = families.byte_pairs()
    cls = getattr(transformers, name)
    ends = {"hidden_size": 16, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    network = cls(cls.config_class(vocab_size=tokenizer.get_vocab_size(), **ends | settings))
    model = attnviz.load(f"hf:{families.save(tmp_path, network, (tokenizer, special))}")
    trace = model.write(PROMPT, 2, 0)
    with pytest.raises(ValueError, match=words):
        inside.step(model, trace, 1, 0, 0)
    if closed:
        with pytest.raises(ValueError, match=words):
            intervene.written(model, trace, Uniform())
    else:
        assert intervene.written(model, trace, Uniform()).total_variation.any()
