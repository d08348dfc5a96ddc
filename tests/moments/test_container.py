"""The file of packed moments: what is written comes back, and damage is said to be damage."""

import numpy as np
import pytest

from attnviz.models.checkpoint_files import CheckpointError
from attnviz.moments import codec, container
from attnviz.moments.codec import Tensor

SHAPES = {"large": (200, 150), "small": (40,)}


def entry(seed, factors):
    generator = np.random.default_rng(seed)
    levels = generator.normal(0, 100, 350 * 3).astype(np.int16)
    levels[:4] = -1, 2**15 - 1, -(2**15), 0
    return {
        "large": Tensor([0.5] * factors, codec.Coded(0.1, 3, levels)),
        "small": Tensor([1.0] * factors, codec.Coded(0.01, codec.AS_IT_IS, np.arange(-20, 20, dtype=np.int16))),
    }


@pytest.fixture
def file(tmp_path):
    container.write(tmp_path / "m", {"seed": 1}, [entry(0, 0), entry(1, 1)])
    return tmp_path / "m"


def test_what_is_written_comes_back(file):
    assert container.read_about(file)["seed"] == 1
    for read, written in zip(container.read(file, SHAPES, 2), (entry(0, 0), entry(1, 1)), strict=True):
        assert read.keys() == written.keys()
        for name in read:
            assert read[name].mix == written[name].mix and read[name].coded[:2] == written[name].coded[:2]
            assert np.array_equal(read[name].coded.levels, written[name].coded.levels)


@pytest.mark.parametrize(
    "shapes", [{"small": (40,)}, {"large": (200, 150), "small": (41,)}, {"large": (9,), "small": (40,)}]
)
def test_another_model(file, shapes):
    with pytest.raises(CheckpointError, match="m does not fit the model; restore it, or pack it again"):
        container.read(file, shapes, 2)


@pytest.mark.parametrize("content, reason", [(None, "is missing"), (b"nothing", "it holds no moments")])
def test_other_files(tmp_path, content, reason):
    if content:
        (tmp_path / "m").write_bytes(content)
    with pytest.raises(CheckpointError, match=reason):
        container.read_about(tmp_path / "m")


@pytest.mark.parametrize("end", [10, 30, -1500, -1])
def test_a_file_that_is_cut_short(file, end):
    file.write_bytes(file.read_bytes()[:end])
    with pytest.raises(CheckpointError, match="m is damaged"):
        container.read(file, SHAPES, 2)


@pytest.mark.parametrize("count", [1, 3, 0])
def test_another_number_of_moments(file, count):
    with pytest.raises(CheckpointError, match="does not fit the model"):
        container.read(file, SHAPES, count)


@pytest.mark.parametrize("place", ["step", "mix", "rank"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, -1e5, "1", None, [], {}, True, 10**400])
def test_numbers_that_cannot_be(file, monkeypatch, place, value):
    about, packed = container._read(file)
    row = about["coded"][1][0]
    row[{"mix": 1, "step": -2, "rank": -1}[place]] = value
    monkeypatch.setattr(container, "_read", lambda path: (about, packed))
    with pytest.raises(CheckpointError, match="does not fit the model"):
        container.read(file, SHAPES, 2)


@pytest.mark.parametrize("row", [[], {}, "ab", 5, None, ["large"]])
def test_rows_that_are_none(file, monkeypatch, row):
    about, packed = container._read(file)
    about["coded"][1][0] = row
    monkeypatch.setattr(container, "_read", lambda path: (about, packed))
    with pytest.raises(CheckpointError, match="does not fit the model"):
        container.read(file, SHAPES, 2)


def test_more_levels_than_a_file_may_have(file, monkeypatch):
    monkeypatch.setattr(container, "LEVELS", 2 * (350 * 3 + 40) - 1)
    with pytest.raises(CheckpointError, match="does not fit the model"):
        container.read(file, SHAPES, 2)


def test_more_bytes_than_a_file_may_have(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "LARGEST", 1000)
    with pytest.raises(ValueError, match="of at most 1,000; pack fewer"):
        container.write(tmp_path / "m", {}, [entry(0, 0)])
    assert not (tmp_path / "m").exists()


def test_damaged_levels(file):
    content = file.read_bytes()
    start = content.index(b"]]]}") + 4
    file.write_bytes(content[:start] + b"no LZMA")
    with pytest.raises(CheckpointError, match="m is damaged"):
        container.read(file, SHAPES, 2)
