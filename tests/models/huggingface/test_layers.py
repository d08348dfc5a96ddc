"""Layers of other kinds, and weights that are not one array of queries and keys: against the model's own numbers."""

import re

import any_family
import families
import family_table
import numpy as np
import pytest
import torch
from refused_models import refused

import attnviz
from attnviz import rollout, stats
from attnviz.trace import Trace

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT = "The black dogs are running over the green ball."
FOUR = {"num_hidden_layers": 4}
HYBRIDS = {  # class -> changes to its config, and the layers that attend, from 0
    "Qwen3NextForCausalLM": ({}, [3]),
    "Lfm2ForCausalLM": ({"layer_types": ["conv", "full_attention", "conv", "full_attention"]}, [1, 3]),
    "JambaForCausalLM": ({"attn_layer_period": 2, "attn_layer_offset": 1}, [1, 3]),
    "BambaForCausalLM": ({"attn_layer_indices": [0, 2]}, [0, 2]),
    "GraniteMoeHybridForCausalLM": ({"layer_types": ["mamba", "attention", "mamba", "mamba"]}, [1]),
    "MiniMaxForCausalLM": ({}, [0, 2]),
    "RecurrentGemmaForCausalLM": ({}, [2]),
}


@pytest.mark.parametrize("name", HYBRIDS)
def test_the_layers_that_attend_have_their_own_numbers(tmp_path, name):
    changes, numbers = HYBRIDS[name]
    model = attnviz.load(f"hf:{any_family.write(tmp_path, name, families.byte_pairs(), **changes)}")
    trace = model.trace(TEXT)
    assert [m.layer for m in trace.maps] == numbers and {m.kind for m in trace.maps} == {"decoder"}
    weights = model.model(input_ids=torch.tensor([model.read(TEXT).ids]), output_attentions=True).attentions
    own = weights if len(weights) == len(numbers) else [weights[number] for number in numbers]
    assert all(np.array_equal(m.weights, layer[0].numpy()) for m, layer in zip(trace.maps, own))
    others = sum("," in note or "–" in note or "Layer " in note for note in trace.notes)
    assert others and all(note.endswith("no weights.") for note in trace.notes)
    assert Trace.from_json(trace.to_json()) == trace
    with pytest.raises(ValueError, match="maps of every layer from 0 on"):
        rollout.rollout(trace, "decoder")
    if name == "Qwen3NextForCausalLM":
        assert trace.notes == ("Layers 1–3: linear attention, no weights.",)
        assert [(place.layer, place.path) for place in model.projections()] == [(3, "model.layers.3.self_attn.o_proj")]


@pytest.mark.parametrize("name", ["Qwen3NextForCausalLM", "JambaForCausalLM", "GptOssForCausalLM"])
def test_hybrids_and_models_with_sinks_write_with_the_weights_of_a_full_pass(tmp_path, name):
    changes = HYBRIDS.get(name, ({},))[0]
    model = attnviz.load(f"hf:{any_family.write(tmp_path, name, families.byte_pairs(), **changes)}")
    trace = model.write("The black dog", 5, 0)
    ids = torch.tensor([model.ids(trace)[:-1]])
    whole = model.model(input_ids=ids, output_attentions=True).attentions
    assert len(trace.maps) == len(whole) and len(trace.target) > 5
    assert all(np.abs(m.keys - layer[0].numpy()).max() < 1e-4 for m, layer in zip(trace.maps, whole))


def test_a_model_without_attention_is_named_so(tmp_path):
    folder = any_family.write(tmp_path, "MambaForCausalLM", families.byte_pairs())
    assert refused(folder) == "none of its 4 layers returns attentions: it has no weights to show"


def test_the_rest_that_a_learnt_sink_takes_is_a_column(tmp_path):
    model = attnviz.load(f"hf:{any_family.write(tmp_path, 'GptOssForCausalLM', families.byte_pairs())}")
    trace = model.trace(TEXT)
    first = trace.maps[0]
    assert all(m.sink for m in trace.maps) and [m.mask is None for m in trace.maps] == [False, True, False, True]
    assert trace.keys(first)[-1].text == "sink" and first.weights[..., -1].min() > 0
    model.model.model.layers[0].self_attn.sinks.data.fill_(-torch.inf)  # nothing for the sink: all goes to the keys
    without = model.trace(TEXT).maps[0]
    shares = first.keys / first.keys.sum(-1, keepdims=True)
    np.testing.assert_allclose(shares, without.weights[..., : shares.shape[-1]], atol=1e-5)


