"""Weights on disk: whole, small, safe to read, and the same numbers when they come back."""

import shutil

import pytest
import tiny
import torch
from safetensors.torch import load_file, save_file

import attnviz
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.checkpoint_files import CheckpointError
from attnviz.networks.registry import build

NAME = "en-fr/bahdanau"


def test_names(root):
    assert attnviz.available(root) == sorted(f"en-fr/{name}" for name in tiny.WIDTHS)
    assert attnviz.available(root / "nowhere") == []


@pytest.mark.parametrize("mechanism", tiny.WIDTHS)
def test_fp16_on_disk_is_what_load_gives_in_fp32(root, mechanism):
    stored = load_file(root / "en-fr" / mechanism / "model.safetensors")
    model, _ = checkpoints.load_model(f"en-fr/{mechanism}", root)
    loaded = model.state_dict()
    assert stored.keys() == loaded.keys()
    for key, value in stored.items():
        assert value.dtype == torch.float16 and loaded[key].dtype == torch.float32
        assert torch.equal(loaded[key], value.float()) and torch.equal(loaded[key].half(), value)
    assert not model.training and not any(parameter.requires_grad for parameter in model.parameters())


def test_models_of_a_pair_share_a_tokenizer_until_its_file_changes(root, tmp_path):
    copy = shutil.copytree(root, tmp_path / "checkpoints")
    first, second = (attnviz.load(f"en-fr/{name}", copy).tokenizer for name in ("bahdanau", "transformer"))
    assert first is second
    path = copy / "en-fr" / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert attnviz.load(NAME, copy).tokenizer is not first


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_one_entry_that_is_no_number_is_found(wrong):
    weight = torch.randn(30, 40)
    assert checkpoints._is_finite(weight) and checkpoints._is_finite(torch.empty(0, 4))
    weight[17, 3] = wrong
    assert not checkpoints._is_finite(weight)


@pytest.mark.parametrize("mechanism", tiny.WIDTHS)
def test_rounding_to_fp16_changes_no_weight_by_more_than_its_precision(tmp_path, mechanism):
    torch.manual_seed(1)
    model = build(Config(mechanism, 50, tiny.WIDTHS[mechanism]))
    checkpoints.save_model(tmp_path / "a" / "b", Config(mechanism, 50, tiny.WIDTHS[mechanism]), model.state_dict())
    loaded, _ = checkpoints.load_model("a/b", tmp_path)
    for key, value in model.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[key], value, rtol=2**-11, atol=2**-25)


def test_size_is_two_bytes_a_parameter(root):
    for mechanism in tiny.WIDTHS:
        model, _ = checkpoints.load_model(f"en-fr/{mechanism}", root)
        size = (root / "en-fr" / mechanism / "model.safetensors").stat().st_size
        assert size <= 2 * sum(p.numel() for p in model.parameters()) + 8000  # and the header


def test_saved_twice_is_the_same_file(root, tmp_path):
    model, config = checkpoints.load_model(NAME, root)
    checkpoints.save_model(tmp_path / NAME, Config(**config), model.state_dict())
    assert checkpoint_files.fingerprint(NAME, tmp_path) == checkpoint_files.fingerprint(NAME, root)


def test_a_write_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        checkpoint_files.write_json(tmp_path / "card.json", {"a": object()})
    assert list(tmp_path.iterdir()) == []


def test_metadata_comes_back_and_files_may_be_read_by_others(tmp_path):
    path, beside = tmp_path / "a.safetensors", {"é": [1, 2.5, None], "b": {"c": True}}
    checkpoints.save_tensors(path, {"x": torch.ones(2)}, beside)
    assert checkpoints.load_metadata(path, "é", "b") == beside and list(checkpoints.load_tensors(path)) == ["x"]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("beside", [None, {}, {"a": 1}])
def test_metadata_that_is_not_there(tmp_path, beside):
    path = tmp_path / "a.safetensors"
    checkpoints.save_tensors(path, {"x": torch.ones(2)}, beside)
    missing = "b" if beside == {"a": 1} else "a, b"
    with pytest.raises(CheckpointError) as caught:
        checkpoints.load_metadata(path, "a", "b")
    assert str(caught.value) == f"{path} must say {missing} beside its tensors; train the model again"


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null"])
def test_metadata_that_is_no_object(tmp_path, text):
    save_file({"x": torch.ones(2)}, tmp_path / "a.safetensors", {"json": text})
    with pytest.raises(CheckpointError, match="must say a beside its tensors"):
        checkpoints.load_metadata(tmp_path / "a.safetensors", "a")


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "card.json"
    checkpoint_files.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        checkpoint_files.write_json(path, {"a": object()})
    assert checkpoint_files.read_json(path) == {"a": 1}
