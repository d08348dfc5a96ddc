"""`python -m attnviz models` with cards that say odd things: the table stands, whatever is in them."""

import other_pairs
import pytest
import tiny

from attnviz.__main__ import main
from attnviz.cli import train_settings
from attnviz.data import corpora
from attnviz.models import checkpoint_files


@pytest.mark.parametrize(
    "card",
    [
        {"scores": []},
        {"scores": {"test_2016_flickr": 3}},
        {"scores": {"test_2016_flickr": {"bleu_lc": "high"}}},
        {"parameters": "many"},
        {"parameters": None},
        {"parameters": [1], "scores": None},
        {},
    ],
)
def test_a_card_that_says_odd_things(tmp_path, capsys, card):
    root = tiny.write_models(tmp_path)
    checkpoint_files.write_json(root / "en-fr" / "bahdanau" / "card.json", card)
    assert main(["models", "--root", str(root)]) == 0
    out, err = capsys.readouterr()
    line = next(line for line in out.splitlines() if line.startswith("en-fr/bahdanau"))
    assert err == "" and "–" in line and line.endswith("none")
    assert "1,234" in out and "1.50" in out  # the others are as they were


@pytest.mark.parametrize("beam, suffix", [(1, ", greedy"), (5, ""), (None, "")])
def test_a_score_says_whether_it_is_greedy(tmp_path, capsys, beam, suffix):
    root = tiny.write_models(tmp_path)
    card = {"scores": {"test_2016_flickr": {"bleu_lc": 1.5, "beam": beam}}}
    checkpoint_files.write_json(root / "en-fr" / "bahdanau" / "card.json", card)
    assert main(["models", "--root", str(root)]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("en-fr/bahdanau"))
    assert f"1.50 bleu_lc, test_2016_flickr{suffix} " in line


@pytest.mark.parametrize("reference, noted", [("私は犬だ。", True), ("私 は 犬 だ 。", False)])
def test_japanese_references_without_spaces_are_noted(tmp_path, capsys, reference, noted):
    root = other_pairs.write(tmp_path / "checkpoints")
    for name, text in (("source", "I am a dog."), ("reference", reference)):
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    command = [
        "evaluate",
        "--model",
        "en-ja/bahdanau",
        "--root",
        root,
        "--source",
        tmp_path / "source",
        "--reference",
        tmp_path / "reference",
    ]
    assert main(list(map(str, command))) == 0
    captured = capsys.readouterr()
    assert ("the references have no spaces, so BLEU on given morphemes cannot be computed" in captured.err) == noted
    assert ("BLEU, given morphemes" in captured.out) != noted and "BLEU, characters" in captured.out


def test_training_does_not_write_over_a_finished_model(tmp_path, capsys, monkeypatch):
    root = tiny.write_models(tmp_path / "checkpoints")
    monkeypatch.setattr(checkpoint_files, "ROOT", root)
    monkeypatch.chdir(tmp_path)
    before = checkpoint_files.fingerprint("en-fr/bahdanau", root)
    command = ["train", "--pair", "en-fr", "--mechanism", "bahdanau", "--data", str(tmp_path / "nothing")]
    monkeypatch.setattr(train_settings, "read_corpus", lambda args: corpora.Corpus([], [("a", "b")], {}, {}))
    went = []
    monkeypatch.setattr(
        "attnviz.training.train.train",
        lambda config, corpus, out, *others, **more: went.append(out) or (_ for _ in ()).throw(ValueError("stop")),
    )
    assert main(command) == 2
    assert (
        f"{root / 'en-fr/bahdanau'} holds a finished model; training in trained/en-fr/bahdanau instead"
        in capsys.readouterr().err
    )
    assert main([*command, "--out", str(root)]) == 2
    assert "holds a finished model; choose another --out, or replace it with --restart" in capsys.readouterr().err
    assert main([*command, "--restart"]) == 2
    assert [str(out) for out in went] == ["trained", str(root)]
    assert checkpoint_files.fingerprint("en-fr/bahdanau", root) == before
