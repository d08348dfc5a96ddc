"""A run that leaves the numbers behind says so, and what was good before it stays."""

import pytest
import torch
from runs import finish, plan

from attnviz.data import corpora
from attnviz.mechanisms import Config
from attnviz.models import checkpoints
from attnviz.models.translator import Translator
from attnviz.training import train
from attnviz.training.trainer import Diverged

NAME = "en-fr/bahdanau"


@pytest.fixture(scope="module")
def corpus(data):
    return corpora.load("en-fr", data)


@pytest.fixture
def good(tmp_path, corpus):
    """A folder with a model that is trained."""
    finish(tmp_path, corpus, ["bahdanau"])
    return tmp_path, checkpoints.fingerprint(NAME, tmp_path)


def diverge(root, corpus, **changes):
    with pytest.raises(Diverged) as caught:
        train.train(plan(**changes), corpus, root, "en-fr", compile=False, restart=True)
    return str(caught.value)


def broken(run, source, target):
    """Stands for a loss that is no number."""
    return float("nan") * sum(parameter.sum() for parameter in run.working.parameters())


def test_a_loss_that_is_no_number_ends_the_run_before_anything_is_written(good, corpus, monkeypatch):
    root, weights = good
    monkeypatch.setattr(train.Run, "_plain", broken)
    assert diverge(root, corpus) == (
        "training has diverged in epoch 1: the loss has no gradient that is a number; begin again with a "
        "lower learning_rate (--restart)"
    )
    assert (
        checkpoints.fingerprint(NAME, root) == weights
        and Translator.load(NAME, root).trace("The black dog runs.").complete
    )
    assert not (root / NAME / "training.safetensors").exists()  # no state to go on with


def test_a_rate_that_is_far_too_high_says_so_and_leaves_the_model(good, corpus):
    root, weights = good
    assert diverge(root, corpus, learning_rate=1e30).startswith("training has diverged in epoch 1: ")
    assert checkpoints.fingerprint(NAME, root) == weights


def test_a_validation_loss_that_is_no_number(good, corpus, monkeypatch):
    root, weights = good
    monkeypatch.setattr(train, "loss", lambda *_, **__: float("inf"))
    assert diverge(root, corpus).startswith("training has diverged in epoch 1: the loss on validation is inf; ")
    assert checkpoints.fingerprint(NAME, root) == weights


@pytest.mark.parametrize("value", [70_000.0, float("inf"), float("nan")])
def test_weights_that_fp16_cannot_hold_are_not_saved(tmp_path, value):
    with pytest.raises(checkpoints.CheckpointError) as caught:
        checkpoints.save_model(
            tmp_path / NAME, Config("bahdanau", 9), {"fine": torch.zeros(2), "start.bias": torch.tensor([1.0, value])}
        )
    assert str(caught.value) == (
        "weights must be numbers below 65,504, which fp16 can hold; those of start.bias are not, so the model is not saved: "
        "train it again with a lower learning_rate"
    )
    assert not (tmp_path / NAME).exists()
