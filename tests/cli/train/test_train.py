"""`python -m attnviz train`: on the corpora of a pair and on sentences of one's own; the card, the command on it, errors."""

import gzip
import json
import re
from argparse import Namespace
from dataclasses import replace
from functools import partial

import pytest
import tiny

import attnviz
from attnviz.__main__ import main
from attnviz.cli.train import STYLES, settings
from attnviz.cli.train.corpus import warn_about_incomplete_lines
from attnviz.data import corpora
from attnviz.data.tasks import TASKS, reverse
from attnviz.models import checkpoints
from attnviz.training import recipes

SMALL = [
    "--epochs",
    "1",
    "--batch-tokens",
    "200",
    "--set",
    "width=16",
    "--set",
    "embedding_width=16",
    "--set",
    "vocabulary=120",
]
TRAIN = ("train", "--pair", "en-fr", "--mechanism", "bahdanau")
SEE = "see python -m attnviz train --help"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No change to torch's threads, no data but what a test gives."""
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)
    monkeypatch.delenv("ATTNVIZ_DATA", raising=False)


@pytest.fixture
def train(tmp_path, capsys):
    """Run `train` on the options given -> status, output, and errors without the bars."""

    def run(*options, pair="en-fr", mechanism="bahdanau"):
        command = ["train", "--pair", pair, "--mechanism", mechanism, "--out", str(tmp_path / "out"), *SMALL]
        try:
            status = main([*command, *map(str, options)])
        except SystemExit as stop:  # argparse leaves this way
            status = stop.code
        captured = capsys.readouterr()
        said = [line for line in captured.err.splitlines(keepends=True) if line.startswith("python -m attnviz")]
        return status, captured.out, "".join(said)

    return run


