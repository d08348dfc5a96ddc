"""Training runs on the tiny data, small enough for tests, and ways to kill them."""

import pytest
import tiny

from attnviz.models import checkpoints
from attnviz.training import recipes, train


class Killed(BaseException):
    """What a kill looks like from inside: nothing catches it."""


def plan(mechanism="bahdanau", **changes):
    settings = {
        "epochs": 3,
        "batch_tokens": 100,
        "vocabulary": 120,
        "warmup": 5,
        "learning_rate": 2e-2,
        "options": {**tiny.WIDTHS[mechanism], "dropout": 0.1},
    }
    return recipes.Settings(mechanism, **{**settings, **changes})


def finish(root, corpus, mechanisms):
    """Runs that nothing interrupts."""
    for mechanism in mechanisms:
        train.train(plan(mechanism), corpus, root, "en-fr", compile=False)
    return root


def kill_after(monkeypatch, updates):
    learn, count = train.Run.learn, iter(range(updates))

    def mortal(run, batch):
        if next(count, None) is None:
            raise Killed
        return learn(run, batch)

    monkeypatch.setattr(train.Run, "learn", mortal)


def begin_and_kill(monkeypatch, root, corpus, mechanism="bahdanau", updates=20, save_every=0):
    """A run that dies after some updates; nothing is patched afterwards."""
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, updates)
        train.train(plan(mechanism), corpus, root, "en-fr", save_every=save_every, compile=False)


def history(folder):
    """The history without what the clock and the machine say."""
    entries = checkpoints.load_metadata(folder / "training.safetensors")["history"]
    return [{k: v for k, v in entry.items() if k not in ("seconds", "peak_memory_mb")} for entry in entries]


def rewrite(folder, change):
    """Change what a run's file says beside its tensors, or the tensors."""
    path = folder / "training.safetensors"
    tensors, beside = checkpoints.load_tensors(path), checkpoints.load_metadata(path)
    change(tensors, beside)
    checkpoints.save_tensors(path, tensors, beside)


def same(folder, other, *names):
    """Do two folders hold the same numbers in the files of these names?"""
    tensors = [[checkpoints.load_tensors(place / name) for place in (folder, other)] for name in names]
    return all(checkpoints.same(ours, theirs) for ours, theirs in tensors)
