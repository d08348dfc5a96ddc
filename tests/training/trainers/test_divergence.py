"""A run that leaves the numbers behind says so, and what was good before it stays."""

import shutil

import pytest
import torch
from runs import PAIR, config

from attnviz.mechanisms import Config
from attnviz.models import checkpoints
from attnviz.models.translator import Translator
from attnviz.training import validation
from attnviz.training.train import train
from attnviz.training.trainers.trainer import Diverged, Trainer

NAME = f"{PAIR}/bahdanau"


@pytest.fixture
def good(tmp_path, finished):
    """A copy of a folder with a trained model, and the hash of its weights."""
    root = shutil.copytree(finished().parent, tmp_path / PAIR).parent
    return root, checkpoints.fingerprint(NAME, root)


def diverge(root, corpus, **changes):
    with pytest.raises(Diverged) as caught:
        train(config(**changes), corpus, root, PAIR, restart=True)
    return str(caught.value)


def not_finite(trainer, logits, target):
    """Stands for a loss that is not finite."""
    return float("nan") * logits.sum()


def test_a_loss_that_is_no_number_ends_the_run_before_anything_is_written(good, corpus, monkeypatch):
    root, weights = good
    monkeypatch.setattr(Trainer, "_smoothed_loss", not_finite)
    assert diverge(root, corpus) == (
        "training diverged in epoch 1: the gradient of the loss is not finite; use a lower learning_rate and --restart"
    )
    assert (
        checkpoints.fingerprint(NAME, root) == weights
        and Translator.load(NAME, root).trace("The black dog runs.").complete
    )
    assert not (root / NAME / "training.safetensors").exists()  # no state to go on with


def test_a_rate_that_is_far_too_high_says_so_and_leaves_the_model(good, corpus):
    root, weights = good
    assert diverge(root, corpus, learning_rate=1e30).startswith("training diverged in epoch 1: ")
    assert checkpoints.fingerprint(NAME, root) == weights


def test_a_validation_loss_that_is_no_number(good, corpus, monkeypatch):
    root, weights = good
    monkeypatch.setattr(validation, "mean_loss", lambda *_, **__: float("inf"))
    assert diverge(root, corpus).startswith("training diverged in epoch 1: the loss on validation is inf; ")
    assert checkpoints.fingerprint(NAME, root) == weights


@pytest.mark.parametrize("value", [70_000.0, float("inf"), float("nan")])
def test_weights_that_fp16_cannot_hold_are_not_saved(tmp_path, value):
    with pytest.raises(checkpoints.CheckpointError) as caught:
        checkpoints.save_model(
            tmp_path / NAME, Config("bahdanau", 9), {"fine": torch.zeros(2), "start.bias": torch.tensor([1.0, value])}
        )
    assert str(caught.value) == (
        "weights must be numbers below 65,504, which fp16 can hold; those of start.bias are not, so the model is not "
        "saved: "
        "train it again with a lower learning_rate"
    )
    assert not (tmp_path / NAME).exists()
