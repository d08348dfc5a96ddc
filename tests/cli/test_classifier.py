"""`sst2` on the command line: trained, evaluated, traced, on sentences of one's own, and what it is not for."""

import gzip
import json
import re

import pytest
import tiny
from small_classifier import NAME, TRAIN

from attnviz.__main__ import main
from attnviz.data.tasks import LABELS
from attnviz.models import checkpoint_files
from attnviz.trace import Trace

SENTENCE = "The film isn't dull, it's LOVELY!"


def test_the_command_line(taught, reviews, tmp_path, capsys):
    def cli(*words):
        assert main([*words, "--root", str(taught)]) == 0
        return capsys.readouterr().out

    trace = cli("trace", SENTENCE, "--model", NAME).splitlines()
    assert trace[0].removeprefix("label: ") in LABELS and re.fullmatch(r"probability: [01]\.\d{3}", trace[1])
    assert trace[2] == "attention: encoder, layer 1 (the last; layers count from 0), mean of 2 heads"
    assert trace[4].split()[0] == "token"
    assert trace[5].split()[0] == "The" and trace[-1].split()[0] == "<eos>"
    assert Trace.from_json(cli("trace", SENTENCE, "--model", NAME, "--json", "-")).translation in LABELS
    cli("trace", SENTENCE, "--model", NAME, "--html", str(tmp_path / "page.html"))
    assert b"self-attention" in (tmp_path / "page.html").read_bytes()
    dev = str(reviews / "sst2" / "dev.tsv")
    figures = json.loads(cli("evaluate", "--model", NAME, "--source", dev, "--json"))
    assert figures["sentences"] == 40 and sum(sum(row.values()) for row in figures["confusion"].values()) == 40
    shown = cli("evaluate", "--model", NAME, "--source", dev)
    assert f"{figures['accuracy']:.2f}%" in shown and "predicted positive" in shown
    assert re.search(rf"{NAME} .* {figures['accuracy']:.2f} accuracy, dev +none", cli("models"))


@pytest.mark.parametrize(
    "lines, problem",
    [
        ("good\t1\nbad\n", "2 must be a sentence, a tab, and its label, 0 (negative) or 1 (positive); got 'bad'"),
        (
            "good\t1\n\nbad\t2\n",
            "3 must be a sentence, a tab, and its label, 0 (negative) or 1 (positive); got 'bad\\t2'",
        ),
        ("good\tyes\n", "1 must be a sentence, a tab, and its label, 0 (negative) or 1 (positive); got 'good\\tyes'"),
        ("\t1\n", "1 must be a sentence, a tab, and its label, 0 (negative) or 1 (positive); got '\\t1'"),
    ],
)
def test_files_without_labels(taught, reviews, tmp_path, capsys, lines, problem):
    path = tiny.write_reviews(tmp_path) / "sst2" / "train.tsv.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    for command in (
        [*TRAIN, "--data", str(tmp_path), "--out", str(tmp_path / "out")],
        ["evaluate", "--model", NAME, "--root", str(taught), "--source", str(path)],
    ):
        assert main(command) == 2
        assert capsys.readouterr() == ("", f"python -m attnviz {command[0]}: {path} line {problem}\n")


@pytest.mark.parametrize(
    "command, message",
    [
        (
            ["train", "--pair", "sst2", "--mechanism", "bahdanau"],
            "bahdanau is not for sst2; choose one of self-attention",
        ),
        (
            ["train", "--pair", "en-fr", "--mechanism", "self-attention"],
            "self-attention is not for en-fr; choose one of fixed-context, ",
        ),
        (
            [*TRAIN, "--source-file", "a", "--target-file", "b"],
            "sst2 needs sentences with their labels in one file; give it with --tsv",
        ),
        (
            ["trace", "a", "--model", NAME, "--beam", "2"],
            f"{NAME} is a classifier; --target and --beam are for models that translate",
        ),
        (
            ["evaluate", "--model", NAME, "--source", "a", "--reference", "b"],
            f"{NAME} is a classifier, and its labels are in --source; ",
        ),
        (
            ["evaluate", "--model", NAME, "--source", "empty.txt"],
            "empty.txt must hold at least one sentence with its label; got none",
        ),
        (["align", "--model", NAME], f"{NAME} is a classifier; only models that translate have word alignments"),
    ],
)
def test_what_a_classifier_is_not_for(taught, tmp_path, monkeypatch, capsys, command, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("")
    more = [] if command[0] == "train" else ["--root", str(taught)]
    assert main([*command, *more]) == 2
    assert capsys.readouterr().err.startswith(f"python -m attnviz {command[0]}: {message}")


def test_sentences_of_ones_own(reviews, tmp_path, capsys):
    (tmp_path / "mine.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in tiny.reviews(60, 3)), encoding="utf-8")
    assert main([*TRAIN, "--tsv", str(tmp_path / "mine.tsv"), "--val-size", "9", "--out", str(tmp_path / "out")]) == 0
    assert checkpoint_files.read_card(NAME, tmp_path / "out")["scores"]["dev"]["sentences"] == 9
    assert "[" in capsys.readouterr().out  # each epoch shows a sentence, its label, and where the label looked most
