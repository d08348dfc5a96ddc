"""Pipes, devices and folders in the place of files that a person names: refused in a sentence, and nothing waits."""

import os
from pathlib import Path

import pytest

from attnviz import storage
from attnviz.__main__ import main
from attnviz.confidence.training_words import TrainingWords
from attnviz.models.checkpoint_files import CheckpointError


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder with a pipe, a link to a device that has no end, and a folder."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.symlink("/dev/zero", "device")
    os.mkdir("folder")
    return tmp_path


@pytest.mark.parametrize("place, kind", [("pipe", "a pipe"), ("device", "a device"), ("folder", "a folder")])
@pytest.mark.parametrize(
    "words",
    [
        ["corpus", "--out", "out", "--model", "en-fr/bahdanau", "--input"],
        ["align", "--model", "en-fr/bahdanau", "--gold"],
    ],
)
def test_what_a_command_reads_is_a_file(places, root, capsys, words, place, kind):
    assert main([*words, place, "--root", str(root)]) == 2
    assert capsys.readouterr().err == f"python -m attnviz {words[0]}: {place}: not a file but {kind}\n"
    assert not Path("out").exists()


def test_nobody_reads_from_the_pipe(places, root, capsys):
    words = ["trace", "the dog runs", "--model", "en-fr/bahdanau", "--root", str(root), "--json", "pipe"]
    assert main(words) == 2
    assert capsys.readouterr().err.endswith("cannot write pipe: it is a pipe, and nobody reads from it\n")


def test_somebody_reads_from_the_pipe(places):
    writing = os.open("pipe", os.O_RDWR)  # so that opening the other end does not wait
    with open("pipe", "rb") as reading:
        storage.replace(Path("pipe"), lambda path: path.write_bytes(b"whole"))
        os.close(writing)
        assert reading.read() == b"whole"


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08\x00damaged", b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 40, b"", b"x"])
def test_damaged_words_of_training(tmp_path, content):
    (tmp_path / "words.txt.gz").write_bytes(content)
    with pytest.raises(CheckpointError, match="words.txt.gz is damaged"):
        TrainingWords.load(tmp_path / "words.txt.gz")
