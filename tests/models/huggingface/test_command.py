"""Models for the transformers library on the command line."""

import pytest

from attnviz.__main__ import main
from attnviz.trace import Trace

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT, TARGET = "The black dogs are running.", "Le chien noir court."


def test_names(folder, load):
    model = load("bert")
    assert model.name == model.title == model.trace(TEXT).model == f"hf:{folder('bert')}" and model.mechanism == "bert"


def run(capsys, *arguments):
    capsys.readouterr()  # what the library says when it writes a model is not asked for
    status = main(list(map(str, arguments)))
    return (status, *capsys.readouterr())


def test_on_the_command_line_a_reader(folder, load, capsys):
    status, out, err = run(capsys, "trace", TEXT, "--model", f"hf:{folder('gpt2')}")
    trace = load("gpt2").trace(TEXT)
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[:2] == ["attention: decoder, layer 2 (the last; layers count from 0), mean of 2 heads", ""]
    assert lines[2].split() == "step token attends most to weight".split()
    weights = trace.map("decoder").weights.mean(0)
    assert [line.split()[-1] for line in lines[3:]] == [f"{row.max():.2f}" for row in weights]
    assert run(capsys, "trace", TEXT, "--model", f"hf:{folder('gpt2')}", "--target", "x") == (
        2,
        "",
        f"python -m attnviz trace: hf:{folder('gpt2')} reads a text and produces none, "
        "so it takes no target and no beam\n",
    )


def test_on_the_command_line_a_writer(folder, load, capsys, tmp_path):
    wanted = ("trace", TEXT, "--model", f"hf:{folder('bart')}", "--target", TARGET)
    status, out, err = run(capsys, *wanted)
    assert (status, err) == (0, "") and out.startswith(f"target: {TARGET}\nlog-probability: ")
    assert "\nattention: cross, layer 1 (the last; layers count from 0), mean of 2 heads\n" in out
    assert run(capsys, *wanted, "--json", tmp_path / "trace.json") == (0, "", f"{tmp_path / 'trace.json'} is written\n")
    assert Trace.from_json((tmp_path / "trace.json").read_text(encoding="utf-8")) == load("bart").trace(TEXT, TARGET)
