"""hf.py: models that cannot be shown, folders that are not whole, and code that is never run; the whole message of each."""

import json
import re
import sys
import tomllib
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import families
import pytest
import transformers
from families import FAMILIES
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.torch import load_file, save_file

import attnviz
from attnviz.__main__ import main
from attnviz.models.huggingface import load
from attnviz.models.model import TextError

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
ROOT = Path(__file__).resolve().parents[3]
TEXT = "The black dogs are running."


def refused(folder):
    """The message, without the name that it begins with."""
    with pytest.raises(load.ModelError) as error:
        attnviz.load(f"hf:{folder}")
    assert str(error.value).startswith(f"hf:{folder}") and "\n" not in str(error.value)
    return str(error.value).removeprefix(f"hf:{folder}").removeprefix(":").strip()


@pytest.fixture
def bert(tmp_path):
    """A folder of a BERT, to be damaged."""
    return families.write(tmp_path / "bert", "bert")


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_without_the_library_the_command_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(load.ModelError) as error:
        attnviz.load("hf:somewhere")
    assert (
        str(error.value)
        == 'models of the Hugging Face hub need the transformers library: pip install "transformers>=5.23,<6"'
    )
    assert (
        load.REQUIREMENT
        in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["hf"]
    )


@pytest.mark.parametrize("version", ["4.57.1", "5.22.0", "6.0.0"])
def test_another_version_of_the_library(monkeypatch, version):
    monkeypatch.setattr("transformers.__version__", version)
    with pytest.raises(
        load.ModelError, match=f"need another version of the transformers library than {version}: pip install"
    ):
        attnviz.load("hf:somewhere")


def test_no_folder_and_no_such_model(monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", fails(FileNotFoundError("No network.\nMore of it.")))
    assert (
        refused("some/model")
        == "there is no such folder, and the Hugging Face hub has no such model: No network. More of it"
    )
    monkeypatch.setattr("huggingface_hub.snapshot_download", fails(LocalEntryNotFoundError("Long, and of no use.")))
    assert refused("some/model").startswith(
        "there is no such folder, and the Hugging Face hub cannot be reached; check the path"
    )


def test_a_path_is_no_name():
    assert (
        refused("/no/such/folder")
        == "there is no such folder, and this cannot be the name of a model on the Hugging Face hub"
    )


def test_a_name_is_fetched_without_code_and_pickles(bert, monkeypatch):
    asked = []
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **how: asked.append((name, how)) or str(bert))
    assert attnviz.load("hf:some/model").trace(TEXT).model == "hf:some/model"
    [(name, how)] = asked
    fetched = [
        file
        for file in (
            "config.json",
            "model.safetensors",
            "vocab.txt",
            "source.spm",
            "model.py",
            "pytorch_model.bin",
            "onnx/model.json",
            "tf_model.h5",
        )
        if any(map(partial(fnmatch, file), how["allow_patterns"]))
        and not any(map(partial(fnmatch, file), how["ignore_patterns"]))
    ]
    assert name == "some/model" and fetched == ["config.json", "model.safetensors", "vocab.txt", "source.spm"]


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


@pytest.mark.parametrize("name", ["", " "])
def test_no_name(name):
    with pytest.raises(
        ValueError, match="^hf: must be followed by the folder of a model, or by its name on the Hugging Face hub$"
    ):
        attnviz.load(f"hf:{name}")


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
    """The library may make an empty one then, to which every word is unknown. beside : a file that is none for a BERT."""
    for file in ("tokenizer.json", "tokenizer_config.json"):
        if file != beside:
            (bert / file).unlink()
    if beside == "spiece.model":
        (bert / beside).write_bytes(b"")
    assert refused(bert) == "its tokenizer is missing; save it beside the model: tokenizer.save_pretrained(folder)"


def test_a_damaged_tokenizer(bert):
    (bert / "tokenizer.json").write_text("{}")
    assert refused(bert).startswith("its tokenizer cannot be read: ")


