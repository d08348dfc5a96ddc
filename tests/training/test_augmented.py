"""Runs on augmented sentences, and on data of two parts."""

import pytest
import tiny
from runs import Killed, config, history, kill_after, same

from attnviz.data import augmentation, batching, corpora
from attnviz.training.train import train
from attnviz.training.trainer import Batches

PAIRS = tiny.sentences(60, 1)


def test_augmented_sentences_are_read_anew_in_each_epoch():
    text, change = tiny.vocabulary(), augmentation.for_pair(PAIRS, "en-fr", 2.0)
    batches = Batches(config(), text, PAIRS, batching.encode, change)
    plain = Batches(config(), text, PAIRS, batching.encode)
    assert (batches.digest, batches.total) == (plain.digest, plain.total)  # of the sentences as they are
    read = []
    for epoch in (0, 1, 0):
        batches.order(epoch)
        read.append(list(batches.examples))
    assert read[0] == read[2] != read[1] and plain.examples not in read
    assert read[0] == batching.encode(change(PAIRS, 0), text)


def test_a_run_on_augmented_sentences_that_was_killed_goes_on_alike(corpus, tmp_path, monkeypatch):
    changed = config(epochs=2, augment=1.0)
    whole = train(changed, corpus, tmp_path / "whole", "en-yy")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 5)
        train(changed, corpus, tmp_path / "killed", "en-yy", save_every=0)
    folder = train(changed, corpus, tmp_path / "killed", "en-yy")
    assert same(folder, whole, "model.safetensors") and history(folder) == history(whole)


def test_each_part_of_validation_has_its_score_in_the_history(tmp_path):
    folder = tiny.write_data(tmp_path / "data")
    (folder / "everyday_enfr").mkdir()
    for split in ("train", "val", "test"):
        (folder / "everyday_enfr" / f"{split}.tsv").write_text("The dog runs.\tLe chien court.\n", encoding="utf-8")
    corpus = corpora.load("en-fr", folder)
    last = history(train(config(epochs=1), corpus, tmp_path / "out", "xx-yy"))[-1]
    scores = [last[f"val_bleu_lc{part}"] for part in ("", "_captions", "_everyday")]
    assert all(0 <= score <= 100 for score in scores) and min(scores[1:]) <= scores[0] <= max(scores[1:])
