"""A run goes on exactly where it was killed, and refuses other settings, other data and damaged files."""

import shutil
from dataclasses import replace

import pytest
import torch
from runs import Killed, begin_and_kill, finish, history, plan, rewrite, same

from attnviz.data import corpora
from attnviz.evaluation import translation
from attnviz.models import checkpoints
from attnviz.training import train as training

WHOLE = ("model.safetensors", "training.safetensors")
MECHANISMS = ("fixed-context", "bahdanau", "transformer")


@pytest.fixture(scope="module")
def corpus(data):
    return corpora.load("en-fr", data)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, corpus):
    return finish(tmp_path_factory.mktemp("finished"), corpus, MECHANISMS)


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of the finished runs, to be damaged."""
    return shutil.copytree(finished, tmp_path / "copy")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("updates", [5, 20])  # within the first epoch, and within a later one
def test_killed_and_resumed_is_as_if_never_killed(finished, corpus, tmp_path, monkeypatch, mechanism, updates):
    begin_and_kill(monkeypatch, tmp_path, corpus, mechanism, updates)
    torch.manual_seed(99)  # the second process knows nothing of the first
    folder = training.train(plan(mechanism), corpus, tmp_path, "en-fr", compile=False)
    assert same(folder, finished / "en-fr" / mechanism, *WHOLE)
    assert history(folder) == history(finished / "en-fr" / mechanism)


def test_killed_between_saves_goes_on_from_the_last(finished, corpus, tmp_path, monkeypatch):
    begin_and_kill(monkeypatch, tmp_path, corpus, save_every=1e9)
    folder = training.train(plan(), corpus, tmp_path, "en-fr", compile=False)
    assert same(folder, finished / "en-fr" / "bahdanau", "model.safetensors")


@pytest.mark.parametrize("victim", ["validate", "progress.report"])
def test_killed_at_the_end_of_an_epoch(finished, corpus, tmp_path, monkeypatch, victim):
    """All batches of the epoch are done; neither its mean loss nor a random number must be lost."""

    def die(*_):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(f"attnviz.training.train.{victim}", die)
        training.train(plan(), corpus, tmp_path, "en-fr", save_every=0, compile=False)
    folder = training.train(plan(), corpus, tmp_path, "en-fr", compile=False)
    assert history(folder) == history(finished / "en-fr" / "bahdanau")
    assert same(folder, finished / "en-fr" / "bahdanau", *WHOLE)


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
        training.train(plan(), corpus, tmp_path, "en-fr", save_every=0, compile=False)
    folder = training.train(plan(), corpus, tmp_path, "en-fr", compile=False)
    assert same(folder, finished / "en-fr" / "bahdanau", *WHOLE)
    assert history(folder) == history(finished / "en-fr" / "bahdanau")


def test_another_seed_is_another_model(finished, corpus, tmp_path):
    folder = training.train(plan(seed=2), corpus, tmp_path, "en-fr", compile=False)
    assert not same(folder, finished / "en-fr" / "bahdanau", "model.safetensors")


def test_other_settings_are_refused(finished, corpus):
    with pytest.raises(ValueError) as caught:
        training.train(plan(seed=2), corpus, finished, "en-fr", compile=False)
    assert str(caught.value) == (
        f"{finished / 'en-fr' / 'bahdanau'} holds a run with other settings (seed 1, now 2); "
        "give the same again, use --restart, or choose another --out"
    )


def test_other_data_is_refused(finished, corpus):
    with pytest.raises(ValueError) as caught:
        training.train(plan(), replace(corpus, train=corpus.train[:-1]), finished, "en-fr", compile=False)
    assert str(caught.value) == (
        f"{finished / 'en-fr' / 'bahdanau'} holds a run with other data; "
        "give the same again, use --restart, or choose another --out"
    )


def test_another_measure_is_refused(finished, corpus):
    with pytest.raises(ValueError, match="validated by another measure than exact_match; use --restart"):
        training.train(plan(), replace(corpus, metric="exact_match"), finished, "en-fr", compile=False)


def test_a_finished_model_is_not_overwritten_by_chance(copy, corpus):
    folder = copy / "en-fr" / "bahdanau"
    (folder / "card.json").write_text("{}")
    (folder / "training.safetensors").unlink()
    with pytest.raises(ValueError) as caught:
        training.train(plan(), corpus, copy, "en-fr", compile=False)
    assert str(caught.value) == (
        f"{folder} holds a finished model and no run to go on with; choose another --out, or --restart"
    )
    training.train(plan(epochs=1), corpus, copy, "en-fr", compile=False, restart=True)
    assert len(history(folder)) == 1


@pytest.mark.parametrize(
    "victim", ["train.validate", "trainer.Run.save"]
)  # before there is a new model, and just after
def test_a_restart_keeps_the_model_that_was_there(copy, finished, corpus, monkeypatch, victim):
    folder, old = copy / "en-fr" / "bahdanau", finished / "en-fr" / "bahdanau"
    (folder / "card.json").write_text('{"seed": 1}')

    def die(*_):
        raise Killed

    def again(restart=True):
        training.train(plan(seed=2), corpus, copy, "en-fr", compile=False, restart=restart)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(f"attnviz.training.{victim}", die)
        again()
    assert (folder / "card.json").exists() == same(folder, old, "model.safetensors") == (victim == "train.validate")
    again()
    again()  # over a model that has no card: the finished one stays
    assert not same(folder, old, "model.safetensors") and not (folder / "card.json").exists()
    assert (
        same(folder / "before", old, "model.safetensors")
        and (folder / "before" / "card.json").read_text() == '{"seed": 1}'
    )
    assert checkpoints.names(copy) == checkpoints.names(finished)


def test_a_fresh_run_puts_nothing_aside(finished):
    assert not list(finished.rglob("before"))


def test_a_restart_that_is_refused_loses_nothing(copy, finished, corpus):
    begun = copy / "en-fr" / "bahdanau" / "training.safetensors"
    with pytest.raises(ValueError, match="holds another model"):
        training.train(
            plan(), corpus, copy, "en-fr", compile=False, restart=True, start=finished / "en-fr" / "transformer"
        )
    assert begun.exists()


@pytest.mark.parametrize("forgotten", ["rates", "data"])
def test_a_run_begun_before_something_was_recorded_goes_on(finished, corpus, tmp_path, monkeypatch, forgotten):
    begin_and_kill(monkeypatch, tmp_path, corpus)
    rewrite(
        tmp_path / "en-fr" / "bahdanau",
        lambda tensors, beside: (beside if forgotten == "data" else beside["settings"]).pop(forgotten),
    )
    folder = training.train(plan(), corpus, tmp_path, "en-fr", compile=False)
    assert same(folder, finished / "en-fr" / "bahdanau", "model.safetensors")


@pytest.mark.parametrize(
    "settings", [{"mechanism": "bahdanau", "colour": "red"}, [], {"mechanism": "bahdanau", "epochs": 0}]
)
def test_settings_of_no_version_are_others(copy, corpus, settings):
    rewrite(copy / "en-fr" / "bahdanau", lambda tensors, beside: beside.update(settings=settings))
    with pytest.raises(
        ValueError, match="holds a run with other settings; give the same again, use --restart, or choose another --out"
    ):
        training.train(plan(), corpus, copy, "en-fr", compile=False)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda tensors, beside: beside.pop("history"), "must say history beside its tensors; train the model again"),
        (
            lambda tensors, beside: beside.clear(),
            "must say settings, seconds, history, losses beside its tensors; train",
        ),
        (
            lambda tensors, beside: tensors.pop("optimizer.step.start.bias"),
            r"does not fit the model \('optimizer.step.start.bias'\); --restart begins again",
        ),
        (lambda tensors, beside: tensors.update({"master.start.bias": torch.zeros(3)}), "does not fit the model"),
    ],
)
def test_a_damaged_run_is_a_checkpoint_error(copy, corpus, change, message):
    folder = copy / "en-fr" / "bahdanau"
    rewrite(folder, change)
    with pytest.raises(checkpoints.CheckpointError, match=message) as caught:
        training.train(plan(), corpus, copy, "en-fr", compile=False)
    assert str(caught.value).startswith(str(folder))
    if "history" in message:
        with pytest.raises(checkpoints.CheckpointError, match="must say"):
            translation.card(copy, "en-fr/bahdanau", corpus, "")
