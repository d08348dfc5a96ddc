"""Damaged checkpoints: the whole message of each, and the others still load."""

import hashlib
import json
import os
import pickle
import shutil

import pytest
import tiny
import torch
from safetensors.torch import load_file, save_file

import attnviz
from attnviz import storage
from attnviz.models import checkpoint_files
from attnviz.models.checkpoint_files import CheckpointError
from attnviz.models.model import describe
from attnviz.models.translator import Translator

NAME = "en-fr/bahdanau"


@pytest.fixture
def copy(root, tmp_path):
    """A folder of checkpoints to damage."""
    return shutil.copytree(root, tmp_path / "checkpoints")


def fails(root, name=NAME):
    with pytest.raises(CheckpointError) as caught:
        attnviz.load(name, root)
    return str(caught.value)


def test_no_such_checkpoint(root):
    names = ", ".join(sorted(f"en-fr/{name}" for name in tiny.WIDTHS))
    more = "; another folder is given as root, or in ATTNVIZ_CHECKPOINTS"
    assert fails(root, "en-fr/telepathy") == f"no checkpoint 'en-fr/telepathy' in {root}; available: {names}{more}"
    guess = "did you mean en-fr/bahdanau"
    assert fails(root, "en-fr/bahdanu") == f"no checkpoint 'en-fr/bahdanu' in {root}; {guess}; available: {names}{more}"


def test_folders_of_the_environment_count_for_the_library(root, tmp_path, monkeypatch):
    own = tmp_path / "own" / "en-nl"
    shutil.copytree(root / "en-fr" / "bahdanau", own / "bahdanau")
    shutil.copyfile(root / "en-fr" / "tokenizer.json", own / "tokenizer.json")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", os.pathsep.join([str(own.parent), str(root)]))
    assert attnviz.available() == sorted([*attnviz.available(root), "en-nl/bahdanau"])
    assert attnviz.available(root) == attnviz.available(str(root))
    for name in ("en-nl/bahdanau", NAME):
        assert attnviz.load(name).trace("A dog runs.").model == name
    with pytest.raises(CheckpointError) as caught:
        attnviz.load("en-nl/luong-dot")
    assert f"no checkpoint 'en-nl/luong-dot' in {own.parent}, {root}; did you mean" in str(caught.value)
    shutil.copytree(root / "en-fr" / "luong-dot", own.parent / NAME)  # the first folder that has a name counts
    assert checkpoint_files.root_of(NAME) == own.parent and checkpoint_files.root_of(NAME, root) == root


def test_no_checkpoint_at_all(tmp_path):
    message = f"no checkpoint 'en-fr/bahdanau' in {tmp_path}; available: none; another folder is given as root, or in "
    assert fails(tmp_path) == f"{message}ATTNVIZ_CHECKPOINTS"


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_missing_file(copy, file):
    path = copy / NAME / file
    path.unlink()
    assert fails(copy) == f"{path} is missing; restore it or train the model again"


def test_missing_tokenizer(copy):
    path = copy / "en-fr" / "tokenizer.json"
    path.unlink()
    assert fails(copy) == f"{path} is missing; restore it or train the pair again"


def test_missing_card_is_no_reason_to_fail(copy):
    (copy / NAME / "card.json").unlink()
    assert attnviz.load(NAME, copy).card == {}


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_truncated_weights(copy, keep):
    path = copy / NAME / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    message = fails(copy)
    assert message.startswith(f"{path} is damaged (") and message.endswith("); restore it or train the model again")


@pytest.mark.parametrize("file", ["config.json", "card.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe{}"])
def test_damaged_json(copy, file, content):
    path = copy / NAME / file
    path.write_bytes(content)
    message = fails(copy)
    assert message.startswith(f"{path} is damaged (") and message.endswith("); restore it or train the model again")


def test_json_that_is_no_object(copy):
    (copy / NAME / "config.json").write_text("[1]")
    assert fails(copy) == f"{copy / NAME / 'config.json'} must hold a JSON object; got list"


def test_damaged_tokenizer(copy):
    path = copy / "en-fr" / "tokenizer.json"
    path.write_text("{}")
    message = fails(copy)
    assert message.startswith(f"{path} is damaged (") and message.endswith("); restore it")


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "card.json"])
def test_a_folder_where_a_file_belongs(copy, file):
    path = copy / NAME / file
    path.unlink()
    path.mkdir()
    assert fails(copy) == f"{path} is damaged (not a file); restore it or train the model again"
    assert describe(NAME, copy)["problem"] == fails(copy)


