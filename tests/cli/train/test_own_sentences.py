"""`python -m attnviz train` on sentences of one's own: files, lines that are left out, small corpora."""

import json
from argparse import Namespace

import pytest
from train_command import SMALL, card_of

import attnviz
from attnviz.__main__ import main
from attnviz.cli import train_settings
from attnviz.cli.train_settings import warn_about_incomplete_lines
from attnviz.data import corpora


@pytest.mark.parametrize("files", [("--source-file", "mine.en", "--target-file", "mine.fr.gz"), ("--tsv", "mine.tsv")])
def test_sentences_of_ones_own(train, mine, files):
    paths = [word if word.startswith("-") else mine / word for word in files]
    status, out, err = train(*paths, "--val-size", 7, pair="xx-yy")
    card = card_of(mine, "xx-yy/bahdanau")
    assert status == 0 and card["training_pairs"] <= 53 and card["scores"]["val"]["sentences"] == 7
    assert list(card["data"]) == [word for word in files if not word.startswith("-")]
    assert f" --pair xx-yy --mechanism bahdanau {' '.join(files)} --val-size 7 --epochs 1 " in card["command"]
    assert str(mine) not in json.dumps(card)
    assert attnviz.load("xx-yy/bahdanau", mine / "out").trace("The black dog runs.").source


def test_own_files_may_be_symbols(train, tmp_path):
    (tmp_path / "up.tsv").write_text("".join(f"{a}{b}\t{b}{a}\n" for a in "abcdef" for b in "abcdef"))
    status, *_ = train("--tsv", tmp_path / "up.tsv", "--style", "symbols", pair="up-dn")
    card = card_of(tmp_path, "up-dn/bahdanau")
    assert status == 0 and "val_exact_match" in card["best"] and "--style symbols" in card["command"]
    assert attnviz.load("up-dn/bahdanau", tmp_path / "out").trace("ab").source[1].text == "b"


def test_lines_without_a_translation_and_few_for_validation_are_said(mine, capsys):
    path = mine / "mine.tsv"
    path.write_text("no tab\n\n" + path.read_text() + "\talone\n")
    assert (
        main(
            [
                "train",
                "--pair",
                "xx-yy",
                "--mechanism",
                "bahdanau",
                "--out",
                str(mine / "out"),
                *SMALL,
                "--tsv",
                str(path),
            ]
        )
        == 0
    )
    printed = capsys.readouterr().err
    assert (
        f"2 of 62 lines are left out because the source or the translation is missing; the first is line 1 of {path}\n"
        in printed
    )
    assert "validation has only 12 sentences, so the choice of the best epoch is partly chance" in printed
    assert card_of(mine, "xx-yy/bahdanau")["scores"]["val"]["sentences"] == 12


def test_what_is_left_out_is_said(tmp_path, capsys):
    warn_about_incomplete_lines([("a", "b"), ("", ""), ("c", ""), ("", "d")], tmp_path / "x.tsv")
    warning = "2 of 3 lines are left out because the source or the translation is missing; the first is line 3 of"
    assert capsys.readouterr().err == f"{warning} {tmp_path / 'x.tsv'}\n"
    warn_about_incomplete_lines([("a", "b"), ("", "")], tmp_path)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "own, pairs, expected",
    [
        (True, 9_999, {"batch_tokens": 500, "epochs": 60}),
        (True, 10_000, {}),
        (False, 100, {}),
    ],
)
def test_a_few_sentences_of_ones_own_get_smaller_batches_and_more_epochs(own, pairs, expected):
    args = Namespace(tsv="x" if own else None, source_file=None, target_file=None, mechanism="bahdanau")
    assert train_settings.changes_for_corpus(args, corpora.Corpus([("a", "b")] * pairs, [], {}, {})) == expected
