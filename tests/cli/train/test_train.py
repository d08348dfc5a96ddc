"""`python -m attnviz train` on the corpora of a pair: the card, and the command on it."""

import re
from dataclasses import replace
from functools import partial

import tiny
from train_command import card_of

import attnviz
from attnviz.__main__ import main
from attnviz.data import tasks
from attnviz.data.tasks import TASKS
from attnviz.models import checkpoint_files


def test_a_card_says_what_its_run_began_with(train, data, tmp_path, monkeypatch):
    assert train("--data", data, "--limit", 80)[0] == 0
    folder, two = tmp_path / "out" / "en-fr" / "bahdanau", tmp_path / "two"
    assert train("--data", data, "--limit", 80, "--start", folder, "--out", two)[0] == 0
    first, second = card_of(tmp_path), checkpoint_files.read_json(two / "en-fr" / "bahdanau" / "card.json")
    curve = [
        {key: epoch[key] for key in ("epoch", "val_bleu_lc", "val_loss", "train_loss")} for epoch in first["history"]
    ]
    start = {key: first[key] for key in ("command", "settings", "data", "epochs", "seconds", "weights_sha256")}
    assert second["start"] == start | {"history": curve}
    assert second["settings"]["start"] == first["weights_sha256"] and "start" not in first
    assert "--start en-fr/bahdanau" in second["command"] and str(tmp_path) not in second["command"]
    monkeypatch.chdir(two / "en-fr")
    assert train("--data", data, "--limit", 80, "--start", "bahdanau", "--out", tmp_path / "three")[0] == 0
    third = checkpoint_files.read_json(tmp_path / "three" / "en-fr" / "bahdanau" / "card.json")
    assert third["start"]["start"] == second["start"] and "--start en-fr/bahdanau" in third["command"]


def test_the_corpora_of_a_pair(train, data, tmp_path, monkeypatch):
    """Trained, started again when finished, refused with other settings, then anew; data from the environment."""
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
        "--seed 5 --threads 1 --set width=16 --set embedding_width=16 --set vocabulary=120 --set cell=lstm "
        "--set dropout=0.2"
    )
    weights = checkpoint_files.fingerprint("en-fr/bahdanau", tmp_path / "out")
    (folder / "card.json").unlink()
    assert train(*options)[0] == 0 and card_of(tmp_path)
    assert checkpoint_files.fingerprint("en-fr/bahdanau", tmp_path / "out") == weights
    status, _, err = train("--seed", 6)
    assert status == 2 and err.splitlines()[-1] == (
        f"python -m attnviz train: {folder} holds a training run with different settings (seed 5, now 6; "
        f"options {card['settings']['options']}, now "
        "{'dropout': 0.3, 'width': 16, 'embedding_width': 16}); give the same again, use --restart, or choose another "
        "--out"
    )
    assert train("--seed", 6, "--restart")[0] == 0 and card_of(tmp_path)["seed"] == 6


def test_progress_is_shown_with_a_sentence(train, data):
    status, out, _ = train("--data", data, "--epochs", 2)
    lines = out.splitlines()
    first = lines.index(next(line for line in lines if line.startswith("epoch 1 of 2: ")))
    assert re.fullmatch(r"epoch 1 of 2: val_bleu_lc [\d.]+, val_loss [\d.]+, train_loss [\d.]+, \d+ s", lines[first])
    assert status == 0 and lines[first + 1].startswith("  The ") and re.search(r"\S+ \[\S+\]", lines[first + 3])
    assert lines[first + 4].startswith("epoch 2 of 2: ") and lines[first + 5] == lines[first + 1]


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
    monkeypatch.setitem(TASKS, "reverse", replace(TASKS["reverse"], read=partial(tasks.read_reverse, count=200)))
    status, out, _ = train(pair="reverse")
    card = card_of(tmp_path, "reverse/bahdanau")
    assert status == 0 and "val_exact_match" in out and card["training_pairs"] == 185
    assert "--data" not in card["command"] and list(card["data"]) == ["generated, seed 1"]


def test_a_second_mechanism_shares_the_vocabulary_of_the_first(train, mine):
    """Asked for another size, it is refused rather than ignored."""
    assert train("--tsv", mine / "mine.tsv")[0] == 0
    path = mine / "out" / "en-fr" / "tokenizer.json"
    size = checkpoint_files.read_config("en-fr/bahdanau", mine / "out").vocabulary
    status, out, _ = train("--tsv", mine / "mine.tsv", "--set", f"vocabulary={size}", mechanism="luong-dot")
    assert status == 0 and out.splitlines()[0] == f"{path} is used: {size} pieces, shared by all mechanisms of en-fr"
    assert train("--tsv", mine / "mine.tsv", "--set", "vocabulary=40", mechanism="luong-general") == (
        2,
        "",
        f"python -m attnviz train: {path} has {size} pieces, and all mechanisms of en-fr share it; leave vocabulary=40 "
        "out, or choose another --out\n",
    )