def test_a_tokenizer_without_offsets(bert):
    """A slow one: what its pieces spell is found in the text, or the text is refused."""
    pieces = ["<unk>", "The", "d@@", "o@@", "g", "s"]
    (bert / "tokenizer.json").unlink()
    (bert / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    (bert / "merges.txt").write_text("#version\nT h\nTh e</w>\n")
    (bert / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CTRLTokenizer", "unk_token": "<unk>"}))
    found = attnviz.load(f"hf:{bert}")
    tokens = found.trace("The  dog s").source
    assert not found.tokenizer.is_fast and [(t.text, t.start, t.word) for t in tokens] == [
        ("The", 0, 0),
        ("d", 5, 1),
        ("o", 6, 1),
        ("g", 7, 1),
        ("s", 9, 2),
    ]
    with pytest.raises(TextError) as error:
        found.trace("The cat")
    assert str(error.value) == (
        f"the tokenizer changes the text and does not say where in it its pieces are; {found.name} needs a fast "
        "tokenizer, with a tokenizer.json, for this text"
    )


def test_the_tokenizer_of_another_model(bert):
    made = families.byte_pairs()
    families.save(bert, None, made)
    known = load_file(bert / "model.safetensors")["bert.embeddings.word_embeddings.weight"].shape[0]
    assert (
        refused(bert)
        == f"the model knows {known} pieces and the tokenizer {made[0].get_vocab_size()}; they do not belong together"
    )


def test_a_decoder_that_starts_with_nothing(tmp_path):
    folder = families.write(tmp_path / "t5", "t5", decoder_start_token_id=None)
    assert refused(folder) == "its config does not say which token its decoder starts with (decoder_start_token_id)"


@pytest.mark.parametrize(
    "name, settings, wanted",
    [
        (
            "FNetModel",
            dict(hidden_size=16, num_hidden_layers=2, intermediate_size=16),
            "0 of its 2 layers return attentions; only a model in which all do can be shown",
        ),
        (
            "LongformerModel",
            dict(families.STACK, attention_window=4, pad_token_id=1),
            "cannot be shown: the encoder map of layer 0 is (4, 5) for 4 tokens",
        ),
        (
            "GptOssForCausalLM",
            dict(families.STACK, num_key_value_heads=2, head_dim=4, num_local_experts=2, num_experts_per_tok=1),
            "cannot be shown: weights of the encoder map of layer 0 must sum to 1 over the keys of every row; got ",
        ),
    ],
)
def test_attention_that_cannot_be_shown(tmp_path, monkeypatch, name, settings, wanted):
    """None at all; a band of it; with weight on a key that is no token (an attention sink)."""
    monkeypatch.setitem(FAMILIES, "strange", (families.wordpiece, name, settings))
    assert refused(families.write(tmp_path / "strange", "strange")).startswith(wanted)


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


def fails(error):
    def raises(*args, **kwargs):
        raise error

    return raises


def test_a_folder_without_the_prefix(bert, capsys):
    with pytest.raises(
        ValueError, match=f"but a folder; a model for the transformers library is hf:{re.escape(str(bert))}$"
    ):
        attnviz.load(str(bert))
    assert main(["trace", TEXT, "--model", str(bert)]) != 0 and f"hf:{bert}" in capsys.readouterr().err


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
            "its table of pieces cannot be read: ",
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
            "cannot be shown: its attention is not one array for each layer",
        ),
    ],
)
def test_a_model_whose_attention_is_something_else(tmp_path, family, settings, message):
    cls = getattr(transformers, family)
    assert refused(
        families.save(tmp_path / "other", cls(cls.config_class(**settings)), families.wordpiece())
    ).startswith(message)


def test_more_layers_in_the_files_than_in_the_config(bert):
    change(bert / "config.json", num_hidden_layers=1)
    assert refused(bert).startswith(
        "its files hold more layers than its config.json says, such as bert.encoder.layer.1."
    )
