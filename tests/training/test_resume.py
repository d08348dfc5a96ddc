"""A run resumes exactly where it was killed, and refuses different settings, different data and damaged files."""

import shutil
from dataclasses import replace

import pytest
import torch
from runs import PAIR, Killed, begin_and_kill, config, history, rewrite, same

from attnviz.models import checkpoint_files, checkpoints
from attnviz.training import card
from attnviz.training.train import train

WHOLE = ("model.safetensors", "training.safetensors")
MECHANISMS = ("fixed-context", "bahdanau", "transformer")


@pytest.fixture
def copy(finished, tmp_path):
    """The root of a copy of a finished run, to be damaged."""
    root = tmp_path / "copy"
    shutil.copytree(finished(), checkpoint_folder(root))
    shutil.copy(finished().parent / "tokenizer.json", root / PAIR)
    return root


def checkpoint_folder(root):
    return root / PAIR / "bahdanau"


@pytest.mark.parametrize(
    "mechanism, updates", [*((mechanism, 20) for mechanism in MECHANISMS), ("bahdanau", 5)]
)  # within the first epoch, and within a later one
def test_killed_and_resumed_is_as_if_never_killed(finished, corpus, tmp_path, monkeypatch, mechanism, updates):
    begin_and_kill(monkeypatch, tmp_path, corpus, mechanism, updates)
    torch.manual_seed(99)  # the second process knows nothing of the first
    folder = train(config(mechanism), corpus, tmp_path, PAIR)
    assert same(folder, finished(mechanism), *WHOLE)
    assert history(folder) == history(finished(mechanism))


def test_killed_between_saves_goes_on_from_the_last(finished, corpus, tmp_path, monkeypatch):
    begin_and_kill(monkeypatch, tmp_path, corpus, save_every=1e9)
    folder = train(config(), corpus, tmp_path, PAIR)
    assert same(folder, finished(), "model.safetensors")


@pytest.mark.parametrize("victim", ["validate", "validation.report"])
def test_killed_at_the_end_of_an_epoch(finished, corpus, tmp_path, monkeypatch, victim):
    """All batches of the epoch are done; neither its mean loss nor a random number must be lost."""

    def die(*_):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(f"attnviz.training.train.{victim}", die)
        train(config(), corpus, tmp_path, PAIR, save_every=0)
    folder = train(config(), corpus, tmp_path, PAIR)
    assert history(folder) == history(finished())
    assert same(folder, finished(), *WHOLE)


@pytest.mark.parametrize("write", [3, 4, 5])  # within the first epoch, at its end, and within the second
def test_killed_while_writing_leaves_the_state_before_it_whole(finished, corpus, tmp_path, monkeypatch, write):
    save_file, count = checkpoints.save_file, iter(range(write))

    def half(tensors, path, metadata=None):
        if metadata is None or next(count, None) is not None:  # only files with metadata are states of a run
            return save_file(tensors, path, metadata)
        save_file(tensors, path, metadata)
        with open(path, "r+b") as file:
            file.truncate(1000)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(checkpoints, "save_file", half)
        train(config(), corpus, tmp_path, PAIR, save_every=0)
    folder = train(config(), corpus, tmp_path, PAIR)
    assert same(folder, finished(), *WHOLE)
    assert history(folder) == history(finished())


def test_another_seed_is_another_model(finished, corpus, tmp_path):
    folder = train(config(seed=2), corpus, tmp_path, PAIR)
    assert not same(folder, finished(), "model.safetensors")


def test_other_settings_are_refused(finished, corpus):
    with pytest.raises(ValueError) as caught:
        train(config(seed=2), corpus, finished().parent.parent, PAIR)
    assert str(caught.value) == (
        f"{finished()} holds a training run with different settings (seed 1, now 2); "
        "give the same again, use --restart, or choose another --out"
    )


def test_other_data_is_refused(finished, corpus):
    with pytest.raises(ValueError) as caught:
        train(config(), replace(corpus, train=corpus.train[:-1]), finished().parent.parent, PAIR)
    assert str(caught.value) == (
        f"{finished()} holds a training run with different data; "
        "give the same again, use --restart, or choose another --out"
    )