def attention(module, states, queries: str, keys: str) -> np.ndarray:
    """softmax(q k / sqrt(d)) before any mask, as scores (H, Q, K) of a layer of Longformer."""
    heads, width = module.num_heads, module.head_dim
    query, key = (getattr(module, name)(states)[0].view(-1, heads, width).transpose(0, 1) for name in (queries, keys))
    return (query @ key.transpose(1, 2) / width**0.5).numpy()


@pytest.mark.parametrize(
    "name, made, layer",
    [
        ("LongformerForMaskedLM", families.wordpiece, "longformer.encoder.layer.0.attention.self"),
        (
            "LEDForConditionalGeneration",
            families.sentencepiece,
            "led.encoder.layers.0.self_attn.longformer_self_attn",
        ),
    ],
)
@torch.inference_mode()
def test_weights_of_a_window_and_of_global_tokens_are_put_in_their_place(tmp_path, name, made, layer):
    """Against the scores of all queries and keys, of which a query sees two on either side and the first token."""
    model = attnviz.load(f"hf:{any_family.write(tmp_path, name, made())}")
    module, states = model.model.get_submodule(layer), []
    hook = module.register_forward_pre_hook(
        lambda module, inputs, named: states.append(inputs[0] if inputs else named["hidden_states"]), with_kwargs=True
    )
    trace = model.trace(TEXT)
    hook.remove()
    count, shown = len(trace.source), trace.map("encoder", 0)
    away = np.abs(np.subtract.outer(range(count), range(count)))
    seen = (away <= 2) | (np.arange(count) == 0) | (np.arange(count) == 0)[:, None]
    scores = attention(module, states[0], "query", "key")[:, :count, :count]
    scores[:, 0] = attention(module, states[0], "query_global", "key_global")[:, 0, :count]
    expected = np.where(seen, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    np.testing.assert_allclose(shown.weights, expected / expected.sum(-1, keepdims=True), atol=1e-5)
    assert np.array_equal(trace.visible(shown), seen)
    assert trace.notes == ("The first token has global attention: it sees all tokens, and all see it.",)
    assert len(model.projections()) == sum(map(len, model.head_counts.values()))


@pytest.mark.parametrize(
    "name, changes, hides",
    [
        ("MistralForCausalLM", {"sliding_window": 3}, [True] * 4),
        ("Gemma2ForCausalLM", {}, [True, False] * 2),
        ("Qwen2ForCausalLM", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2}, [0, 0, 1, 1]),
        ("Phi3ForCausalLM", {"sliding_window": 4, "pad_token_id": 1}, [True] * 4),
        ("GPTNeoForCausalLM", {"attention_types": [[["global", "local"], 2]]}, [False, True] * 2),
        ("Cohere2ForCausalLM", {}, [True] * 3 + [False]),
        ("Llama4ForCausalLM", {"attention_chunk_size": 8}, [True] * 3 + [False]),
    ],
)
def test_what_a_layer_hides_does_not_count(tmp_path, name, changes, hides):
    """Windows and chunks, layer by layer. All visible keys have weight, so the mask is where weights are above 0."""
    trace = attnviz.load(f"hf:{any_family.write(tmp_path, name, families.byte_pairs(), **changes)}").trace(TEXT)
    assert [m.mask is not None for m in trace.maps] == [bool(layer) for layer in hides]
    assert all(np.array_equal(trace.visible(m), m.weights.any(0)) for m in trace.maps)
    m = trace.maps[hides.index(True)]
    last = m.weights[0, -1][m.weights[0, -1] > 0].astype(float)
    row = stats.steps(trace).query(f"layer == {m.layer} and head == 0").iloc[-1]
    assert row["normalised_entropy"] == pytest.approx(-(last * np.log(last)).sum() / np.log(len(last)), abs=1e-5)


def test_a_model_of_sparse_blocks_returns_the_weights_of_long_texts_too(tmp_path):
    changes = {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 128}
    model = attnviz.load(f"hf:{any_family.write(tmp_path, 'BigBirdForMaskedLM', families.wordpiece(), **changes)}")
    for text in ("dog", "dog " * 100, "dog"):
        assert len(model.trace(text).maps) == 4


