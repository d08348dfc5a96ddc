"""`python -m attnviz train`: errors, one line each."""

import gzip
import os

import pytest
import tiny

from attnviz.__main__ import main
from attnviz.cli.train import STYLES
from attnviz.mechanisms import ALL
from attnviz.models import machine

TRAIN = ("train", "--pair", "en-fr", "--mechanism", "bahdanau")
SEE = "see python -m attnviz train --help"


@pytest.mark.parametrize(
    "options, message",
    [
        (("--source-file", "mine.en"), "--source-file and --target-file must be given together"),
        (
            ("--tsv", "mine.tsv", "--source-file", "mine.en", "--target-file", "mine.en"),
            "give only one of --tsv, --source-file with --target-file, and --data",
        ),
        (("--tsv", "mine.tsv", "--data", "."), "give only one of --tsv, --source-file with --target-file, and --data"),
        (
            ("--data", ".", "--val-size", "3"),
            "--val-size and --style are for your own files; the corpora of a pair have their own",
        ),
        (
            ("--tsv", "mine.tsv", "--repeat", "2"),
            "--repeat is for a pair with everyday sentences; your own files are read once a pass",
        ),
        (("--tsv", "nowhere"), "cannot read nowhere: No such file or directory"),
        (("--tsv", "mine.en"), "mine.en must have a source and its translation on at least one line; got none"),
        (
            ("--source-file", "mine.en", "--target-file", "short"),
            "mine.en has 60 lines and short has 1; they must be aligned",
        ),
        (("--tsv", "latin"), "latin must be UTF-8 text; got byte 0xe9 at 5"),
        (
            ("--tsv", "cut"),
            "cut is a damaged gzip file: Compressed file ended before the end-of-stream marker was reached",
        ),
        (
            ("--tsv", "mine.tsv", "--val-size", "60"),
            "validation and training need at least one sentence pair each; got 60 pairs, 60 of them for validation",
        ),
    ],
)
def test_errors_of_files(train, mine, monkeypatch, options, message):
    monkeypatch.chdir(mine)
    (mine / "short").write_text("un\n")
    (mine / "latin").write_bytes(b"a\tcaf\xe9\n")
    (mine / "cut").write_bytes(gzip.compress(b"a\tb\n")[:-6])
    assert train(*options) == (2, "", f"python -m attnviz train: {message}\n")
    assert not (mine / "out").exists()


