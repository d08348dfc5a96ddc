"""Moments of a run: when they are due, which of them ship, and how near a packed one is to what was kept."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from runs import PAIR, config

import attnviz
from attnviz import moments
from attnviz.data import corpora
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_files, checkpoints
from attnviz.moments import Moment, codec, container
from attnviz.training.train import train


def test_due_by_hand():
    assert moments.due(10_000, count=4) == {0, 10, 100, 1000}  # 10,000 is the end of the run: the model that ships


@pytest.mark.parametrize("total", [1, 50, 20_000])
def test_due_are_at_most_as_many_as_wanted(total):
    assert 0 in moments.due(total) and len(moments.due(total)) <= moments.KEPT


def test_a_folder_without_moments(tmp_path):
    with pytest.raises(ValueError) as caught:
        moments.files(tmp_path)
    assert str(caught.value) == f"{tmp_path} must hold the moments of a run (train --moments); got none"


@pytest.mark.parametrize(
    "losses, count, places",
    [
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 3, [0, 4, 8]),
        ([9, 8.9, 8.8, 2, 1.5, 1], 3, [0, 3, 5]),
        ([9, 1.2, 1.1, 1], 4, [0, 1, 2, 3]),
        ([9, 5], 2, [0, 1]),
    ],
)
def test_moments_that_ship_are_spaced_by_loss(losses, count, places):
    assert moments.spaced(losses, count) == places


def test_more_moments_than_there_are():
    with pytest.raises(ValueError, match="count must be from 2 to 2; got 3"):
        moments.spaced([2, 1], 3)


NAME = f"{PAIR}/bahdanau"


@pytest.fixture(scope="module")
def run(tmp_path_factory, data):
    """A root with a trained model, and the files of the moments that its run kept."""
    corpus = replace(corpora.load("en-fr", data), tests={})
    root = tmp_path_factory.mktemp("moments")
    train(config(epochs=2), corpus, root, PAIR, moments=root / "kept")
    return root, moments.files(root / "kept")


@pytest.mark.parametrize("small", [codec.SMALL, 100])
def test_a_restored_moment_is_near_what_was_kept(run, monkeypatch, small):
    """Also where matrices, which are all small here, are turned to their principal directions."""
    root, paths = run
    monkeypatch.setattr(codec, "SMALL", small)
    path = moments.pack(NAME, root, paths, [2.0] * len(paths))
    assert path == root / "moments" / PAIR / "bahdanau.moments"
    assert moments.moments(NAME, root) == [Moment(int(path.stem), 2.0) for path in paths]
    for number, file in enumerate(paths):
        restored = moments.restore(NAME, number, root).state_dict()
        for name, value in checkpoints.load_tensors(file).items():
            assert float((restored[name] - value.float()).abs().mean()) < 5e-3


def test_the_first_moment_is_the_untrained_model_and_the_last_the_trained_one(run):
    root, paths = run
    moments.pack(NAME, root, paths, [2.0] * len(paths))
    before = torch.get_rng_state()
    first = moments.restore(NAME, 0, root)
    assert torch.equal(torch.get_rng_state(), before) and not first.training
    untrained = moments.untrained(checkpoint_files.read_config(NAME, root), config().seed).state_dict()
    assert all(torch.equal(value, untrained[name]) for name, value in first.state_dict().items())
    for name, value in checkpoints.load_tensors(paths[0]).items():
        assert float((untrained[name] - value.float()).abs().max()) < 1e-3
    ended, last = checkpoints.load_tensors(root / NAME / "training.safetensors"), checkpoints.load_tensors(paths[-1])
    assert moments.moments(NAME, root)[-1].update == int(ended["place"][2])
    assert all(torch.equal(ended[f"average.{name}"].half(), value) for name, value in last.items())


def test_a_moment_is_a_model_by_its_name(run):
    root, paths = run
    moments.pack(NAME, root, paths, [2.0] * len(paths))
    model = attnviz.load(f"{NAME}@1", root)
    assert (model.name, model.mechanism) == (f"{NAME}@1", "bahdanau") and model.trace("a dog").model == f"{NAME}@1"
    restored = moments.restore(NAME, 1, root).state_dict()
    assert all(torch.equal(value, restored[name]) for name, value in model.model.state_dict().items())
    for name, words in ((f"{NAME}@99", f"it has moments 0 to {len(paths) - 1}"), ("en-fr/other@0", "no moments")):
        with pytest.raises(ValueError, match=words):
            attnviz.load(name, root)


def test_near_enough_is_said_by_the_caller(run, monkeypatch):
    root, paths = run
    monkeypatch.setattr(codec, "SMALL", 100)
    calls = []

    def near(number, model):
        calls.append((number, sorted(model.state_dict())))
        return True

    fine = moments.pack(NAME, root, paths, [2.0] * len(paths)).stat().st_size
    assert moments.pack(NAME, root, paths, [2.0] * len(paths), near).stat().st_size < fine
    assert {number for number, _ in calls} == set(range(1, len(paths)))
    assert all(names == sorted(checkpoints.load_tensors(paths[0])) for _, names in calls)


def test_the_checkpoint_may_come_from_another_run(run, tmp_path):
    """A file of moments holds everything that it needs."""
    root, paths = run
    path = moments.pack(NAME, root, paths[:3], [3.0, 2.0, 1.0])
    copy = moments.path_for(NAME, tmp_path)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes())
    here, other = (moments.restore(NAME, 1, place).state_dict() for place in (root, tmp_path))
    assert all(torch.equal(value, other[name]) for name, value in here.items())


def test_moments_that_are_not_there(run, tmp_path):
    root, paths = run
    assert moments.moments("en-fr/bahdanau", tmp_path) == []
    moments.pack(NAME, root, paths[:3], [3.0, 2.0, 1.0])
    for number in (3, -1):
        with pytest.raises(IndexError) as caught:
            moments.restore(NAME, number, root)
        assert str(caught.value) == f"{NAME} has moments 0 to 2; got {number}"


def test_moments_of_another_seed_are_not_packed(run):
    root, paths = run
    with pytest.raises(ValueError, match="must hold the untrained model of a run without --start, with the seed 1"):
        moments.pack(NAME, root, paths[1:], [2.0] * (len(paths) - 1))


def test_a_run_that_cannot_be_packed(run, tmp_path):
    root, paths = run
    with pytest.raises(ValueError, match="2 to 32 moments, and a loss for each; got 1 and 1 losses"):
        moments.pack(NAME, root, paths[:1], [1.0])
    with pytest.raises(ValueError, match="got 3 and 2 losses"):
        moments.pack(NAME, root, paths[:3], [2.0, 1.0])
    tensors, record = checkpoints.load_tensors(paths[1]), checkpoints.load_metadata(paths[1])
    other = {**record["config"], "options": record["config"]["options"] | {"dropout": 0.5}}
    checkpoints.save_tensors(tmp_path / "000001.safetensors", tensors, record | {"config": other})
    with pytest.raises(ValueError, match="000001.safetensors is a moment of another model"):
        moments.pack(NAME, root, [paths[0], tmp_path / "000001.safetensors"], [2.0, 1.0])
    tensors["output_bias"][0] = float("inf")
    checkpoints.save_tensors(tmp_path / "000002.safetensors", tensors, record)
    with pytest.raises(ValueError, match="000002.safetensors has weights that are not numbers"):
        moments.pack(NAME, root, [paths[0], tmp_path / "000002.safetensors"], [2.0, 1.0])


LARGE = {"mechanism": "bahdanau", "vocabulary": 2_000_000, "options": {"width": 16_384, "embedding_width": 16_384}}
FLAT = {"mechanism": "bahdanau", "vocabulary": 120, "options": {"embedding_width": 0}}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"seed": 99}, "was packed where the seed gives other initial weights; pack it again"),
        *(({"seed": seed}, "its seed is no whole number") for seed in ("1", 1.0, True, None, -1)),
        *(({"config": config}, "bahdanau.moments is damaged") for config in ([], None, {"mechanism": "none"}, FLAT)),
        ({"config": LARGE}, "of at most 33,554,432"),
        *(({"begins": begins}, "how the untrained model begins") for begins in (None, "x", [None], {})),
        ({"begins": [0.0]}, "pack it again"),
        *(({"moments": listed}, "it must list 2 to 32 moments") for listed in (None, 5, "ab", [], [{}], [{}] * 33)),
        *(({"moments": [moment] * 3}, "no update or no loss") for moment in (1, {}, {"update": "1", "loss": 1.0})),
    ],
)
def test_files_that_say_something_else(run, tmp_path, change, message):
    root, paths = run
    path = moments.pack(NAME, root, paths[:3], [3.0, 2.0, 1.0])
    content = path.read_bytes()
    start = len(container.MAGIC) + 8
    end = start + struct.unpack("<Q", content[start - 8 : start])[0]
    text = json.dumps(json.loads(content[start:end]) | change).encode()
    other = moments.path_for(NAME, tmp_path)
    other.parent.mkdir(parents=True)
    other.write_bytes(container.MAGIC + struct.pack("<Q", len(text)) + text + content[end:])
    with pytest.raises(checkpoint_files.CheckpointError, match=message):
        moments.restore(NAME, 1, tmp_path)


def test_a_new_run_does_not_mix_its_moments_with_those_of_another(run):
    root, paths = run
    record = checkpoints.load_metadata(paths[0], "config")["config"]
    with pytest.raises(ValueError, match="kept holds the moments of another run; choose another folder, or empty"):
        moments.keep(root / "kept", 0, Config(**record), checkpoints.load_tensors(paths[0]))


def test_the_moments_that_ship_are_models_on_their_way():
    """About a dozen each, from the untrained model on; each nearer to the trained one than the one before."""
    names = {f"en-fr/{mechanism}": (8, 1.3) for mechanism in ("bahdanau", "luong-general", "transformer")}
    names |= {"shakespeare/writer": (4, 1.6), "en/writer": (8, 4)}
    for name, (first, trained) in names.items():
        listed = moments.moments(name)
        losses = [moment.loss for moment in listed]
        assert len(listed) >= 11 and listed[0].update == 0 and losses == sorted(losses, reverse=True)
        assert losses[0] > first and losses[-1] < trained
        last = {key: value.numpy() for key, value in moments.restore(name, len(listed) - 1).state_dict().items()}
        ways = []
        for number in (0, len(listed) // 2):
            weights = moments.restore(name, number).state_dict()
            ways.append(sum(float(np.square(weights[key].numpy() - last[key]).sum()) for key in last))
        assert ways == sorted(ways, reverse=True)
    sizes = {path.parent.name: 0 for path in checkpoint_files.ROOT.rglob("*.moments")}
    for path in checkpoint_files.ROOT.rglob("*.moments"):
        sizes[path.parent.name] += path.stat().st_size
    most = {"en-fr": 12e6, "shakespeare": 2e6, "en": 3e6}
    assert sizes.keys() == most.keys() and all(size <= most[pair] for pair, size in sizes.items())
