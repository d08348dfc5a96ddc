"""Training runs on the tiny data, small enough for tests, and ways to kill them."""

import pytest
import tiny

from attnviz.models import checkpoints
from attnviz.training import saved_run
from attnviz.training.recipes import TrainingConfig
from attnviz.training.train import train
from attnviz.training.trainer import Trainer

PAIR = "xx-yy"  # without aligned sentence pairs, so that the card is quick to write


class Killed(BaseException):
    """A kill as the code sees it: nothing catches it."""


def config(mechanism="bahdanau", **changes):
    settings = {
        "epochs": 3,
        "batch_tokens": 100,
        "vocabulary": 120,
        "warmup": 5,
        "learning_rate": 2e-2,
        "options": {**tiny.WIDTHS[mechanism], "dropout": 0.1},
    }
    return TrainingConfig(mechanism, **{**settings, **changes})


def kill_after(monkeypatch, updates):
    update, count = Trainer.update, iter(range(updates))

    def mortal(trainer, indices):
        if next(count, None) is None:
            raise Killed
        return update(trainer, indices)

    monkeypatch.setattr(Trainer, "update", mortal)


def begin_and_kill(monkeypatch, root, corpus, mechanism="bahdanau", updates=20, save_every=0):
    """A run that dies after some updates; nothing is patched afterwards."""
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, updates)
        train(config(mechanism), corpus, root, PAIR, save_every=save_every)


def history(folder):
    """The history without what the clock and the machine say."""
    entries = saved_run.read(folder)["history"]
    return [{k: v for k, v in entry.items() if k not in ("seconds", "peak_memory_mb")} for entry in entries]


def rewrite(folder, change):
    """Change what a run's file records beside its tensors, or the tensors."""
    path = folder / saved_run.FILE
    tensors, record = checkpoints.load_tensors(path), checkpoints.load_metadata(path)
    change(tensors, record)
    checkpoints.save_tensors(path, tensors, record)


def same(folder, other, *names):
    """Do two folders hold the same numbers in the files of these names?"""
    tensors = [[checkpoints.load_tensors(place / name) for place in (folder, other)] for name in names]
    return all(checkpoints.same(ours, theirs) for ours, theirs in tensors)
