"""What works for each family of the transformers library: a tiny random model of each, tried. Run it to write
docs/families.md: `python tests/helpers/models/family_table.py` takes minutes.

Tokenizers are those of families.py, not each family's own.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import any_family
import families
import torch

MOST = 30_000_000  # numbers of a tiny model; a family with more is not tried
TEXT, TARGET = "The black dogs run.", "Le chien noir court."
_CLASSES = {  # of these the list has a part
    family: f"{name}ForConditionalGeneration"
    for family, name in (("dots3_note", "Dots3Note"), ("emu3", "Emu3"), ("mllama", "Mllama"), ("qwen4_exp", "Qwen4Exp"))
}


def _rotary_of_three_axes(*sections: int) -> dict:
    """Rotary embeddings of three axes, as models of images and text have them."""
    return {"rope_type": "default", "rope_theta": 1e4, "mrope_section": list(sections)}


_ALL_KEYS, _ROWS = {"num_key_value_heads": 4}, {"vocab_size": any_family.ROWS}
_PROJECTED = {"projector_hidden_size": 16, "out_hidden_size": 16}
_DOTS3 = _ALL_KEYS | {"layer_types": ["full_attention"] * 4, "q_lora_rank": 8}
_QWEN4 = {"indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 8} | {
    "indexer_budget": 8,
    "indexer_compress_ratio": 2,
}

# How a family must be asked for, beyond small numbers.
CHANGES = {
    "apertus1p5": {
        **{"image_token_offset": 300, "audio_token_offset": 308},
        **{"vision_config": {"codebook_size": 8, "base_channels": 32}, "audio_config": {"codebook_size": 8}},
    },
    "bailing_hybrid": _ALL_KEYS | {"n_group": 1, "topk_group": 1, "num_experts_per_tok": 1, "layer_group_size": 2},
    "bert-generation": {"is_decoder": True},
    "blt": {
        **{"vocab_size": any_family.ROWS, "encoder_hash_byte_group_vocab": 50, "patcher_config": _ROWS},
        **{part: _ROWS | {"hidden_size_global": 16} for part in ("encoder_config", "decoder_config")},
    },
    "cohere_compass": {"text_config": {"rope_parameters": {"full_attention": _rotary_of_three_axes(1, 1, 0)}}},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _rotary_of_three_axes(1, 1, 0)}},
    "dbrx": {"attn_config": {"rope_theta": 1e4, "kv_n_heads": 2, "clip_qkv": 8}},
    "deepseek_ocr2": {"text_config": {"mlp_layer_types": ["dense", "sparse"] * 2, "num_experts_per_tok": 1}},
    "diffusion_gemma": {"text_config": {"num_experts": 2, "top_k_experts": 1, "moe_intermediate_size": 16}},
    "dots3_note": {
        **{"text_config": _DOTS3, "audio_config": {"adapter_input_size": 16, "adapter_out_dim": 16}},
        "vision_config": {"mlp_layer_types": ["dense"] * 4, "adapter_in_dim": 16, "adapter_out_dim": 16},
    },
    "dots3_note_text": _DOTS3,
    "emu3": {
        "vocabulary_map": {"<image>": 3, "<|extra_200|>": 4, "<|visual token 000000|>": 5},
        "vq_config": {"base_channels": 32},
    },
    "ernie4_5_vl_moe": {"text_config": {"rope_parameters": _rotary_of_three_axes(3, 3, 2), "head_dim": 16}},
    "florence2": {
        "vision_config": {"depths": [1] * 4, "projection_dim": 16}
        | {"embed_dim": [16] * 4, "num_heads": [4] * 4, "num_groups": [4] * 4}
    },
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "gemma4_assistant": {
        "text_config": {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
        | {"num_kv_shared_layers": 4, "num_hidden_layers": 4}
    },
    "gemma4_unified_assistant": {"text_config": {"num_kv_shared_layers": 4}},
    "glm5_next": {"text_config": _ALL_KEYS | {"index_kpool": 2}},
    "granite4_vision": {
        **{"deepstack_layer_map": [[1, 0]], "spatial_target_layers": [1], "downsample_rate": "1/2"},
        "vision_config": {"hidden_size": 64},
    },
    "janus": {"vq_config": {"base_channels": 32}},
    "kimi_linear": _ALL_KEYS | {"layer_types": ["linear_attention", "full_attention"] * 2, "num_experts_per_tok": 1},
    "longcat_flash": _ALL_KEYS | {"moe_topk": 2, "n_routed_experts": 4, "zero_expert_num": 2},
    "molmo2": {"adapter_config": {"vision_feature_layer": [2, 1]}},
    "muse_glimmer": _PROJECTED,
    "muse_spark": _PROJECTED | {"audio_config": {"hidden_sizes": [16] * 4}},
    "nemo_speechlm": {
        "word_timestamp_config": _ALL_KEYS,
        "audio_config": {"asr_config": _ALL_KEYS, "diarization_config": {"audio_config": _ALL_KEYS}},
    },
    "nemotron_h_omni": {"vision_config": {"video_temporal_patch_size": 2}},
    "neomme": {"head_dim": 16},
    "perceiver": {"d_latents": 16},
    "qwen2_5_omni_thinker": {
        "vision_start_token_id": 3,
        "text_config": {"rope_parameters": _rotary_of_three_axes(1, 1, 0)},
    },
    "qwen3_omni_moe_thinker": {"vision_start_token_id": 3},
    "qwen4_exp": {"text_config": _QWEN4},
    "qwen4_exp_text": _QWEN4,
    "step3p7": {"text_config": {"sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"] * 2}},
    "vibevoice_asr": {
        f"{part}_tokenizer_encoder_config": {"num_filters": 2, "depths": [1] * 7} for part in ("acoustic", "semantic")
    },
    "zamba": {"layers_block_type": ["mamba", "hybrid"] * 2},
    "zamba2": {"layers_block_type": ["mamba", "hybrid"] * 2},
    "encoder-decoder": {"decoder": {"is_decoder": True, "add_cross_attention": True}},
    "chameleon": {"vocabulary_map": {"<image>": 3}},
    "deepseek_v2": {"num_key_value_heads": 4, "num_experts_per_tok": 1},
    "dots1": {"n_routed_experts": 2, "n_shared_experts": 1, "num_experts_per_tok": 1},
    "esm": {"vocab_size": any_family.ROWS, "pad_token_id": 1, "mask_token_id": 4},
    "esmc": {"vocab_size": any_family.ROWS, "num_key_value_heads": 4},
    "glm4v_moe": {"text_config": {"rope_parameters": _rotary_of_three_axes(1, 0, 0)}},
    "kosmos-2": {"text_config": {"attention_heads": 4, "layers": 4}},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"num_heads": 8},
    "nemotron": {"num_key_value_heads": 2},
    "reformer": {"axial_pos_embds": False, "attn_layers": ["local", "lsh"] * 2, "num_buckets": 2},
    "bamba": {"attn_layer_indices": [1, 3]},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    **{
        family: {"text_config": {"rope_parameters": _rotary_of_three_axes(1, 1, 0)}}
        for family in ("glm46v", "glm4v", "glm_ocr", "glmga", "hunyuan_vl", "paddleocr_vl", "qwen2_5_vl", "qwen2_vl")
    },
    **{
        family: {"text_config": {"num_key_value_heads": 4}}
        for family in ("kimi_k25", "mistral_large4", "unlimited_ocr")
    },
    **{
        family: {"num_key_value_heads": 4}
        for family in (
            *("axk1", "axk2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa"),
            *("minicpm3", "mistral4", "sarvam_mla", "youtu"),
        )
    },
}
_MAPPINGS = (  # the library's lists of classes with a head, and the tokenizer that a tiny model gets
    ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", families.wordpiece),
    ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", families.sentencepiece),
    ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", families.byte_pairs),
    ("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES", families.byte_pairs),
)
_HEAD = """# Families of Hugging Face models

