"""A packed moment becomes a model again: how near it is to what was kept."""

from dataclasses import replace

import pytest
import torch
from runs import PAIR, config

from attnviz import moments
from attnviz.data import corpora
from attnviz.models import checkpoints
from attnviz.moments.packed import Moment
from attnviz.training.train import train

NAME = f"{PAIR}/bahdanau"


@pytest.fixture(scope="module")
def run(tmp_path_factory, data):
    """A root with a trained model, and the files of the moments that its run kept."""
    corpus = replace(corpora.load("en-fr", data), tests={})
    root = tmp_path_factory.mktemp("moments")
    train(config(epochs=2), corpus, root, PAIR, moments=root / "kept")
    return root, moments.files(root / "kept")


def test_a_restored_moment_is_near_what_was_kept(run):
    root, paths = run
    path = moments.pack(NAME, root, paths[1:], [2.0] * (len(paths) - 1), step=0.1)
    assert path == root / "moments" / PAIR / "bahdanau.moments"
    assert moments.moments(NAME, root) == [Moment(int(path.stem), 2.0) for path in paths[1:]]
    for number, file in enumerate(paths[1:]):
        restored = moments.restore(NAME, number, root).state_dict()
        for name, value in checkpoints.load_tensors(file).items():
            assert float((restored[name] - value.float()).abs().mean()) < 2e-3


def test_the_first_moment_is_the_untrained_model(run):
    root, paths = run
    before = torch.get_rng_state()
    weights = moments.untrained(checkpoints.read_config(NAME, root), config().seed).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in checkpoints.load_tensors(paths[0]).items():
        assert float((weights[name] - value.float()).abs().max()) < 1e-3


def test_moments_that_are_not_there(run, tmp_path):
    root, paths = run
    assert moments.moments("en-fr/bahdanau", tmp_path) == []
    moments.pack(NAME, root, paths[1:3], [2.0, 1.0])
    with pytest.raises(IndexError) as caught:
        moments.restore(NAME, 2, root)
    assert str(caught.value) == f"{NAME} has packed moments 0 to 1; got 2"


def test_moments_of_another_seed_are_refused(run):
    root, paths = run
    moments.pack(NAME, root, paths[1:3], [2.0, 1.0])
    card = root / NAME / "card.json"
    content = checkpoints.read_json(card)
    checkpoints.write_json(card, content | {"seed": 99})
    try:
        with pytest.raises(checkpoints.CheckpointError, match="was packed where the seed gives other initial weights"):
            moments.restore(NAME, 0, root)
    finally:
        checkpoints.write_json(card, content)
