"""The command line and a model that writes: a text traced, measured, and written on."""

import re

import families
import pytest
import tiny
import tiny_writer

import attnviz
from attnviz.__main__ import main
from attnviz.evaluation import language
from attnviz.trace import Trace

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
    assert lines[2] == "attention: decoder, layer 1 (the last; layers count from 0), mean of 2 heads"
    assert lines[4].split() == ["token", "probability", "attends", "most", "to", "weight"]
    assert lines[5].split()[0] == "The" and lines[5].split()[2:] == ["<bos>", "1.00"]


def test_own_files_are_refused(tmp_path, capsys):
    (tmp_path / "pairs").write_text("a\tb\n")
    command = ["train", "--pair", "en", "--mechanism", "writer", "--tsv", str(tmp_path / "pairs")]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    message = "en reads texts from the data folder; give that with --data, and no other file"
    assert capsys.readouterr().err.strip() == f"python -m attnviz train: {message}"


@pytest.fixture
def write(root, capsys):
    def run(*options, model="en/writer"):
        try:
            status = main(["write", "The dog", "--model", model, "--root", str(root), *options])
        except SystemExit as stop:  # argparse leaves this way
            status = stop.code
        return status, *capsys.readouterr()

    return run


def test_a_text_is_written_on(root, write):
    options = ("--steps", "9", "--temperature", "0.8", "--top-k", "30", "--top-p", "0.9", "--seed", "3")
    status, out, err = write(*options)
    wanted = attnviz.load("en/writer", root).write("The dog", 9, 0.8, top_k=30, top_p=0.9, seed=3)
    assert (status, out, err) == (0, wanted.translation + "\n", "")
    assert Trace.from_json(write(*options, "--json")[1]).target == wanted.target


def test_temperature_0_takes_the_most_probable_token(root, write):
    out = write("--steps", "9", "--temperature", "0", "--seed", "8", "--json")[1]
    trace = Trace.from_json(out)
    written = range(len(trace.source), len(trace.target))
    greedy = attnviz.load("en/writer", root).write("The dog", 9, 0)
    assert trace.target == greedy.target and len(written)


def test_a_full_context_is_said(write):
    status, out, err = write("--steps", "32", "--seed", "3")
    assert status == 0 and out.startswith("The dog")
    assert re.fullmatch(r"the context of en/writer is full after \d+ of 32 tokens\n", err)


@pytest.mark.parametrize(
    "options, message",
    [
        (("--temperature", "nan"), "temperature must be from 0 to 100; got nan"),
        (("--temperature", "-1"), "temperature must be from 0 to 100; got -1.0"),
        (("--temperature", "inf"), "temperature must be from 0 to 100; got inf"),
        (("--top-p", "0"), "top_p must be above 0 and at most 1; got 0.0"),
        (("--top-p", "nan"), "top_p must be above 0 and at most 1; got nan"),
        (("--steps", "1000000000"), "--steps must be at most 32, the tokens that en/writer reads; got 1000000000"),
        (("--seed", str(2**63)), f"seed must be a whole number of at least 0 and below 2^63; got {2**63}"),
    ],
)
def test_settings_out_of_range_are_refused(write, options, message):
    assert write(*options) == (2, "", f"python -m attnviz write: {message}\n")


@pytest.mark.parametrize("options", [("--steps", "0"), ("--steps", "2.5"), ("--top-k", "-1"), ("--seed", "x")])
def test_what_is_no_number_is_refused(write, options):
    status, out, err = write(*options)
    assert (status, out) == (2, "") and f"argument {options[0]}: must be a whole number of at least" in err


def test_a_model_that_translates_does_not_write(tmp_path, capsys):
    tiny.write_models(tmp_path)
    assert main(["write", "The dog", "--model", "en-fr/bahdanau", "--root", str(tmp_path)]) == 2
    assert "en-fr/bahdanau does not write on after a text; `trace` shows what it does" in capsys.readouterr().err


@pytest.mark.xdist_group("hf")
def test_a_model_of_the_transformers_library_writes_and_takes_its_chat_template(tmp_path, capsys):
    folder = families.write(tmp_path / "gpt2", "gpt2")
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}dog")
    assert main(["write", "The black", "--model", f"hf:{folder}", "--steps", "3", "--chat"]) == 0
    assert capsys.readouterr().out.startswith("user: The black dog")


def test_only_a_model_of_the_library_has_a_chat_template(root, capsys):
    assert main(["write", "The", "--model", "en/writer", "--root", str(root), "--chat"]) == 2
    assert "--chat is for models of the transformers library; en/writer has no chat template" in capsys.readouterr().err
