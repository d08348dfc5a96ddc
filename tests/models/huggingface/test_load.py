"""Models for the transformers library, of each family, saved and loaded by the real path."""

import json
import shutil

import families
import numpy as np
import pytest
import torch
import transformers
from families import CAUSAL, FAMILIES, LIMIT, READERS, WRITERS

import attnviz
from attnviz import figures, heads, rollout, select, stats
from attnviz.export import html_page
from attnviz.trace import Trace

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT, TARGET = "The black dogs are running.", "Le chien noir court."
readers, writers = pytest.mark.parametrize("family", READERS), pytest.mark.parametrize("family", WRITERS)
every = pytest.mark.parametrize("family", FAMILIES)


def of_the_library(folder, family):
    """The model and the tokenizer as the transformers library gives them, without attnviz."""
    model = getattr(transformers, FAMILIES[family][1]).from_pretrained(folder(family), attn_implementation="eager")
    return model.eval(), transformers.PreTrainedTokenizerFast.from_pretrained(folder(family))


def same(trace, kind, attentions):
    """Is every map of that kind the model's own, layer for layer and number for number?"""
    maps = [m for m in trace.maps if m.kind == kind]
    assert [m.layer for m in maps] == list(range(len(attentions)))
    return all(np.array_equal(m.weights, own[0].numpy()) for m, own in zip(maps, attentions))


# -- what is shown is what the model computed -----------------------------------------------------------------------


@readers
@torch.inference_mode()
def test_the_maps_of_a_reader_are_its_own(folder, load, family):
    model, tokenizer = of_the_library(folder, family)
    output = model(**tokenizer(TEXT, return_tensors="pt", return_token_type_ids=False), output_attentions=True)
    trace = load(family).trace(TEXT)
    kind = "decoder" if family in CAUSAL else "encoder"
    assert same(trace, kind, output.attentions) and {m.kind for m in trace.maps} == {kind}
    assert len(trace.maps) == model.config.num_hidden_layers
    assert {len(m.weights) for m in trace.maps} == {model.config.num_attention_heads}


def test_a_window_of_a_causal_reader_is_zero_outside(tmp_path, monkeypatch):
    settings = {**families.STACK, "num_key_value_heads": 2, "sliding_window": 3}
    monkeypatch.setitem(FAMILIES, "mistral", (families.byte_pairs, "MistralForCausalLM", settings))
    trace = attnviz.load(f"hf:{families.write(tmp_path / 'mistral', 'mistral')}").trace(TEXT)
    seen = np.tri(len(trace.source), dtype=bool) & ~np.tri(len(trace.source), k=-3, dtype=bool)
    assert all(
        m.kind == "decoder" and np.array_equal(m.weights > 0, np.broadcast_to(seen, m.weights.shape))
        for m in trace.maps
    )
    assert all(np.array_equal(trace.visible(m), seen) for m in trace.maps)
    row = trace.maps[0].weights[0, -1, -3:].astype(float)  # three keys are visible, so the entropy is at most ln 3
    last = stats.steps(trace).query("layer == 0 and head == 0").iloc[-1]
    assert np.isclose(last["normalised_entropy"], -(row * np.log(row)).sum() / np.log(3), atol=1e-6)
    assert Trace.from_json(trace.to_json()) == trace


def test_layers_with_and_without_a_window(tmp_path, monkeypatch):
    settings = {**families.STACK, "num_key_value_heads": 2, "head_dim": 4, "sliding_window": 3}
    settings |= {"layer_types": ["sliding_attention", "full_attention"]}
    monkeypatch.setitem(FAMILIES, "gemma3", (families.byte_pairs, "Gemma3ForCausalLM", settings))
    trace = attnviz.load(f"hf:{families.write(tmp_path / 'gemma3', 'gemma3')}").trace(TEXT)
    assert [m.mask is None for m in trace.maps] == [False, True]
    assert figures.overview(trace, "decoder").layout.images


