"""A run that keeps moments, and those that are packed to ship."""

from runs import PAIR, config, same

from attnviz import moments
from attnviz.models import checkpoints
from attnviz.moments import kept, matrices
from attnviz.training.trainers import moment_losses
from attnviz.training.trainers.moment_losses import pack_spaced
from attnviz.training.train import train

NAME = f"{PAIR}/bahdanau"


def test_a_run_keeps_its_moments_and_ends_as_without(finished, corpus, tmp_path):
    folder = train(config(), corpus, tmp_path, PAIR, moments=tmp_path / "kept")
    assert same(folder, finished(), "model.safetensors")
    paths = moments.files(tmp_path / "kept")
    assert paths[0].name == "000000.safetensors" and len(paths) > 1
    record = checkpoints.load_metadata(paths[0], "update", "config")
    assert record["update"] == kept.update(paths[0]) == 0 and record["config"]["mechanism"] == "bahdanau"


def test_the_moments_that_ship_are_chosen_by_loss_and_stay_near(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(matrices, "SMALL", 100)  # all tensors are small here
    train(config(epochs=2), corpus, tmp_path, PAIR, moments=tmp_path / "kept")
    path, rows = pack_spaced(NAME, tmp_path, tmp_path / "kept", corpus.val, 4)
    assert path == moments.path_for(NAME, tmp_path)
    assert [update for update, _, _ in rows] == [moment.update for moment in moments.moments(NAME, tmp_path)]
    assert rows[0][0] == 0 and len(rows) == 4 and rows[-1][0] == kept.update(moments.files(tmp_path / "kept")[-1])
    assert all(abs(packed / before - 1) <= moment_losses.NEAR for _, before, packed in rows), rows
    coarse = path.stat().st_size
    monkeypatch.setattr(moment_losses, "NEAR", 1e-4)
    path, _ = pack_spaced(NAME, tmp_path, tmp_path / "kept", corpus.val, 4)
    assert path.stat().st_size > coarse
