"""Tiny models of the families that people bring, with random weights and tokenizers made here, saved as anybody would.

Encoders and decoders differ in depth and heads wherever their family lets them.
"""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

WORDS = "the The black dog is run green bla ball white Le chien noir court ing"
LETTERS = "abcdefghijklmnopqrstuvwxyzDLT"
LIMIT = 40  # tokens of every model: its positions, or what its tokenizer says


def wordpiece():
    """As BERT's: lower-cased, [CLS] … [SEP]; a letter, or one of WORDS, is a piece."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    plain = dict.fromkeys([*LETTERS.lower(), *WORDS.lower().split()])
    vocabulary = [*special, *plain, *(f"##{piece}" for piece in plain), *".!'"]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer, {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }


def byte_pairs(around: str | None = None):
    """As GPT-2's: any text at all, offsets with the space before a word. around : a template, such as <s> $A </s>."""
    vocabulary, merges = ["<s>", "<pad>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())], []
    for word in (f"{space}{word}" for word in WORDS.split() for space in ("Ġ", "")):
        for end in range(1, len(word)):
            if word[: end + 1] not in vocabulary:
                vocabulary.append(word[: end + 1])
                merges.append((word[:end], word[end]))
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(vocabulary)}, merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if around:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=around, special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    return tokenizer, {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>"}


def sentencepiece():
    """As T5's and Marian's: pieces say where a word begins, and </s> closes a text."""
    shares = {"<pad>": 0.0, "</s>": 0.0, "<unk>": 0.0, "▁": -8.0}
    shares |= {f"▁{word}": -4.0 for word in WORDS.split()} | {letter: -9.0 for letter in f"{LETTERS}.!'"}
    tokenizer = Tokenizer(models.Unigram(list(shares.items()), 2, False))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer, {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "model_max_length": LIMIT}


SIDES = dict(
    encoder_layers=3,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=2,
    d_model=16,
    encoder_ffn_dim=16,
    decoder_ffn_dim=16,
    max_position_embeddings=LIMIT,
)
STACK = dict(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=16, max_position_embeddings=LIMIT
)
# family -> tokenizer, class of the model as it is saved, config
FAMILIES = {
    "bert": (wordpiece, "BertForMaskedLM", STACK),
    "distilbert": (
        wordpiece,
        "DistilBertModel",
        dict(dim=16, n_layers=3, n_heads=2, hidden_dim=16, max_position_embeddings=LIMIT),
    ),
    "roberta": (
        lambda: byte_pairs("<s> $A </s>"),
        "RobertaForMaskedLM",
        {**STACK, "pad_token_id": 1, "max_position_embeddings": LIMIT + 2},
    ),
    "gpt2": (byte_pairs, "GPT2LMHeadModel", dict(n_embd=16, n_layer=3, n_head=2, n_positions=LIMIT)),
    "llama": (lambda: byte_pairs("<s> $A"), "LlamaForCausalLM", {**STACK, "num_key_value_heads": 2}),
    "t5": (
        sentencepiece,
        "T5ForConditionalGeneration",
        dict(d_model=16, d_kv=4, d_ff=16, num_layers=3, num_decoder_layers=2, num_heads=4, decoder_start_token_id=0),
    ),
    "bart": (
        lambda: byte_pairs("<s> $A </s>"),
        "BartForConditionalGeneration",
        {
            **SIDES,
            "decoder_start_token_id": 2,
            "forced_bos_token_id": 0,
            "bos_token_id": 0,
            "pad_token_id": 1,
            "eos_token_id": 2,
        },
    ),
    "marian": (
        sentencepiece,
        "MarianMTModel",
        {**SIDES, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1},
    ),
}
READERS, WRITERS = ("bert", "distilbert", "roberta", "gpt2", "llama"), ("t5", "bart", "marian")
CAUSAL = ("gpt2", "llama")


def write(folder: Path, family: str, **changes) -> Path:
    """A model of the family and its tokenizer in `folder`; changes : to its config."""
    import transformers

    made, name, settings = FAMILIES[family]
    tokenizer, special = made()
    cls = getattr(transformers, name)
    config = cls.config_class(vocab_size=tokenizer.get_vocab_size(), **settings | changes)
    torch.manual_seed(1)
    model = cls(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # as they are made, all weights come out nearly equal
    return save(folder, model, (tokenizer, special))


def save(folder: Path, model, made: tuple) -> Path:
    """The model, if there is one, and a tokenizer as the functions above make it, in `folder`."""
    import transformers

    if model is not None:
        model.save_pretrained(folder)
    tokenizer, special = made
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return folder


def tokenizer_file(**steps):
    """A tokenizer.json of bytes with other steps."""
    return json.loads(byte_pairs()[0].to_str()) | steps


def split(pattern):
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def in_sequence(key, step, count):
    return {"type": "Sequence", key: [step] * count}


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def template(number):
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"x": {"id": "x", "ids": [number], "tokens": ["x"]}},
    }
