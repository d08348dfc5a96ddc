"""models/machine.py: one thread computes unless another number is given."""

import pytest
import tiny
import torch

import attnviz
from attnviz.__main__ import main

NAME = "en-fr/bahdanau"


@pytest.fixture(autouse=True)
def several():
    """torch begins with three threads, and has its own again afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("given, wanted", [({}, 1), ({"threads": 2}, 2)])
def test_loading_a_trained_model_chooses_them(given, wanted, root):
    attnviz.load(NAME, root, **given)
    assert torch.get_num_threads() == wanted


@pytest.mark.xdist_group("hf")  # one process imports the library
@pytest.mark.parametrize("given, wanted", [({}, 3), ({"threads": 2}, 2)])
def test_a_hugging_face_model_leaves_them(given, wanted, folder):
    attnviz.load(f"hf:{folder('bert')}", **given)
    assert torch.get_num_threads() == wanted


def test_a_number_below_one(root):
    with pytest.raises(ValueError, match="^threads must be at least 1; got 0$"):
        attnviz.load(NAME, root, threads=0)


@pytest.mark.parametrize("options, wanted", [((), 1), (("--threads", "2"), 2)])
@pytest.mark.parametrize("command", ["trace", "evaluate", "align", "corpus", "train"])
def test_every_command_that_computes(command, options, wanted, root, tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("The dog runs.\n")
    (tmp_path / "in.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in tiny.sentences(40, 1)))
    lines, out = str(tmp_path / "in.txt"), str(tmp_path / "out")
    small = [word for setting in ("width=16", "embedding_width=16", "vocabulary=120") for word in ("--set", setting)]
    words = {
        "trace": ["The dog runs.", "--model", NAME, "--root", str(root)],
        "evaluate": ["--model", NAME, "--source", lines, "--reference", lines, "--root", str(root)],
        "align": ["--model", NAME, "--root", str(root)],
        "corpus": ["--model", NAME, "--input", lines, "--out", out, "--root", str(root)],
        "train": ["--pair", "en-xx", "--mechanism", "bahdanau", "--tsv", str(tmp_path / "in.tsv"), "--out", out]
        + [*small, "--epochs", "1"],
    }
    assert main([command, *words[command], *options]) == 0
    assert torch.get_num_threads() == wanted
