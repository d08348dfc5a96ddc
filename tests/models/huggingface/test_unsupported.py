"""Models whose attention cannot be shown, and tokenizers without places: the whole message of each."""

import json
import os
from pathlib import Path

import any_family
import families
import family_table
import numpy as np
import processes
import pytest
import transformers
from families import FAMILIES
from refused_models import refused

import attnviz
from attnviz.models.model import TextError

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library


def trials() -> set[int]:
    """The processes in which texts are tried on tokenizers that only the library can read."""
    return {pid for pid in processes.family(os.getpid()) if "tokenizer_trial folder" in processes.command(pid)}


def test_a_tokenizer_without_offsets(bert):
    """A slow one: what its pieces spell is found in the text, or the text is refused."""
    pieces = ["<unk>", "The", "d@@", "o@@", "g", "s"]
    (bert / "tokenizer.json").unlink()
    (bert / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    (bert / "merges.txt").write_text("#version\nT h\nTh e</w>\n")
    (bert / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CTRLTokenizer", "unk_token": "<unk>"}))
    before = trials()
    model = attnviz.load(f"hf:{bert}")
    tokens = model.trace("The  dog s").source
    assert not model.tokenizer.is_fast and [(t.text, t.start, t.word) for t in tokens] == [
        ("The", 0, 0),
        ("d", 5, 1),
        ("o", 6, 1),
        ("g", 7, 1),
        ("s", 9, 2),
    ]
    (trial,) = trials() - before
    assert "libtorch" not in Path(f"/proc/{trial}/maps").read_text()  # a second less until the model is there
    with pytest.raises(TextError) as error:
        model.trace("The cat")
    assert str(error.value) == (
        f"the tokenizer changes the text and does not say where in it its pieces are; {model.name} needs a fast "
        "tokenizer, with a tokenizer.json, for this text"
    )


@pytest.mark.parametrize(
    "hidden, wanted",
    [
        ("sentencepiece", "it needs the sentencepiece library: pip install sentencepiece"),
        ("tiktoken", "it is damaged, or needs the tiktoken library: pip install tiktoken"),
    ],
)
def test_a_library_that_only_the_tokenizer_needs(tmp_path, monkeypatch, hidden, wanted):
    """Without sentencepiece, or where it cannot read the file, the transformers library asks for tiktoken."""
    folder = families.write(tmp_path / "t5", "t5")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "T5Tokenizer"}))
    (folder / "spiece.model").write_bytes(b"damaged")
    hiding = f"import sys\nsys.modules[{hidden!r}] = None\n"  # as if it were not installed
    (tmp_path / "sitecustomize.py").write_text(hiding)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert refused(folder) == f"its tokenizer cannot be read: {wanted}"


def test_a_decoder_that_starts_with_nothing(tmp_path):
    folder = families.write(tmp_path / "t5", "t5", decoder_start_token_id=None)
    assert refused(folder) == "its config does not say which token its decoder starts with (decoder_start_token_id)"


@pytest.mark.parametrize(
    "name, settings, wanted",
    [
        (
            "FNetModel",
            dict(hidden_size=16, num_hidden_layers=2, intermediate_size=16),
            "none of its 2 layers returns attentions: it has no weights to show",
        ),
        (
            "YosoModel",
            families.STACK,
            "cannot be shown: the library returns one vector for each token, (1, 8, 16), in place of weights",
        ),
    ],
)
def test_attention_that_cannot_be_shown(tmp_path, monkeypatch, name, settings, wanted):
    """None at all; something else in their place."""
    monkeypatch.setitem(FAMILIES, "strange", (families.wordpiece, name, settings))
    assert refused(families.write(tmp_path / "strange", "strange")).startswith(wanted)


SMALL = {
    "vocab_size": 400,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


@pytest.mark.parametrize(
    "family, settings, message",
    [
        (
            "CLIPModel",
            dict(text_config=SMALL, vision_config={**SMALL, "image_size": 16, "patch_size": 8}),
            "a model of type clip reads images, not text; run it with the transformers library",
        ),
        ("DPRQuestionEncoder", SMALL, "cannot be shown: it does not return its attention by name"),
        (
            "PegasusXForConditionalGeneration",
            dict(
                vocab_size=400,
                d_model=16,
                encoder_layers=1,
                decoder_layers=1,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=16,
                decoder_ffn_dim=16,
            ),
            "cannot be shown: each layer returns several arrays, of blocks of tokens and of global ones",
        ),
        (
            "LongT5ForConditionalGeneration",
            dict(vocab_size=400, d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=4, decoder_start_token_id=0),
            "cannot be shown: it attends within blocks, and the library returns arrays of 5 axes, (1, 1, 4, 128, 384)",
        ),
    ],
)
def test_a_model_whose_attention_is_something_else(tmp_path, family, settings, message):
    cls = getattr(transformers, family)
    assert refused(
        families.save(tmp_path / "other", cls(cls.config_class(**settings)), families.wordpiece())
    ).startswith(message)


@pytest.mark.parametrize(
    "family, message",
    [
        (
            "T5Gemma2ForConditionalGeneration",
            "cannot be shown: its decoder has one softmax over its own tokens and the source, so the rows of neither",
        ),
        (
            "CpmAntForCausalLM",
            "cannot be shown: the library leaves out some of the weights, such as those on tokens that",
        ),
        ("PI0ForConditionalGeneration", "it reads more than a text, such as action_embeds, so it cannot be shown"),
        ("Kosmos2ForConditionalGeneration", "it reads more than a text, such as pixel_values or image_embeds, so"),
        ("PerceiverForMaskedLM", "cannot be shown: its attention goes out from latent vectors that read the text"),
        ("BltForCausalLM", "cannot be shown: its attention goes out from patches of a text, whose number depends on"),
        ("DiffusionGemmaForBlockDiffusion", "cannot be shown: its attention goes out from places that it fills"),
        ("Gemma4UnifiedAssistantForCausalLM", "cannot be shown alone: it reads the keys and values of the larger"),
    ],
)
def test_a_family_whose_rows_or_inputs_are_others(tmp_path, family, message):
    """Two sources in one softmax; prompts before the text; actions, or images, beside it; rows that are no tokens."""
    row = next(row for row, (name, _) in family_table.listed().items() if name == family)
    changes = family_table.CHANGES.get(row, {})
    assert refused(any_family.write(tmp_path, family, families.byte_pairs(), **changes)).startswith(message)


def test_scores_that_the_library_returns_become_weights(tmp_path):
    """SqueezeBERT, against what its own softmax gives."""
    model = attnviz.load(f"hf:{any_family.write(tmp_path, 'SqueezeBertForMaskedLM', families.wordpiece())}")
    computed = []
    for path, module in model.model.named_modules():
        if path.endswith("attention.softmax"):
            module.register_forward_hook(lambda module, inputs, output: computed.append(output[0].numpy()))
    trace = model.trace("The black dog")
    assert len(computed) == len(trace.maps) == 4
    assert all(np.allclose(m.weights, own, atol=1e-6) for m, own in zip(trace.maps, computed, strict=True))


def test_a_text_that_the_family_reads_in_chunks_is_refused_and_a_shorter_one_shown(tmp_path):
    chunks = {"lsh_attn_chunk_length": 8, "local_attn_chunk_length": 8} | family_table.CHANGES["reformer"]
    model = attnviz.load(f"hf:{any_family.write(tmp_path, 'ReformerForMaskedLM', families.wordpiece(), **chunks)}")
    assert len(model.trace("dog " * 5).maps) == 4
    with pytest.raises(TextError, match="shows no text as long as this: it attends within blocks"):
        model.trace("dog " * 20)
