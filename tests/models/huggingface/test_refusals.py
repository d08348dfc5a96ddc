"""Folders of models that are not whole, and code that is never run: the whole message of each."""

import re

import families
import pytest
import transformers
from refused_models import change, refused
from safetensors.torch import load_file, save_file

import attnviz

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT = "The black dogs are running."


def test_no_config(bert):
    (bert / "config.json").unlink()
    assert refused(bert) == "config.json is missing; a folder must be as save_pretrained() writes it"


@pytest.mark.parametrize("text", ["{", "[]", '{"model_type": "bert", "hidden_size": "wide"}'])
def test_a_damaged_config(bert, text):
    (bert / "config.json").write_text(text)
    assert "its config.json cannot be read: " in refused(bert)


def test_a_model_of_no_known_type(bert):
    change(bert / "config.json", model_type="no-such")
    assert refused(bert) == "this version of the transformers library has no models of type no-such; a newer one may"


def test_weights_in_pickles_are_not_read(bert):
    (bert / "model.safetensors").rename(bert / "pytorch_model.bin")
    assert refused(bert).startswith("weights are read from safetensors only, and this model has none")


def test_damaged_weights(bert):
    (bert / "model.safetensors").write_bytes(b"not weights")
    assert refused(bert).startswith("the model cannot be read: ")


def test_weights_that_are_missing_are_not_made_up(bert):
    """The library fills them with random numbers and goes on."""
    weights = load_file(bert / "model.safetensors")
    save_file(
        {key: value for key, value in weights.items() if "layer.1.attention" not in key}, bert / "model.safetensors"
    )
    assert re.fullmatch(
        r"its files lack \d+ weights that it needs, such as encoder\.layer\.1\.attention\S*; its attention would "
        "be random",
        refused(bert),
    )


def test_weights_of_another_size(bert):
    change(bert / "config.json", intermediate_size=24)
    assert (
        refused(bert)
        == "its config.json and its weights disagree on the sizes of the model; they do not belong together"
    )


def test_a_tokenizer_that_is_none(bert):
    (bert / "tokenizer.json").write_text("{}")
    assert refused(bert) == "its tokenizer cannot be read: 'added_tokens' is missing in it"


def test_an_adapter(bert):
    (bert / "adapter_config.json").write_text("{}")
    assert refused(bert) == "an adapter cannot be shown alone; merge it into its model and save that"


def test_code_in_the_folder_is_never_run(bert):
    ran = bert / "ran"
    (bert / "mine.py").write_text(f"open({str(ran)!r}, 'w')\nclass Mine: pass\n")
    auto = {name: "mine.Mine" for name in ("AutoConfig", "AutoModel", "AutoTokenizer")}
    change(bert / "config.json", auto_map=auto)
    change(bert / "tokenizer_config.json", auto_map={"AutoTokenizer": ["mine.Mine", "mine.Mine"]})
    assert attnviz.load(f"hf:{bert}").trace(TEXT).maps  # a BERT is known without its code
    change(bert / "config.json", model_type="mine")
    assert refused(bert) == (
        "it needs its own code, which is never run here; only models that are part of the transformers library "
        "can be shown"
    )
    assert not ran.exists()


@pytest.mark.parametrize("beside", [None, "tokenizer_config.json", "spiece.model"])
def test_no_tokenizer(bert, beside):
    """The library may make an empty one then, to which every word is unknown. beside : a file of no use to a BERT."""
    for file in ("tokenizer.json", "tokenizer_config.json"):
        if file != beside:
            (bert / file).unlink()
    if beside == "spiece.model":
        (bert / beside).write_bytes(b"")
    assert refused(bert) == "its tokenizer is missing; save it beside the model: tokenizer.save_pretrained(folder)"


def test_a_damaged_tokenizer(bert):
    (bert / "tokenizer.json").write_text("{}")
    assert refused(bert).startswith("its tokenizer cannot be read: ")


def test_the_tokenizer_of_another_model(bert):
    made = families.byte_pairs()
    families.save(bert, None, made)
    pieces = load_file(bert / "model.safetensors")["bert.embeddings.word_embeddings.weight"].shape[0]
    assert refused(bert) == (
        f"its tokenizer cannot be read: it gives a piece the number {pieces}, and those of this model are 0 to "
        f"{pieces - 1}; they do not belong together"
    )


@pytest.mark.parametrize("damaged", [False, True])
def test_the_library_is_as_quiet_afterwards_as_before(bert, damaged, capfd):
    log = transformers.utils.logging
    log.set_verbosity_info()
    try:
        if damaged:
            (bert / "tokenizer.json").unlink()
            refused(bert)
        else:
            attnviz.load(f"hf:{bert}")
        assert log.get_verbosity() == log.INFO and log.is_progress_bar_enabled()
    finally:
        log.set_verbosity_warning()
    assert capfd.readouterr().err == ""


def test_more_layers_in_the_files_than_in_the_config(bert):
    change(bert / "config.json", num_hidden_layers=1)
    assert refused(bert).startswith(
        "its files hold more layers than its config.json says, such as bert.encoder.layer.1."
    )


@pytest.mark.parametrize(
    "name, sizes, read",
    [
        ("ViTModel", dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8), "images"),
        (
            "WhisperForConditionalGeneration",
            dict(d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2)
            | dict(encoder_ffn_dim=8, decoder_ffn_dim=8, vocab_size=60, pad_token_id=1)
            | dict(decoder_start_token_id=2, bos_token_id=2, eos_token_id=3, begin_suppress_tokens=None),
            "speech",
        ),
    ],
)
def test_a_model_that_reads_no_text_is_named(tmp_path, name, sizes, read):
    cls = getattr(transformers, name)
    cls(cls.config_class(**sizes)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"reads {read}, not text; .* attnviz.from_arrays"):
        attnviz.load(f"hf:{tmp_path}")