One tiny random model of every family in the transformers library {version} that has a class for masked words, for the
next word, for translation or for images and text was made from its config with small numbers, saved, and read by its
folder. `python tests/helpers/models/family_table.py` writes this list, and a test compares some of its rows with new
runs. {shown} of {count} families are shown. Tokenizers are simple ones made for this, not each family's own; of models
that also read images or speech, text alone is read.

- maps: the kinds of attention, and which layers (all, or their numbers)
- off: heads can be switched off. forced: a given text can be forced. log-prob: the log-probability of a text
- words: pieces can be joined to words. writes: writes on after a text. steps: its steps can be opened, changed and
  tested, which wants a text that is produced from a source
- notes: what a trace says of it. hidden: windows or chunks; shared: heads that share keys; sink: a column for the rest

| family | class | maps | off | forced | log-prob | words | writes | steps | notes |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


class Row(NamedTuple):
    """A line of the table. yes and – in the middle columns."""

    family: str
    name: str
    maps: str
    off: str = "–"
    forced: str = "–"
    log_prob: str = "–"
    words: str = "–"
    writes: str = "–"
    steps: str = "–"
    notes: str = ""

    def line(self) -> str:
        return f"| {' | '.join(self)} |"


def listed() -> dict[str, tuple]:
    """Family -> the name of its class with a head, and its tokenizer."""
    from transformers.models.auto import modeling_auto

    classes = {}
    for mapping, made in _MAPPINGS:
        for family, name in getattr(modeling_auto, mapping).items():
            name = _CLASSES.get(family, name if isinstance(name, str) else name[0])
            classes.setdefault(family, (name, made))
    return dict(sorted(classes.items()))