def test_another_measure_is_refused(finished, corpus):
    with pytest.raises(ValueError, match="validated with a different metric from exact_match; use --restart"):
        train(config(), replace(corpus, metric="exact_match"), finished().parent.parent, PAIR)


def test_a_finished_model_is_not_overwritten_by_chance(copy, corpus):
    folder = checkpoint_folder(copy)
    (folder / "card.json").write_text("{}")
    (folder / "training.safetensors").unlink()
    with pytest.raises(ValueError) as caught:
        train(config(), corpus, copy, PAIR)
    assert str(caught.value) == (
        f"{folder} holds a finished model without a training run to resume; choose another --out, or use --restart"
    )
    train(config(epochs=1), corpus, copy, PAIR, restart=True)
    assert len(history(folder)) == 1


@pytest.mark.parametrize("victim", ["train.validate", "saved_run.save"])  # before there is a new model, and just after
def test_a_restart_keeps_the_model_that_was_there(copy, finished, corpus, monkeypatch, victim):
    folder, old = checkpoint_folder(copy), finished()
    (folder / "card.json").write_text('{"seed": 1}')

    def die(*_):
        raise Killed

    def again(restart=True):
        train(config(seed=2), corpus, copy, PAIR, restart=restart)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(f"attnviz.training.{victim}", die)
        again()
    assert (folder / "card.json").exists() == same(folder, old, "model.safetensors") == (victim == "train.validate")
    again()  # after `save`, over a model that has no card: the finished one stays in `before`
    assert not same(folder, old, "model.safetensors")
    assert checkpoint_files.read_card(f"{PAIR}/bahdanau", copy)["seed"] == 2
    assert same(folder / "before", old, "model.safetensors")
    assert (folder / "before" / "card.json").read_text() == '{"seed": 1}'
    assert checkpoint_files.names(copy) == [f"{PAIR}/bahdanau"]


def test_a_fresh_run_puts_nothing_aside(finished):
    assert not (finished() / "before").exists()


def test_a_restart_that_is_refused_loses_nothing(copy, finished, corpus):
    begun = checkpoint_folder(copy) / "training.safetensors"
    with pytest.raises(ValueError, match="holds a different model"):
        train(config(), corpus, copy, PAIR, restart=True, start=finished("transformer"))
    assert begun.exists()


def test_a_run_from_before_a_setting_existed_goes_on(finished, corpus, tmp_path, monkeypatch):
    begin_and_kill(monkeypatch, tmp_path, corpus)
    rewrite(checkpoint_folder(tmp_path), lambda tensors, record: record["settings"].pop("rates"))
    folder = train(config(), corpus, tmp_path, PAIR)
    assert same(folder, finished(), "model.safetensors")


@pytest.mark.parametrize(
    "settings", [{"mechanism": "bahdanau", "colour": "red"}, [], {"mechanism": "bahdanau", "epochs": 0}]
)
def test_settings_of_no_version_are_others(copy, corpus, settings):
    rewrite(checkpoint_folder(copy), lambda tensors, record: record.update(settings=settings))
    with pytest.raises(
        ValueError,
        match="holds a training run with different settings; give the same again, use --restart, "
        "or choose another --out",
    ):
        train(config(), corpus, copy, PAIR)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda tensors, record: record.pop("history"), "must say history beside its tensors; train the model again"),
        (
            lambda tensors, record: record.clear(),
            "must say settings, seconds, history, losses beside its tensors; train",
        ),
        (
            lambda tensors, record: tensors.pop("optimizer.step.start.bias"),
            r"does not fit the model \('optimizer.step.start.bias'\); --restart begins again",
        ),
        (lambda tensors, record: tensors.update({"master.start.bias": torch.zeros(3)}), "does not fit the model"),
    ],
)
def test_a_damaged_run_is_a_checkpoint_error(copy, corpus, change, message):
    folder = checkpoint_folder(copy)
    rewrite(folder, change)
    with pytest.raises(checkpoint_files.CheckpointError, match=message) as caught:
        train(config(), corpus, copy, PAIR)
    assert str(caught.value).startswith(str(folder))
    (folder / "card.json").unlink()
    if "history" in message:
        with pytest.raises(checkpoint_files.CheckpointError, match="must say"):
            card.card(f"{PAIR}/bahdanau", copy, corpus, "")
