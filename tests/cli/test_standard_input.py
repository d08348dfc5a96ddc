"""`-` reads standard input in every command that reads a file, and `--version` says the version."""

import io
import json
import os
import re
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import pytest
import tiny

import attnviz
from attnviz.__main__ import main
from attnviz.cli.arguments import with_standard_input
from attnviz.storage import folders

MODEL = ("--model", "en-fr/bahdanau")
PAIRS = tiny.sentences(6, 1)


@pytest.fixture
def give(monkeypatch):
    """Standard input with a text."""

    def of(text, encoding="utf-8"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode(encoding))))

    return of


def test_a_text_to_trace(cli, give, root):
    give("The dog runs.\n")
    _, out, _ = cli("trace", "-", *MODEL, "--json", "-")
    assert json.loads(out)["text"] == "The dog runs."


def test_an_empty_text(cli, give):
    give("\n")
    assert cli("trace", "-", *MODEL)[2] == "python -m attnviz trace: the text is empty; type a sentence\n"


@pytest.mark.parametrize("side", ["--source", "--reference"])
def test_a_side_to_evaluate(side, cli, give, tmp_path):
    sides = {"--source": "".join(f"{a}\n" for a, _ in PAIRS), "--reference": "".join(f"{b}\n" for _, b in PAIRS)}
    options = []
    for name, text in sides.items():
        (tmp_path / name[2:]).write_text(text)
        options += [name, "-" if name == side else tmp_path / name[2:]]
    give(sides[side])
    status, out, _ = cli("evaluate", *MODEL, *options)
    assert status == 0 and re.search(r"^sentences +6$", out, re.MULTILINE)


def test_a_server_that_starts_meanwhile_leaves_the_copy(give, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    give("The dog runs.\n")
    args = Namespace(input="-")
    with with_standard_input(args):
        os.utime(Path(args.input).parent, (1, 1))  # of a run that takes hours
        folders.remove_left.__wrapped__(tmp_path)
        assert Path(args.input).read_text() == "The dog runs.\n"
    assert list(tmp_path.iterdir()) == []


def test_standard_input_is_read_once(cli, give):
    give("The dog runs.\n")
    _, _, err = cli("evaluate", *MODEL, "--source", "-", "--reference", "-")
    assert err == "python -m attnviz evaluate: standard input can be read once; got - for --source and --reference\n"


def test_sentences_of_a_run(cli, give, tmp_path):
    lines = "".join(f"{a}\n" for a, _ in PAIRS)
    give(lines)
    status, out, err = cli("corpus", *MODEL, "--input", "-", "--out", tmp_path / "out")
    assert (status, err) == (0, "") and out.startswith("6 sentences through 1 model")
    give(lines)
    assert cli("corpus", *MODEL, "--input", "-", "--out", tmp_path / "out", "--resume")[:2] == (0, out)


def test_an_error_names_standard_input_and_not_its_copy(cli, give, tmp_path):
    for text, encoding, wrong in (("", "utf-8", "hold at least one sentence"), ("A dog.", "utf-16", "be UTF-8 text")):
        give(text, encoding)
        status, _, err = cli("corpus", *MODEL, "--input", "-", "--out", tmp_path / "out")
        assert status == 2 and err.startswith(f"python -m attnviz corpus: standard input must {wrong}")


def test_links(cli, give):
    give("The dog runs.\nLe chien court.\n0-0 1-1 2-2\n")
    status, out, _ = cli("align", *MODEL, "--gold", "-")
    assert status == 0 and "1 pairs, 3 sure of 3 links" in out


def test_sentences_to_train_on(give, tmp_path, capsys):
    give("".join(f"{a}\t{b}\n" for a, b in tiny.sentences(40, 1)))
    small = [word for setting in ("width=16", "embedding_width=16", "vocabulary=120") for word in ("--set", setting)]
    options = ["--pair", "en-xx", "--mechanism", "bahdanau", "--epochs", "1", *small, "--out", str(tmp_path)]
    assert main(["train", "--tsv", "-", *options]) == 0
    assert attnviz.available(tmp_path) == ["en-xx/bahdanau"]


def test_the_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out == f"attnviz {attnviz.__version__}\n"
