"""The command `train` in this process, and sentences to train on."""

import gzip

import pytest
import tiny
from train_command import SMALL

from attnviz.__main__ import main


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No change to torch's threads."""
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)


@pytest.fixture
def train(tmp_path, capsys):
    """Run `train` on the options given -> status, output, and errors without the bars."""

    def run(*options, pair="en-fr", mechanism="bahdanau"):
        command = ["train", "--pair", pair, "--mechanism", mechanism, "--out", str(tmp_path / "out"), *SMALL]
        try:
            status = main([*command, *map(str, options)])
        except SystemExit as stop:  # argparse leaves this way
            status = stop.code
        captured = capsys.readouterr()
        commands = [line for line in captured.err.splitlines(keepends=True) if line.startswith("python -m attnviz")]
        return status, captured.out, "".join(commands)

    return run


@pytest.fixture
def mine(tmp_path):
    """A person's own sentences: two files, one of them gzipped, and both in one."""
    pairs = tiny.sentences(60, 9)
    (tmp_path / "mine.en").write_text("".join(f"{a}\n" for a, _ in pairs), encoding="utf-8")
    (tmp_path / "mine.fr.gz").write_bytes(gzip.compress("".join(f"{b}\n" for _, b in pairs).encode()))
    (tmp_path / "mine.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return tmp_path