def row(family: str) -> Row:
    """A family, tried."""
    import transformers

    import attnviz

    name, made = listed()[family]
    with tempfile.TemporaryDirectory() as folder:
        try:
            cls = getattr(transformers, name)
            with torch.device("meta"):
                size = sum(
                    p.numel() for p in cls(any_family.config(cls.config_class, **CHANGES.get(family, {}))).parameters()
                )
            if size > MOST:
                return Row(family, name, f"not tried: with small numbers it still has {size:,} parameters")
            any_family.write(Path(folder), name, made(), **CHANGES.get(family, {}))
        except Exception as error:  # configs of 300 families: any of them may want another number
            return Row(family, name, f"not tried: {_short(error)}")
        try:
            return _tried(family, name, attnviz.load(f"hf:{folder}"))
        except ValueError as error:
            reason = " ".join(str(error).replace(f"hf:{folder}", "").replace("|", "/").split()).lstrip(": ")
            return Row(family, name, why_not_shown(reason))


def _short(error: Exception) -> str:
    """Which small number its config, or another library, does not accept."""
    if isinstance(error, ImportError):
        library = re.search(r"requires the (\w+) library", str(error))
        return f"it needs the {library[1]} library" if library else str(error)
    words = " ".join(str(error).replace("|", "/").split()).rpartition("ValueError: ")[2]
    return f"small numbers are not accepted: {words[:110].strip()}" if words else f"its config ({type(error).__name__})"


def why_not_shown(reason: str) -> str:
    """Why a family is not shown. Where the small numbers do not fit together, nothing is known of it."""
    if "cannot be read" in reason and re.search(r"size|shape|split|match", reason):
        return "not tried: a model this small does not run"
    return f"refused: {reason.partition(';')[0][:160].strip()}"


def _tried(family: str, name: str, model) -> Row:
    from attnviz import select

    trace = model.trace(TEXT)
    kinds = dict.fromkeys(m.kind for m in trace.maps)
    parts = []
    for kind in kinds:
        numbers = [m.layer for m in trace.maps if m.kind == kind]
        whole = kind not in model.places
        parts.append(f"{kind} {'all' if whole else ', '.join(str(number + 1) for number in numbers)}")
    return Row(
        family,
        name,
        "; ".join(parts),
        _works(model.projections),
        _works(lambda: model.trace(TEXT, TARGET)),
        _works(lambda: model.log_prob(TEXT, *([TARGET] if "cross" in kinds else []))),
        _works(lambda: select.words(trace)),
        _works(lambda: model.write(TEXT, 3, 0)) if hasattr(model, "write") else "–",
        _works(lambda: _opened(model)),
        _notes(trace),
    )


def _opened(model) -> None:
    from attnviz import faithfulness, inside, intervene

    inside.step(model, model.trace(TEXT, TARGET), 1)
    intervene.run(model, TEXT, intervene.Uniform(), target=TARGET)
    faithfulness.variation(faithfulness.subject(model, TEXT, TARGET), 2)


def _works(ask) -> str:
    try:
        ask()
    except ValueError:
        return "–"
    return "yes"


def _notes(trace) -> str:
    words = [
        "hidden" if any(m.mask is not None for m in trace.maps) else "",
        "shared" if any(m.shared > 1 for m in trace.maps) else "",
        "sink" if any(m.sink for m in trace.maps) else "",
        *(note.replace("|||", "two texts") for note in trace.notes),
    ]
    return "; ".join(filter(None, words))


def rows(names: list[str]) -> Iterator[Row]:
    """Each family, tried."""
    for family in names:
        try:
            yield row(family)
        except Exception as error:  # reported, as a fault, in the list
            yield Row(
                family, listed()[family][0], f"FAULT: {type(error).__name__}: {' '.join(str(error).split())[:90]}"
            )


def document(lines: list[Row]) -> str:
    """The whole of docs/families.md."""
    import transformers

    shown = sum(not family.maps.startswith(("refused", "not tried", "FAULT")) for family in lines)
    head = _HEAD.format(version=transformers.__version__, shown=shown, count=len(lines))
    return head + "".join(f"{family.line()}\n" for family in lines)


if __name__ == "__main__":
    import transformers

    sys.path.insert(0, str(Path(__file__).parents[3]))
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    made = []
    for line in rows(sys.argv[1:] or list(listed())):
        print(line.line(), file=sys.stderr, flush=True)
        made.append(line)
    print(document(made), end="")
