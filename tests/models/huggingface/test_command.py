"""Models for the transformers library on the command line."""

import json

import numpy as np
import pytest

from attnviz import select
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


def test_alignments_and_scores_of_a_model_that_translates(folder, load, capsys, tmp_path):
    """Links are those of its own forced trace; a model that translates nothing is told so."""
    name, files = f"hf:{folder('marian')}", (tmp_path / "s.txt", tmp_path / "t.txt")
    for file, text in zip(files, ("The black dog", "Le chien noir")):
        file.write_text(f"{text}\n")
    source, target = files
    status, out, _ = run(
        capsys, "align", "--model", name, "--source-file", source, "--target-file", target, "--export", "moses"
    )
    grid = select.select(load("marian").trace("The black dog", "Le chien noir"), "cross", 0, words=True, special=False)
    links = {tuple(map(int, link.split("-"))) for link in out.split()}
    assert status == 0 and {target for _, target in links} <= {0, 1, 2} and len(links) == len(grid.queries)
    status, out, _ = run(capsys, "evaluate", "--model", name, "--source", source, "--reference", target, "--json")
    scored, trace = json.loads(out), load("marian").trace("The black dog")
    assert status == 0 and scored["sentences"] == 1 and scored["model"] == name and "bleu_signature" in scored
    cross = [m.weights for m in trace.maps if m.kind == "cross"]
    assert scored["max_weight"] == pytest.approx(np.mean([weights.max(-1).mean() for weights in cross]), abs=1e-5)
    prefixed = ("--prefix", "translate English to French: ", "--export", "moses")
    status, out, _ = run(capsys, "align", "--model", name, "--source-file", source, "--target-file", target, *prefixed)
    links = [tuple(map(int, link.split("-"))) for link in out.split()]
    assert status == 0 and {target for _, target in links} == {0, 1, 2} and {source for source, _ in links} <= {0, 1, 2}
    for command in ("align", "evaluate"):
        given = ("--source-file", source, "--target-file", target, "--export", "moses")
        given = given if command == "align" else ("--source", source, "--reference", target)
        status, _, err = run(capsys, command, "--model", f"hf:{folder('bert')}", *given)
        assert status == 2 and ("no attention from a target to a source" in err or "produces no translation" in err)
