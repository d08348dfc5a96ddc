"""Moments of a run, packed and restored."""

import numpy as np
import pytest

from attnviz.moments import codec
from attnviz.models.checkpoint_files import CheckpointError


def way(count=4, seed=0):
    """Weights that wander from one place to another."""
    chance = np.random.default_rng(seed)
    shapes = {"large": (200, 150), "small": (40,)}
    ends = [{name: chance.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()} for _ in range(2)]
    moments = []
    for part in np.linspace(0.2, 0.9, count):
        moments.append(
            {
                name: (1 - part) * ends[0][name]
                + part * ends[1][name]
                + 0.1 * chance.normal(0, 1, shape).astype(np.float32)
                for name, shape in shapes.items()
            }
        )
    return ends[0], ends[1], [{name: value.astype(np.float32) for name, value in moment.items()} for moment in moments]


def apart(a, b):
    return np.sqrt(np.mean((a - b) ** 2))


@pytest.mark.parametrize("step, most", [(0.1, 0.006), (1.0, 0.06), (3.0, 0.11)])
def test_restored_is_as_near_as_the_steps_allow(tmp_path, step, most):
    first, last, moments = way()
    about = [{"update": 10 * n} for n in range(4)]
    size = codec.pack(tmp_path / "m", first, last, moments, about, step)
    assert size == (tmp_path / "m").stat().st_size and codec.about(tmp_path / "m") == about
    for number, moment in enumerate(moments):
        restored = codec.unpack(tmp_path / "m", first, last, number)
        assert apart(restored["large"], moment["large"]) < most
        assert apart(restored["small"], moment["small"]) < 0.005


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_every_number_of_moments_comes_back_in_its_order(tmp_path, count):
    first, last, moments = way(count)
    codec.pack(tmp_path / "m", first, last, moments, [{"update": n} for n in range(count)], 0.1)
    assert [said["update"] for said in codec.about(tmp_path / "m")] == list(range(count))
    nearest = []
    for number in range(count):
        restored = codec.unpack(tmp_path / "m", first, last, number)
        nearest.append(min(range(count), key=lambda other: apart(restored["large"], moments[other]["large"])))
    assert nearest == list(range(count))


def test_larger_steps_make_smaller_files(tmp_path):
    first, last, moments = way()
    sizes = [codec.pack(tmp_path / "m", first, last, moments, [{}] * 4, step) for step in (0.1, 1.0, 3.0)]
    assert sizes == sorted(sizes, reverse=True) and sizes[2] < 30_000 * 4 / 8  # less than a bit a number


def test_what_does_not_fit(tmp_path):
    first, last, moments = way()
    with pytest.raises(ValueError, match="must have the tensors"):
        codec.pack(tmp_path / "m", first, last, [{"large": moments[0]["large"]}], [{}], 1.0)
    with pytest.raises(ValueError, match="description of each of the 4 moments; got 1"):
        codec.pack(tmp_path / "m", first, last, moments, [{}], 1.0)
    codec.pack(tmp_path / "m", first, last, moments, [{}] * 4, 1.0)
    with pytest.raises(CheckpointError, match="does not fit the model"):
        codec.unpack(tmp_path / "m", {"small": first["small"]}, {"small": last["small"]}, 0)


def test_damaged_files(tmp_path):
    with pytest.raises(CheckpointError, match="is missing"):
        codec.about(tmp_path / "m")
    (tmp_path / "m").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="it holds no moments"):
        codec.about(tmp_path / "m")


def test_a_file_that_is_cut_short(tmp_path):
    first, last, moments = way()
    codec.pack(tmp_path / "m", first, last, moments, [{}] * 4, 1.0)
    content = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(content[:-2000])
    with pytest.raises(CheckpointError, match="does not fit the model"):
        codec.unpack(tmp_path / "m", first, last, 0)
    (tmp_path / "m").write_bytes(content[: content.index(b"}}]") + 3] + b"no LZMA")
    with pytest.raises(CheckpointError, match="m is damaged"):
        codec.unpack(tmp_path / "m", first, last, 0)