def test_a_model_that_pools_is_refused_with_both_lengths(tmp_path):
    folder = any_family.write(tmp_path, "FunnelForMaskedLM", families.wordpiece())
    wanted = (
        r"cannot be shown: it pools or divides its tokens, so that its attentions of number \d+ have 4 queries and "
    )
    assert re.match(wanted + "8 keys for 8 tokens$", refused(folder))


MROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 0]}
WITH_IMAGES = {
    "Gemma3ForConditionalGeneration": {},
    "LlavaForConditionalGeneration": {},
    "PaliGemmaForConditionalGeneration": {},
    "Qwen2VLForConditionalGeneration": {"text_config": {"rope_parameters": MROPE}},
    "GitForCausalLM": {},
    "Idefics3ForConditionalGeneration": {},
    "Qwen2AudioForConditionalGeneration": {},
    "Llama4ForCausalLM": {},
}


@pytest.mark.parametrize("name", WITH_IMAGES)
def test_a_model_that_also_reads_images_or_speech_is_shown_with_text_alone(tmp_path, name):
    """Its limit is that of the text, and it has its language-model head."""
    model = attnviz.load(f"hf:{any_family.write(tmp_path, name, families.byte_pairs(), **WITH_IMAGES[name])}")
    trace = model.trace(TEXT)
    assert model.limit in (64, 512) and len(trace.maps) == 4 and model.predicts and model.log_prob(TEXT) < 0
    assert len(model.projections()) == 4 and not model.why_no_log_prob


def test_a_layer_that_attends_twice_has_two_maps(tmp_path):
    changes = family_table.CHANGES["longcat_flash"]
    model = attnviz.load(
        f"hf:{any_family.write(tmp_path, 'LongcatFlashForCausalLM', families.byte_pairs(), **changes)}"
    )
    trace = model.trace(TEXT)
    assert [m.layer for m in trace.maps] == list(range(8))
    assert trace.notes == ("Each of its 4 layers attends twice: maps 1 and 2 are of the first layer, and so on.",)


def test_of_several_streams_cross_attention_is_that_which_predicts_the_next_token(tmp_path):
    """ProphetNet, against weights from the queries and keys of its second stream."""
    name = "ProphetNetForConditionalGeneration"
    model = attnviz.load(f"hf:{any_family.write(tmp_path, name, families.sentencepiece())}")
    streams = []

    def compute(module, inputs, given, output):
        hidden, keys = given["hidden_states"], module.key_proj(given["key_value_states"])
        queries = module.query_proj(hidden.chunk(1 + model.model.config.ngram, dim=1)[1])
        heads = [part.unflatten(-1, (4, -1)).transpose(1, 2)[0] for part in (queries, keys)]
        streams.append((heads[0] @ heads[1].mT / heads[0].shape[-1] ** 0.5).softmax(-1).numpy())

    for layer in model.model.prophetnet.decoder.layers:
        layer.cross_attn.register_forward_hook(compute, with_kwargs=True)
    trace = model.trace("The black dog", "Le chien noir")
    cross = [m.weights for m in trace.maps if m.kind == "cross"]
    assert len(streams) == len(cross) == 2
    assert all(np.allclose(own, shown, atol=1e-6) for own, shown in zip(streams, cross, strict=True))
    assert all(not np.triu(m.weights, 1).any() for m in trace.maps if m.kind == "decoder")
    assert "of the stream that predicts the next token" in trace.notes[0]


def test_a_translator_saved_alone_is_not_taken_for_the_larger_model_of_its_family(tmp_path):
    """SeamlessM4T: its config describes parts for speech too, which these files do not have."""
    model = attnviz.load(f"hf:{any_family.write(tmp_path, 'SeamlessM4TForTextToText', families.sentencepiece())}")
    assert model.head_kinds == ("cross", "encoder", "decoder") and model.trace("The dog", "Le chien").translation


def test_heads_that_predict_in_another_way_are_told(tmp_path):
    model = attnviz.load(f"hf:{any_family.write(tmp_path, 'XLNetLMHeadModel', families.wordpiece())}")
    assert "predicts tokens in a random order" in model.why_no_log_prob