@pytest.mark.parametrize(
    "family, name, settings, shared",
    [
        ("bigcode", "GPTBigCodeForCausalLM", dict(n_embd=16, n_layer=2, n_head=4, n_positions=64, multi_query=True), 4),
        (
            "bigcode",
            "GPTBigCodeForCausalLM",
            dict(n_embd=16, n_layer=2, n_head=4, n_positions=64, multi_query=False),
            1,
        ),
        ("qwen3", "Qwen3ForCausalLM", {**families.STACK, "num_key_value_heads": 1, "head_dim": 4}, 4),
        ("qwen3", "Qwen3ForCausalLM", {**families.STACK, "num_key_value_heads": 2, "head_dim": 4}, 2),
        ("qwen3", "Qwen3ForCausalLM", {**families.STACK, "num_key_value_heads": 4, "head_dim": 4}, 1),
    ],
)
def test_query_heads_that_share_keys(family, name, settings, shared, tmp_path, monkeypatch):
    """As many as the projection of the keys is narrower than that of the queries; words keep it, and so does a file."""
    monkeypatch.setitem(FAMILIES, family, (families.byte_pairs, name, settings))
    model = attnviz.load(f"hf:{families.write(tmp_path / family, family)}")
    trace = model.trace(TEXT)
    assert {attention.shared for attention in trace.maps} == {shared}
    assert {attention.shared for attention in select.words(trace).maps} == {shared}
    assert Trace.from_json(trace.to_json()) == trace
    weights = dict(model.model.named_parameters())
    if family == "qwen3":
        queries, keys = (weights[f"model.layers.0.self_attn.{side}_proj.weight"] for side in "qk")
        assert len(queries) // len(keys) == shared
    else:  # queries, keys and values in one matrix
        assert len(weights["transformer.h.0.attn.c_attn.weight"]) == (16 + 2 * 4 if shared == 4 else 3 * 16)


@writers
@torch.inference_mode()
def test_the_maps_of_a_writer_are_its_own_and_none_is_dropped(folder, load, family):
    """The library shifts labels itself, and gives the mean negative log-probability as its loss."""
    model, tokenizer = of_the_library(folder, family)
    labels = tokenizer(text_target=TARGET, return_tensors="pt")["input_ids"]
    output = model(
        **tokenizer(TEXT, return_tensors="pt", return_token_type_ids=False), labels=labels, output_attentions=True
    )
    trace = load(family).trace(TEXT, TARGET)
    assert same(trace, "encoder", output.encoder_attentions)
    assert same(trace, "decoder", output.decoder_attentions) and same(trace, "cross", output.cross_attentions)
    assert [len(output.encoder_attentions), len(output.decoder_attentions), len(output.cross_attentions)] == [3, 2, 2]
    assert {(m.kind, len(m.weights)) for m in trace.maps} == {
        ("encoder", 4),
        ("decoder", 4 if family == "t5" else 2),
        ("cross", 4 if family == "t5" else 2),
    }
    assert trace.forced and trace.complete and trace.translation == TARGET
    assert np.mean(trace.log_probs) == pytest.approx(-output.loss.item(), abs=1e-5)


@writers
@pytest.mark.parametrize("beam", [1, 3])
@torch.inference_mode()
def test_a_writer_writes_what_its_model_generates(folder, load, family, beam):
    model, tokenizer = of_the_library(folder, family)
    source = tokenizer(TEXT, return_tensors="pt", return_token_type_ids=False)
    ids = model.generate(**source, num_beams=beam, do_sample=False, max_new_tokens=LIMIT)[0]
    output = model(**source, decoder_input_ids=ids[None, :-1], output_attentions=True)
    trace = load(family).trace(TEXT, beam=beam)
    assert not trace.forced and len(trace.target) == len(ids) - 1
    assert trace.translation == tokenizer.decode(ids, skip_special_tokens=True).lstrip()
    assert same(trace, "cross", output.cross_attentions) and same(trace, "decoder", output.decoder_attentions)
    chances = torch.log_softmax(output.logits[0], -1)
    assert trace.log_probs == pytest.approx(chances[range(len(ids) - 1), ids[1:]].tolist(), abs=1e-5)
    assert [step[0].probability for step in trace.alternatives] == pytest.approx(
        chances.exp().amax(-1).tolist(), abs=1e-5
    )
    assert trace.complete == (len(trace.target) < LIMIT)


def test_the_decoder_starts_with_the_token_of_its_model(load):
    starts = {family: load(family).trace(TEXT, TARGET).start for family in WRITERS}
    assert {family: (start.text, start.special) for family, start in starts.items()} == {
        "t5": ("<pad>", True),
        "bart": ("</s>", True),
        "marian": ("<pad>", True),
    }
    trace = load("bart").trace(TEXT, TARGET)
    assert trace.keys(trace.map("decoder"))[0].text == "</s>" and trace.target[0].text == "<s>"


def test_attention_is_eager_whatever_the_folder_asks_for(folder, load, tmp_path):
    copy = families.write(tmp_path / "sdpa", "bert")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(
        json.dumps({**config, "attn_implementation": "sdpa", "_attn_implementation": "sdpa"})
    )
    model = attnviz.load(f"hf:{copy}")
    assert model.model.config._attn_implementation == "eager"
    assert model.trace(TEXT).maps == load("bert").trace(TEXT).maps