@pytest.mark.parametrize(
    "command, message",
    [
        (
            ("train", "--pair", "enfr", "--mechanism", "bahdanau"),
            "argument --pair: must be two languages, such as en-fr, or reverse or copy or sort or shift or piglatin "
            f"or dates or sst2 or en or shakespeare; got 'enfr'; {SEE}",
        ),
        (
            ("train", "--pair", "en-fr", "--mechanism", "telepathy", "--data", "/nowhere"),
            "unknown mechanism 'telepathy'; for your own set ATTNVIZ_MECHANISMS=FILE.py:NAME; else "
            f"choose one of {', '.join(ALL)}",
        ),
        (
            ("train", "--pair", "en-fr", "--mechanism", "mine.py", "--data", "/nowhere"),
            "name the mechanism in the file too, as mine.py:NAME",
        ),
        (
            (*TRAIN, "--data", "/nowhere"),
            "no train.en or train.en.gz in /nowhere/multi30k; point --data at the folder that holds the "
            "corpora, or fetch them: python -m attnviz download",
        ),
        (TRAIN, "there is no data folder; give it with --data DIR or set ATTNVIZ_DATA"),
        (
            ("train", "--pair", "xx-yy", "--mechanism", "bahdanau", "--data", "/nowhere"),
            "there are no corpora for xx-yy; choose one of en-fr, en-de, en-ja, reverse, copy, sort, shift, piglatin, "
            "dates, sst2, en, shakespeare, or give files of your own",
        ),
        ((*TRAIN, "--data", "/nowhere", "--epochs", "0"), "epochs must be from 1 to 1,000,000; got 0"),
        ((*TRAIN, "--set", f"epochs={10**20}"), f"epochs must be from 1 to 1,000,000; got {10**20}"),
        (
            (*TRAIN, "--threads", "100000"),
            f"argument --threads: must be at most {max(64, os.cpu_count() or 1)}; got 100000; {SEE}",
        ),
        ((*TRAIN, "--threads", "0"), f"argument --threads: must be a whole number of at least 1; got '0'; {SEE}"),
        ((*TRAIN, "--limit", "x"), f"argument --limit: must be a whole number of at least 1; got 'x'; {SEE}"),
        (
            (*TRAIN, "--set", "width"),
            f"argument --set: must be NAME=VALUE, such as attention_dropout=0.1; got 'width'; {SEE}",
        ),
        (
            (*TRAIN, "--set", "=3"),
            f"argument --set: must be NAME=VALUE, such as attention_dropout=0.1; got '=3'; {SEE}",
        ),
        ((*TRAIN, "--set", "vocabulary=1.5"), "vocabulary must be a whole number; got 1.5"),
        ((*TRAIN, "--set", "learning_rate=fast"), "learning_rate must be a number; got 'fast'"),
        ((*TRAIN, "--set", "learning_rate=nan"), "learning_rate must be positive and finite; got nan"),
        ((*TRAIN, "--set", "warmup=-1"), "warmup must be at least 0 and finite; got -1"),
        ((*TRAIN, "--set", "epochs=true"), "epochs must be a whole number; got True"),
        (
            (*TRAIN, "--set", "width=true"),
            "bahdanau cannot be built with {'dropout': 0.3, 'width': True}: width must not be true or false; got True",
        ),
        (
            (*TRAIN[:-1], "transformer", "--set", "norm_first=no"),
            "transformer cannot be built with {'width': 192, 'hidden': 768, 'layers': 3, "
            "'heads': 4, 'dropout': 0.3, 'norm_first': 'no'}: norm_first must be true or false; got 'no'",
        ),
        ((*TRAIN, "--set", "beta2=1"), "beta2 must be at least 0 and below 1; got 1"),
        ((*TRAIN, "--set", "label_smoothing=2"), "label_smoothing must be at least 0 and below 1; got 2"),
        (
            (*TRAIN, "--seed", "99999999999999999999"),
            "seed must be at least 0 and below 2^63; got 99999999999999999999",
        ),
        (
            (*TRAIN, "--set", "attention_dropout=1.5"),
            "bahdanau cannot be built with {'dropout': 0.3, 'attention_dropout': 1.5}: "
            "attention_dropout must be at least 0 and below 1; got 1.5",
        ),
        (
            (*TRAIN, "--set", "reach=3"),
            "reach is neither an option of bahdanau (width, embedding_width, dropout, attention_dropout, cell) "
            "nor a training setting (epochs, batch_tokens, learning_rate, warmup, label_smoothing, weight_decay, clip, "
            "beta2, decay, muon, average, consistency, word_dropout, piece_dropout, augment, ngrams, vocabulary, seed)",
        ),
        (
            (*TRAIN, "--start", "/nowhere"),
            "--start must be the folder of a checkpoint, such as checkpoints/en-fr/bahdanau; got /nowhere",
        ),
        ((*TRAIN, "--out", __file__), f"--out must be a folder; got the file {__file__}"),
        (
            (*TRAIN, "--set", "cell=elm"),
            "bahdanau cannot be built with {'dropout': 0.3, 'cell': 'elm'}: cell must be one of gru, lstm; got 'elm'",
        ),
    ],
)
def test_errors(capsys, command, message):
    try:
        status = main(list(command))
    except SystemExit as stop:
        status = stop.code
    assert (status, *capsys.readouterr()) == (2, "", f"python -m attnviz train: {message}\n")


def test_damaged_data(train, tmp_path):
    path = tiny.write_data(tmp_path) / "multi30k" / "train.fr.gz"
    path.write_bytes(path.read_bytes()[:-12])
    status, _, err = train("--data", tmp_path)
    assert status == 2 and err.startswith(f"python -m attnviz train: {path} is a damaged gzip file: ")
    path.write_bytes(b"caf\xe9\n")
    assert train("--data", tmp_path) == (
        2,
        "",
        f"python -m attnviz train: {path} must be UTF-8 text; got byte 0xe9 at 3\n",
    )


def test_the_parser_knows_the_styles():
    from attnviz.data import styles

    assert {*STYLES, *styles.OF_TEXTS} == styles.STYLES.keys()


@pytest.mark.parametrize("size", ["99999999999999999999", "10000000", "16000", "-1"])
@pytest.mark.parametrize("mechanism", ["bahdanau", "transformer"])
def test_a_model_too_large_for_the_machine_is_refused_in_a_sentence(size, mechanism, capsys):
    assert main(["train", "--pair", "en-fr", "--mechanism", mechanism, "--data", "x", "--set", f"width={size}"]) == 2
    error = capsys.readouterr().err
    why = "width must be from 1 to 16,384; got -1" if size == "-1" else machine.memory_in_words()
    assert "width" in error and why in error
    assert len(error) < 400 and "C++" not in error and "\n" not in error.strip()


@pytest.mark.parametrize("setting", ["vocabulary", "batch_tokens"])
@pytest.mark.parametrize("size", ["99999999999999999999", "10000000"])
def test_a_vocabulary_and_a_batch_too_large_for_the_machine_are_refused_in_a_sentence(setting, size, capsys):
    command = ["train", "--pair", "en-fr", "--mechanism", "bahdanau", "--data", "x", "--set", f"{setting}={size}"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert machine.memory_in_words() in error or "vocabulary must be from 1 to 2,000,000" in error
    assert len(error) < 400 and "unpack" not in error
