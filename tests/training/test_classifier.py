"""Runs of a classifier: killed and resumed, and made to agree with itself."""

import math

import pytest
import tiny
import torch
from runs import Killed, history, kill_after, same

from attnviz.data import corpora
from attnviz.data.tasks import LABELS
from attnviz.data.tokenizer import train_vocabulary
from attnviz.training.classifiers import ClassifierTrainer
from attnviz.training.recipes import training_config
from attnviz.training.train import train
from attnviz.training.trainer import Trainer


def config():
    return training_config(
        "sst2",
        "self-attention",
        {**tiny.CLASSIFIER, "dropout": 0.1},
        epochs=3,
        batch_tokens=200,
        vocabulary=90,
        warmup=5,
        word_dropout=0.1,
    )


def test_killed_and_resumed_is_as_if_never_killed(reviews, tmp_path, monkeypatch):
    corpus = corpora.load("sst2", reviews)
    whole = train(config(), corpus, tmp_path / "whole", "sst2")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 17)
        train(config(), corpus, tmp_path / "killed", "sst2", save_every=0)
    torch.manual_seed(99)
    folder = train(config(), corpus, tmp_path / "killed", "sst2")
    assert same(folder, whole, "model.safetensors", "training.safetensors") and history(folder) == history(whole)


def test_a_run_of_labels_can_be_made_to_agree_with_itself(reviews):
    """R-Drop, as for translations: two passes of one update, and one label for each sentence in both."""
    from dataclasses import replace

    corpus = corpora.load("sst2", reviews)
    text = train_vocabulary(corpus.texts(), 90, corpus.style)
    trainer = ClassifierTrainer(replace(config(), consistency=1.0), text, corpus.train, "cpu", labels=LABELS)
    assert isinstance(trainer, Trainer)
    assert math.isfinite(float(trainer.update(trainer.batches.order(0)[0])))
