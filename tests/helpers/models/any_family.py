"""A tiny model of any family of the transformers library: its own config, with small numbers."""

from pathlib import Path

import families
import torch

ROWS = 400  # of the embedding: more than the tokenizers of families.py have
_NAMES = {  # small number -> names in configs
    16: "hidden_size d_model n_embd dim embedding_size emb_dim word_embed_proj_dim lru_width projection_dim embed_dim "
    "moe_intermediate_size conv_dim image_size shared_expert_intermediate_size expert_ffn_hidden_size out_hidden_size "
    "text_hidden_size codebook_dim audio_hidden_size upsample_hidden_size downsample_hidden_size",
    32: "intermediate_size d_ff ffn_dim encoder_ffn_dim decoder_ffn_dim ffn_hidden_size d_inner dff hidden_dim n_inner "
    "mamba_d_ssm block_ff_dim feed_forward_size dense_intermediate_size intermediate_size_mlp dim_ff moe_ffn_dim",
    4: "num_hidden_layers n_layer n_layers num_layers num_attention_heads n_head n_heads num_heads head_dim d_kv "
    "d_head "
    "encoder_attention_heads num_encoder_attention_heads decoder_attention_heads num_decoder_attention_heads dim_head "
    "kv_channels qk_rope_head_dim qk_nope_head_dim v_head_dim mamba_n_heads mamba_num_heads linear_key_head_dim "
    "linear_value_head_dim sliding_window attention_window local_attention n_local_heads swa_head_dim rotary_dim "
    "swa_v_head_dim global_head_dim window_size attention_window_size",
    3: "encoder_layers num_encoder_layers",
    2: "decoder_layers num_decoder_layers num_key_value_heads num_kv_heads n_kv_heads num_experts num_local_experts "
    "n_routed_experts moe_num_experts linear_num_key_heads linear_num_value_heads index_n_heads "
    "num_global_key_value_heads swa_num_key_value_heads",
    1: "num_experts_per_tok n_shared_experts moe_topk n_group topk_group n_groups mamba_n_groups mamba_ngroups moe_k "
    "num_shared_experts moe_num_shared_experts",
    8: "q_lora_rank kv_lora_rank qk_head_dim mamba_d_head mamba_d_state mamba_chunk_size mamba_head_dim ssm_state_size "
    "state_size index_head_dim hidden_size_per_layer_input patch_size block_size chunk_size index_topk mamba_dt_rank "
    "time_step_rank attention_chunk_size",
    64: "max_position_embeddings n_positions n_ctx max_target_positions max_source_positions max_seq_len",
    ROWS: "vocab_size vocab_size_per_layer_input src_vocab_size tgt_vocab_size unpadded_vocab_size entity_vocab_size "
    "shape_vocab_size pronunciation_vocab_size",
}
_SMALL = {name: value for value, names in _NAMES.items() for name in names.split()}


def config(cls, **changes):
    """A config of the class with small numbers. changes : to it; those of a config in it are a dict."""
    try:
        base = cls()
    except Exception:  # its own numbers do not agree
        base = cls(**changes)
    given = {}
    for name, value in vars(base).items():
        if hasattr(value, "model_type") and not name.startswith("_"):
            given[name] = config(type(value), **changes.pop(name, {}))
        elif (type(value) is int and value > _SMALL.get(name, value)) or (name == "head_dim" and value is None):
            given[name] = _SMALL[name]
        elif isinstance(value, dict) and "mrope_section" in value:
            given[name] = value | {"mrope_section": [1, 1, 0]}
        elif type(value) is int and name.endswith("token_id") and value >= ROWS:
            given[name] = 3
    if base.is_encoder_decoder and getattr(base, "decoder_start_token_id", None) is None:
        given["decoder_start_token_id"] = 0
    if isinstance(getattr(base, "eos_token_id", None), list):
        given["eos_token_id"] = 2
    return cls(**given | changes)


def write(folder: Path, name: str, made: tuple, **changes) -> Path:
    """A model of the class `name`, with random weights, and a tokenizer of families.py, in `folder`."""
    import transformers

    cls = getattr(transformers, name)
    settings = config(cls.config_class, **changes)
    torch.manual_seed(1)
    model = cls(settings)
    for parameter in model.parameters():
        if parameter.is_floating_point():
            torch.nn.init.normal_(parameter, std=0.3)
    return families.save(folder, model, made)
