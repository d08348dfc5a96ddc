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