@every
def test_a_trace_has_no_side_effects(load, family):
    model = load(family)
    state, before = torch.get_rng_state(), [parameter.clone() for parameter in model.model.parameters()]
    assert model.trace(TEXT) == model.trace(TEXT)
    assert not model.model.training and torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(before, model.model.parameters()))


# -- what the trace says of it ---------------------------------------------------------------------------------------


@every
def test_rows_sum_to_one_and_the_hidden_is_zero(load, family):
    trace = load(family).trace(TEXT)
    for m in trace.maps:
        np.testing.assert_allclose(m.weights.sum(-1), 1, atol=1e-5)
        visible = trace.visible(m)
        assert np.array_equal(
            visible, np.tri(*visible.shape, dtype=bool) if m.kind == "decoder" else np.ones_like(visible)
        )
        assert not (m.weights * ~visible).any()


@pytest.mark.parametrize("family", CAUSAL)
def test_a_causal_reader_has_the_text_on_both_axes(load, family):
    trace = load(family).trace(TEXT)
    m = trace.map("decoder")
    assert trace.queries(m) == trace.keys(m) == trace.source and trace.target == () and trace.log_prob is None
    assert trace.sides(m) == ("input", "input")
    drawn = np.array(figures.heatmap(select.select(trace, "decoder")).data[0].z)
    assert np.array_equal(np.isnan(drawn), ~np.tri(len(trace.source), dtype=bool))  # masked, not zero


@every
@pytest.mark.parametrize("text", [TEXT, "dog", "  The  dog \n ran!", "naïve café, 犬 🙂🙂", "The [MASK] </s> dog"])
def test_tokens_are_slices_of_the_text_as_typed(load, family, text):
    """Checked once more by hand; Trace checks it too."""
    trace = load(family).trace(text)
    plain = [token for token in trace.source if not token.special]
    assert plain and all(text[token.start : token.end] == token.text for token in plain)
    assert [token.start for token in trace.source] == sorted(token.start for token in trace.source)
    letters = [i for i, character in enumerate(text) if not character.isspace()]
    shown = {i for token in trace.source for i in range(token.start, token.end)}
    assert shown >= set(letters)


def test_special_tokens_are_marked(load):
    def special(family, **more):
        trace = load(family).trace("dog", **more)
        return [[token.text for token in side if token.special] for side in (trace.source, trace.target)]

    assert special("bert") == special("distilbert") == [["[CLS]", "[SEP]"], []]
    assert special("roberta") == [["<s>", "</s>"], []]
    assert special("gpt2") == [[], []] and special("llama") == [["<s>"], []]
    assert special("t5", target="le") == special("marian", target="le") == [["</s>"], ["</s>"]]
    assert special("bart", target="le") == [["<s>", "</s>"], ["<s>", "</s>"]]


def test_unknown_pieces_are_marked_and_are_not_special(load):
    unknown = next(token for token in load("bert").trace("a 犬").source if token.text == "犬")
    assert unknown.unknown and not unknown.special


@every
def test_words_are_those_of_the_text(load, family):
    source = select.words(load(family).trace("The black dogs")).source
    assert [token.text for token in source if not token.special] == ["The", "black", "dogs"]


@every
def test_everything_that_shows_a_trace_shows_it(load, family):
    trace = load(family).trace(TEXT) if family in READERS else load(family).trace(TEXT, TARGET)
    assert Trace.from_json(trace.to_json()) == trace
    for shown in (trace, select.words(trace)):
        for m in shown.maps:
            grid = select.select(shown, m.kind, m.layer, 0)
            assert figures.heatmap(grid, 0).data and figures.step_bars(grid, 0).data
            select.select(shown, m.kind, special=False)
        assert len(stats.summary(shown)) and len(stats.weights(shown)) == sum(m.weights.size for m in shown.maps)
    for kind in {m.kind for m in trace.maps}:
        sides = trace.sides(trace.map(kind))
        grid = select.select(trace, kind)
        for figure in (figures.overview(trace, kind), figures.token_lines([grid])):
            assert all(f"{side} tokens" in figure.layout.meta["description"] for side in sides)
        assert len(heads.table(trace, kind)) == sum(len(m.weights) for m in trace.maps if m.kind == kind)
        if kind in rollout.SELF:
            assert np.array_equal(rollout.rollout(trace, kind).visible(trace.map(kind)), trace.visible(trace.map(kind)))
    assert TEXT.encode() in html_page.page(trace)


@every
def test_the_attention_is_eager_whatever_the_config_says(folder, tmp_path, family):
    """Another way, such as FlashAttention, returns no weights."""
    shutil.copytree(folder(family), tmp_path / family)
    config = tmp_path / family / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"attn_implementation": "flash_attention_2"}))
    assert attnviz.load(f"hf:{tmp_path / family}").trace(TEXT).maps
