"""Models of the hub without a hub: the library is missing or of another version, no such name, no network."""

import re
import sys
import tomllib
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from refused_models import refused

import attnviz
from attnviz.__main__ import main
from attnviz.models.huggingface import load

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
ROOT = Path(__file__).resolve().parents[3]
TEXT = "The black dogs are running."


def test_without_the_library_the_command_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(load.ModelError) as error:
        attnviz.load("hf:somewhere")
    assert (
        str(error.value)
        == 'models of the Hugging Face hub need the transformers library: pip install "transformers>=5.15,<6"'
    )
    assert (
        load.REQUIREMENT
        in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["hf"]
    )


@pytest.mark.parametrize("version", ["4.57.1", "5.14.9", "6.0.0"])
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
    calls = []
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **how: calls.append((name, how)) or str(bert))
    assert attnviz.load("hf:some/model").trace(TEXT).model == "hf:some/model"
    [(name, how)] = calls
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


@pytest.mark.parametrize("name", ["", " "])
def test_no_name(name):
    with pytest.raises(
        ValueError, match="^hf: must be followed by the folder of a model, or by its name on the Hugging Face hub$"
    ):
        attnviz.load(f"hf:{name}")


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