@pytest.fixture
def mine(tmp_path):
    """A person's own sentences: two files, one of them gzipped, and both in one."""
    pairs = tiny.sentences(60, 9)
    (tmp_path / "mine.en").write_text("".join(f"{a}\n" for a, _ in pairs), encoding="utf-8")
    (tmp_path / "mine.fr.gz").write_bytes(gzip.compress("".join(f"{b}\n" for _, b in pairs).encode()))
    (tmp_path / "mine.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return tmp_path


def card_of(tmp_path, name="en-fr/bahdanau"):
    return checkpoints.read_json(tmp_path / "out" / name / "card.json")


def test_a_card_says_what_its_run_began_with(train, data, tmp_path, monkeypatch):
    assert train("--data", data, "--limit", 80)[0] == 0
    folder, two = tmp_path / "out" / "en-fr" / "bahdanau", tmp_path / "two"
    assert train("--data", data, "--limit", 80, "--start", folder, "--out", two)[0] == 0
    first, second = card_of(tmp_path), checkpoints.read_json(two / "en-fr" / "bahdanau" / "card.json")
    curve = [{key: one[key] for key in ("epoch", "val_bleu_lc", "val_loss", "train_loss")} for one in first["history"]]
    kept = {key: first[key] for key in ("command", "settings", "data", "epochs", "seconds", "weights_sha256")}
    assert second["start"] == kept | {"history": curve}
    assert second["settings"]["start"] == first["weights_sha256"] and "start" not in first
    assert "--start en-fr/bahdanau" in second["command"] and str(tmp_path) not in second["command"]
    monkeypatch.chdir(two / "en-fr")
    assert train("--data", data, "--limit", 80, "--start", "bahdanau", "--out", tmp_path / "three")[0] == 0
    third = checkpoints.read_json(tmp_path / "three" / "en-fr" / "bahdanau" / "card.json")
    assert third["start"]["start"] == second["start"] and "--start en-fr/bahdanau" in third["command"]


def test_the_corpora_of_a_pair(train, data, tmp_path, monkeypatch):
    """Trained, started again when finished, refused with other settings, then from the start; data from the environment."""
    monkeypatch.setenv("ATTNVIZ_DATA", str(data))
    options = ("--seed", 5, "--threads", 1, "--limit", 80, "--set", "cell=lstm", "--set", "dropout=0.2")
    status, out, err = train(*options)
    folder = tmp_path / "out" / "en-fr" / "bahdanau"
    assert status == 0 and re.fullmatch(rf"{folder} is ready: val_bleu_lc [\d.]+ in epoch 1", out.splitlines()[-1])
    card = card_of(tmp_path)
    assert (
        card["seed"] == 5
        and card["settings"]["epochs"] == 1
        and len(card["data"]) == 9
        and card["training_pairs"] == 80
    )
    assert card["settings"]["options"] == {"dropout": 0.2, "width": 16, "embedding_width": 16, "cell": "lstm"}
    assert card["settings"]["vocabulary"] == 120 and card["best"]["val_bleu_lc"] == card["history"][0]["val_bleu_lc"]
    assert card["command"] == (
        "python -m attnviz train --pair en-fr --mechanism bahdanau --data DIR --limit 80 --epochs 1 --batch-tokens 200 "
        "--seed 5 --threads 1 --set width=16 --set embedding_width=16 --set vocabulary=120 --set cell=lstm --set dropout=0.2"
    )
    weights = checkpoints.fingerprint("en-fr/bahdanau", tmp_path / "out")
    (folder / "card.json").unlink()
    assert train(*options)[0] == 0 and card_of(tmp_path)
    assert checkpoints.fingerprint("en-fr/bahdanau", tmp_path / "out") == weights
    status, _, err = train("--seed", 6)
    assert status == 2 and err.splitlines()[-1] == (
        f"python -m attnviz train: {folder} holds a training run with different settings (seed 5, now 6; options {card['settings']['options']}, now "
        "{'dropout': 0.3, 'width': 16, 'embedding_width': 16}); give the same again, use --restart, or choose another --out"
    )
    assert train("--seed", 6, "--restart")[0] == 0 and card_of(tmp_path)["seed"] == 6


def test_progress_is_shown_with_a_sentence(train, data):
    status, out, _ = train("--data", data, "--epochs", 2)
    lines = out.splitlines()
    first = lines.index(next(line for line in lines if line.startswith("epoch 1 of 2: ")))
    assert re.fullmatch(r"epoch 1 of 2: val_bleu_lc [\d.]+, val_loss [\d.]+, train_loss [\d.]+, \d+ s", lines[first])
    assert status == 0 and lines[first + 1].startswith("  The ") and re.search(r"\S+ \[\S+\]", lines[first + 3])
    assert lines[first + 4].startswith("epoch 2 of 2: ") and lines[first + 5] == lines[first + 1]


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


def test_english_to_japanese(train, tmp_path):
    (tmp_path / "tanaka_enja").mkdir()
    for split, count in (("train", 30), ("dev", 3), ("test", 2)):
        (tmp_path / "tanaka_enja" / f"{split}.en").write_text("do n't run .\nhe 's here .\n" * count)
        (tmp_path / "tanaka_enja" / f"{split}.ja").write_text(
            "走 る な 。\n彼 は ここ に い る 。\n" * count, encoding="utf-8"
        )
    status, out, _ = train("--data", tmp_path, pair="en-ja")
    card = card_of(tmp_path, "en-ja/bahdanau")
    assert status == 0 and "val_bleu_morphemes" in out and card["best"]["val_bleu_morphemes"] >= 0
    translator = attnviz.load("en-ja/bahdanau", tmp_path / "out")
    assert translator.trace("He's here.").source[0].text == "He's"
    forced = translator.trace("He's here.", "彼はここにいる。")
    assert [token.text for token in forced.target[:-1]] and "".join(
        t.text for t in forced.target[:-1]
    ) == "彼はここにいる。"


def test_a_post_norm_transformer(mine, capsys):
    """From the README's own words to a model that translates; the command on the card says the same."""
    chosen = ["--set", "norm_first=false", "--set", "activation_dropout=0.1", "--set", "beta2=0.98"]
    small = [
        word
        for name, value in (tiny.WIDTHS["transformer"] | {"vocabulary": 120}).items()
        for word in ("--set", f"{name}={value}")
    ]
    assert (
        main(
            [
                "train",
                "--pair",
                "en-fr",
                "--mechanism",
                "transformer",
                "--tsv",
                str(mine / "mine.tsv"),
                "--epochs",
                "1",
                "--out",
                str(mine / "out"),
                *small,
                *chosen,
            ]
        )
        == 0
    )
    card = card_of(mine, "en-fr/transformer")
    assert (
        card["options"]["norm_first"] is False
        and card["settings"]["beta2"] == 0.98
        and card["command"].endswith(" ".join(chosen))
    )
    model = attnviz.load("en-fr/transformer", mine / "out")
    assert not model.model.encoder[0].norm_first and model.trace("The dog runs.").target


def test_reverse_needs_no_data(train, tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "reverse", replace(TASKS["reverse"], read=partial(reverse.read, count=200)))
    status, out, _ = train(pair="reverse")
    card = card_of(tmp_path, "reverse/bahdanau")
    assert status == 0 and "val_exact_match" in out and card["training_pairs"] == 185
    assert "--data" not in card["command"] and list(card["data"]) == ["generated, seed 1"]


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
            "of 60 pairs of sentences at least one must be for validation and one for training; got 60 for validation",
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
            f"argument --pair: must be two languages, such as en-fr, or reverse or sst2; got 'enfr'; {SEE}",
        ),
        (
            ("train", "--pair", "en-fr", "--mechanism", "telepathy", "--data", "/nowhere"),
            f"unknown mechanism 'telepathy'; choose one of {', '.join(recipes.RECIPES)}",
        ),
        (
            (*TRAIN, "--data", "/nowhere"),
            "no train.en or train.en.gz in /nowhere/multi30k; point --data at the folder that holds the "
            "corpora, or fetch them: python -m attnviz download",
        ),
        (TRAIN, "there is no data folder; give it with --data DIR or set ATTNVIZ_DATA"),
        (
            ("train", "--pair", "xx-yy", "--mechanism", "bahdanau", "--data", "/nowhere"),
            "there are no corpora for xx-yy; choose one of en-fr, en-de, en-ja, reverse, sst2, or give files of your own",
        ),
        ((*TRAIN, "--data", "/nowhere", "--epochs", "0"), "epochs must be positive and finite; got 0"),
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
            "nor a training setting (epochs, batch_tokens, learning_rate, warmup, label_smoothing, weight_decay, clip, beta2, average, "
            "consistency, word_dropout, piece_dropout, ngrams, vocabulary, seed)",
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
    said = capsys.readouterr().err
    assert (
        f"2 of 62 lines are left out because the source or the translation is missing; the first is line 1 of {path}\n"
        in said
    )
    assert "validation has only 12 sentences, so the choice of the best epoch is partly chance" in said
    assert card_of(mine, "xx-yy/bahdanau")["scores"]["val"]["sentences"] == 12


