"""A training run that was stopped: its model says so everywhere, and the run can end with its best epoch so far."""

import json

import pytest
import tiny

import attnviz
from attnviz.__main__ import main
from attnviz.models import checkpoint_files
from attnviz.training import validation
from dashboard.markup import card as markup

NAME = "en-xx/bahdanau"


@pytest.fixture
def train(tmp_path):
    (tmp_path / "in.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in tiny.sentences(60, 1)))
    small = [word for setting in ("width=16", "embedding_width=16", "vocabulary=120") for word in ("--set", setting)]
    words = ["--pair", "en-xx", "--mechanism", "bahdanau", "--tsv", str(tmp_path / "in.tsv"), *small]
    return lambda *more: main(["train", *words, "--out", str(tmp_path / "out"), *more])


def stop_after(epochs, monkeypatch):
    report = validation.report

    def stopped(trainer, *others):
        if trainer.epoch == epochs:
            raise KeyboardInterrupt
        return report(trainer, *others)

    monkeypatch.setattr(validation, "report", stopped)


def test_a_stopped_run_is_unfinished_until_it_is_accepted(train, tmp_path, monkeypatch, capsys):
    root = tmp_path / "out"
    with monkeypatch.context() as patch:
        stop_after(2, patch)
        assert train("--epochs", "5") == 130
    state = "unfinished: 2 of 5 epochs"
    assert main(["models", "--root", str(root)]) == 0
    assert state in capsys.readouterr().out
    assert main(["models", "--root", str(root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["unfinished"] == {"epochs": 2, "of": 5}
    with pytest.warns(UserWarning, match=f"{NAME} is {state}; the same `train` command continues it"):
        attnviz.load(NAME, root)
    assert main(["trace", "The dog runs.", "--model", NAME, "--root", str(root)]) == 0
    assert f"{NAME} is {state}" in capsys.readouterr().err
    shown = markup.show(checkpoint_files.read_card(NAME, root))
    assert shown.endswith(f'</details><p class="notice">Training is {state}.</p>')  # seen without a click
    assert f"<dd>{state}. The same train command goes on with it; with --patience 0 it accepts" in shown
    assert train("--epochs", "5", "--patience", "0") == 0
    card = checkpoint_files.read_card(NAME, root)
    assert card["epochs"] == 2 and "--patience 0" in card["command"] and not checkpoint_files.unfinished(card)
    assert "unfinished" not in markup.show(card)


def test_a_run_ends_when_validation_no_longer_improves(train, tmp_path, monkeypatch):
    scores = iter([10.0, 30.0, 20.0, 30.0, 5.0, 90.0])
    validate = validation.validate

    def scripted(trainer, text, corpus):
        result = validate(trainer, text, corpus)
        return result | {validation.score_key(corpus): next(scores)}

    monkeypatch.setattr("attnviz.training.train.validate", scripted)
    assert train("--epochs", "6", "--patience", "3") == 0
    card = checkpoint_files.read_card(NAME, tmp_path / "out")
    assert [epoch["epoch"] for epoch in card["history"]] == [1, 2, 3, 4, 5] and card["best"]["epoch"] == 2


def test_patience_must_be_a_number(train, capsys):
    with pytest.raises(SystemExit):
        train("--patience", "-1")
    assert "argument --patience: " in capsys.readouterr().err