def test_a_file_that_may_not_be_read(copy, monkeypatch):
    def forbidden(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(storage, "read", forbidden)
    assert (
        fails(copy)
        == f"{copy / NAME / 'config.json'} is damaged (Permission denied); restore it or train the model again"
    )


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"mechanism": "bahdanau"},
        {"mechanism": [], "vocabulary": 50},
        {"mechanism": "bahdanau", "vocabulary": "50"},
        {"mechanism": "bahdanau", "vocabulary": 50, "colour": "red"},
        {"mechanism": "bahdanau", "vocabulary": 50, "options": None},
        *(
            {"mechanism": "bahdanau", "vocabulary": 50, "options": options}
            for options in ([1], {"width": -1}, {"width": "16"}, {"width": 10**30}, {"dropout": 7}, {"height": 1})
        ),
        *(
            {"mechanism": "transformer", "vocabulary": 50, "options": options}
            for options in (
                {"heads": 0},
                {"heads": -4},
                {"heads": 3},
                {"layers": None},
                {"width": 7, "heads": 1},
                {"longest": -1},
            )
        ),
    ],
)
def test_a_config_that_describes_no_model(copy, content):
    checkpoint_files.write_json(copy / NAME / "config.json", content)
    assert fails(copy).startswith(
        (f"{copy / NAME / 'config.json'} does not describe a model: ", f"{NAME}: the weights do not")
    )
    describe(NAME, copy)  # gives what is wrong, if it sees it without the weights


def test_unknown_mechanism(copy):
    checkpoint_files.write_json(copy / NAME / "config.json", {"mechanism": "telepathy", "vocabulary": 50})
    assert fails(copy).startswith(
        f"{copy / NAME / 'config.json'} does not describe a model: "
        "unknown mechanism 'telepathy'; for your own set ATTNVIZ_MECHANISMS=FILE.py:NAME; else "
        f"choose one of {next(iter(tiny.WIDTHS))}, "
    )


def test_weights_of_another_shape(copy):
    path = copy / NAME / "model.safetensors"
    tensors = load_file(path)
    tensors["start.bias"] = torch.zeros(3, dtype=torch.float16)
    save_file(tensors, path)
    assert fails(copy) == (
        f"{NAME}: the weights do not fit config.json: size mismatch for start.bias: copying a param with shape "
        "torch.Size([3]) from checkpoint, the shape in current model is torch.Size([16])."
    )


def test_weights_of_another_mechanism(copy):
    shutil.copy(copy / "en-fr" / "transformer" / "model.safetensors", copy / NAME / "model.safetensors")
    assert fails(copy).startswith(f"{NAME}: the weights do not fit config.json: ")


def test_tokenizer_of_another_size(copy):
    text = tiny.train_vocabulary(["a few other words, and a few more words"] * 3, 40)
    text.save(copy / "en-fr" / "tokenizer.json")
    model_size = checkpoint_files.read_json(copy / NAME / "config.json")["vocabulary"]
    assert fails(copy) == (
        f"{NAME}: the model knows {model_size} pieces and the tokenizer {len(text)}; they do not belong together"
    )


@pytest.mark.parametrize(
    "file, key", [(f"{NAME}/model.safetensors", "weights_sha256"), ("en-fr/tokenizer.json", "tokenizer_sha256")]
)
def test_files_that_are_not_those_of_the_card(copy, file, key):
    """Bytes may change and still be weights, or a tokenizer: the card's hash tells."""
    card = copy / NAME / "card.json"
    checkpoint_files.write_json(card, {key: hashlib.sha256((copy / file).read_bytes()).hexdigest()})
    Translator.load(NAME, copy)
    assert describe(NAME, copy)["problem"] is None
    checkpoint_files.write_json(card, {key: 64 * "0"})
    assert fails(copy) == f"{copy / file} is damaged, or not the file that card.json was written for; restore it"
    assert describe(NAME, copy)["problem"] == fails(copy)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers(copy, value):
    path = copy / NAME / "model.safetensors"
    tensors = load_file(path)
    tensors["start.bias"][3] = value
    save_file(tensors, path)
    assert fails(copy) == f"{path} is damaged (some weights are not numbers); restore it"


@pytest.mark.parametrize("part", ["pre_tokenizer", "normalizer", "specials"])
def test_a_tokenizer_that_lacks_a_part(copy, part):
    path = copy / "en-fr" / "tokenizer.json"
    content = json.loads(path.read_text())
    if part == "specials":
        vocabulary = content["model"]["vocab"]
        vocabulary["<eos>"], vocabulary["<pad>"] = vocabulary["<pad>"], vocabulary["<eos>"]
        for token in content["added_tokens"]:
            token["id"] = vocabulary[token["content"]]
    else:
        content[part] = None
    path.write_text(json.dumps(content))
    reason = (
        "its first pieces are not <pad>, <bos>, <eos>, <unk>"
        if part == "specials"
        else "it has no normaliser or no pre-tokeniser"
    )
    assert fails(copy) == f"{path} is damaged ({reason}); restore it"


def test_the_others_still_load(copy):
    (copy / NAME / "model.safetensors").write_bytes(b"")
    assert Translator.load("en-fr/transformer", copy).trace("The dog runs.").model == "en-fr/transformer"


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was read",))


def test_pickle_is_never_read(copy):
    for file in ("model.safetensors", "config.json"):
        path = copy / NAME / file
        path.write_bytes(pickle.dumps(Trap()))
        assert fails(copy).startswith(f"{path} is damaged (")
        shutil.copy(copy / "en-fr" / "luong-general" / file, path)