def test_what_is_left_out_is_said(tmp_path, capsys):
    warn_about_incomplete_lines([("a", "b"), ("", ""), ("c", ""), ("", "d")], tmp_path / "x.tsv")
    said = "2 of 3 lines are left out because the source or the translation is missing; the first is line 3 of"
    assert capsys.readouterr().err == f"{said} {tmp_path / 'x.tsv'}\n"
    warn_about_incomplete_lines([("a", "b"), ("", "")], tmp_path)
    assert capsys.readouterr().err == ""


def test_a_second_mechanism_shares_the_vocabulary_of_the_first(train, mine):
    """Asked for another size, it is refused rather than ignored."""
    assert train("--tsv", mine / "mine.tsv")[0] == 0
    path = mine / "out" / "en-fr" / "tokenizer.json"
    size = checkpoints.read_config("en-fr/bahdanau", mine / "out").vocabulary
    status, out, _ = train("--tsv", mine / "mine.tsv", "--set", f"vocabulary={size}", mechanism="luong-dot")
    assert status == 0 and out.splitlines()[0] == f"{path} is used: {size} pieces, shared by all mechanisms of en-fr"
    assert train("--tsv", mine / "mine.tsv", "--set", "vocabulary=40", mechanism="luong-general") == (
        2,
        "",
        f"python -m attnviz train: {path} has {size} pieces, and all mechanisms of en-fr share it; leave vocabulary=40 "
        "out, or choose another --out\n",
    )


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

    assert set(STYLES) == styles.STYLES.keys()


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
    assert settings.for_corpus(args, corpora.Corpus([("a", "b")] * pairs, [], {}, {})) == expected
