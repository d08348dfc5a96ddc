"""Moments of a run: when they are due, and that keeping them changes nothing."""

import pytest
from runs import Killed, kill_after, plan, same

from attnviz import checkpoints, corpora, moments, training


def test_due_by_hand():
    assert moments.due(10_000, count=4) == {0, 10, 100, 1000}  # 10,000 is the end of the run, which is the model that ships


@pytest.mark.parametrize("total", [1, 50, 20_000])
def test_due_are_about_as_many_as_wanted(total):
    assert 0 in moments.due(total) and len(moments.due(total)) <= moments.COUNT


def test_a_run_keeps_its_moments_and_ends_as_without(data, tmp_path):
    corpus = corpora.load("en-fr", data)
    train = lambda name, **more: training.train(plan(epochs=2), corpus, tmp_path / name, "en-fr", compile=False, **more)  # noqa: E731
    with_moments, without = train("a", moments=tmp_path / "kept"), train("b")
    assert same(with_moments, without, "model.safetensors")
    kept = sorted((tmp_path / "kept").iterdir())
    assert kept[0].name == "000000.safetensors" and len(kept) > 1
    said = checkpoints.load_metadata(kept[0], "update", "config")
    assert said["update"] == 0 and said["config"]["mechanism"] == plan().mechanism


def test_changed_sentences_are_learnt_and_a_killed_run_goes_on_alike(data, tmp_path, monkeypatch):
    corpus, changed = corpora.load("en-fr", data), plan(epochs=2, augment=1.0)
    whole = training.train(changed, corpus, tmp_path / "whole", "en-fr", compile=False)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 5)
        training.train(changed, corpus, tmp_path / "killed", "en-fr", save_every=0, compile=False)
    folder = training.train(changed, corpus, tmp_path / "killed", "en-fr", compile=False)
    assert same(folder, whole, "model.safetensors")


@pytest.mark.parametrize("losses, count, places", [
    ([9, 8, 7, 6, 5, 4, 3, 2, 1], 3, [0, 4, 8]), ([9, 8.9, 8.8, 2, 1.5, 1], 3, [0, 3, 5]), ([9, 1.2, 1.1, 1], 4, [0, 1, 2, 3]),
    ([9, 5], 2, [0, 1]),
])  # fmt: skip
def test_moments_that_ship_are_spaced_by_loss(losses, count, places):
    assert moments.spaced(losses, count) == places


def test_more_moments_than_there_are():
    with pytest.raises(ValueError, match="count must be from 2 to 2; got 3"):
        moments.spaced([2, 1], 3)


def test_a_packed_moment_is_a_model_near_what_was_kept(data, tmp_path):
    corpus = corpora.load("en-fr", data)
    training.train(plan(epochs=2), corpus, tmp_path, "en-fr", compile=False, moments=tmp_path / "kept")
    kept = sorted((tmp_path / "kept").iterdir())
    path = moments.pack("en-fr/bahdanau", tmp_path, kept[1:], [2.0] * (len(kept) - 1), step=0.1)
    assert path == tmp_path / "moments" / "en-fr" / "bahdanau.moments"
    said = moments.about("en-fr/bahdanau", tmp_path)
    assert [one["update"] for one in said] == [int(path.stem) for path in kept[1:]]
    for number, file in enumerate(kept[1:]):
        restored = moments.restore("en-fr/bahdanau", number, tmp_path).state_dict()
        for name, value in checkpoints.load_tensors(file).items():
            assert float((restored[name] - value.float()).abs().mean()) < 2e-3


def test_the_first_moment_is_the_untrained_model(data, tmp_path):
    training.train(plan(epochs=1), corpora.load("en-fr", data), tmp_path, "en-fr", compile=False, moments=tmp_path / "kept")
    model = moments.untrained(checkpoints.read_config("en-fr/bahdanau", tmp_path), plan().seed)
    for name, value in checkpoints.load_tensors(tmp_path / "kept" / "000000.safetensors").items():
        assert float((model.state_dict()[name] - value.float()).abs().max()) < 1e-3


def test_a_checkpoint_without_moments(tmp_path):
    assert moments.about("en-fr/bahdanau", tmp_path) == []
