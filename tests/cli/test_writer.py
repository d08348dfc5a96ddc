"""The command line and a model that writes: a text traced, and one that is measured."""

import pytest
import tiny_writer

import attnviz
from attnviz.__main__ import main
from attnviz.evaluation import language

TEXT = "The dog runs.\nA boy sleeps.\n\nThe cat jumps.\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tiny_writer.write_models(tmp_path_factory.mktemp("writers"))


@pytest.fixture
def measure(root, tmp_path, capsys):
    def run(text, *options):
        (tmp_path / "text").write_text(text)
        command = ["evaluate", "--model", "en/writer", "--root", str(root), "--source", str(tmp_path / "text")]
        return main([*command, *options]), *capsys.readouterr()

    return run


def test_a_text_is_measured(root, measure):
    status, out, _ = measure(TEXT)
    scores = language.score(attnviz.load("en/writer", root), ["The dog runs.\nA boy sleeps.", "The cat jumps."])
    lines = dict(line.rsplit(maxsplit=1) for line in out.splitlines())
    assert status == 0 and lines["model"] == "en/writer" and lines["texts"] == "2"
    assert float(lines["bits a character"]) == scores["bits_a_character"] and lines["characters"] == "43"


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("\n\n", (), "{path} must hold a text; got none"),
        (
            TEXT,
            ("--beam", "2"),
            "en/writer writes on after a text; --reference and --beam are for models that translate",
        ),
    ],
)
def test_what_cannot_be_measured(measure, tmp_path, text, options, message):
    status, _, err = measure(text, *options)
    assert status == 2 and err.strip() == f"python -m attnviz evaluate: {message.format(path=tmp_path / 'text')}"


def test_a_trace_is_printed(root, capsys):
    assert main(["trace", "The dog runs.", "--model", "en/writer", "--root", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "text: The dog runs." and lines[1].startswith("log-probability: -")
    assert lines[2] == "attention: decoder, layer 2 of 2, mean of 2 heads"
    assert lines[4].split() == ["token", "probability", "attends", "most", "to", "weight"]
    assert lines[5].split()[0] == "The" and lines[5].split()[2:] == ["<bos>", "1.00"]


def test_own_files_are_refused(tmp_path, capsys):
    (tmp_path / "pairs").write_text("a\tb\n")
    command = ["train", "--pair", "en", "--mechanism", "writer", "--tsv", str(tmp_path / "pairs")]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    message = "en reads texts from the data folder; give that with --data, and no other file"
    assert capsys.readouterr().err.strip() == f"python -m attnviz train: {message}"
