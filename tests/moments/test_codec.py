"""Moments of a run, coded from the last one backwards, and restored."""

import numpy as np
import pytest

from attnviz.moments import codec

SHAPES = {"large": (200, 150), "small": (40,)}


def way(count=4, seed=0):
    """The weights of an untrained model, and weights that wander from there to another place."""
    chance = np.random.default_rng(seed)
    ends = [{name: chance.normal(0, 1, shape) for name, shape in SHAPES.items()} for _ in range(2)]
    moments = [
        {
            name: (1 - part) * ends[0][name] + part * ends[1][name] + 0.1 * chance.normal(0, 1, shape)
            for name, shape in SHAPES.items()
        }
        for part in np.linspace(0.2, 1, count)
    ]
    first, *moments = ({name: value.astype(np.float32) for name, value in each.items()} for each in (ends[0], *moments))
    return first, moments


def apart(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def within(moments, most):
    return lambda number, weights: apart(weights["large"], moments[number]["large"]) <= most


def size(entries):
    return sum(np.count_nonzero(tensor.coded.levels) for entry in entries for tensor in entry.values())


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_every_moment_comes_back_in_its_place(count):
    first, moments = way(count)
    restored = dict(codec.decode(first, codec.encode(first, moments, within(moments, 0.05))))
    assert sorted(restored) == list(range(count)) == sorted(codec.order(count)) and codec.order(count)[0] == count - 1
    for number, moment in enumerate(moments):
        assert apart(restored[number]["large"], moment["large"]) <= 0.05
        assert apart(restored[number]["small"], moment["small"]) < 0.04


def test_as_coarse_as_is_near_enough():
    first, moments = way()
    fine, coarse = (codec.encode(first, moments, within(moments, most)) for most in (0.05, 0.2))
    assert size(coarse) < size(fine)
    finest = codec.encode(first, moments, lambda number, weights: False)
    assert all(
        tensor["large"].coded.step <= other["large"].coded.step for tensor, other in zip(finest, fine, strict=True)
    )


def test_what_lies_between_others_takes_little():
    """A moment on the way between two that are coded already needs no levels of its own."""
    first, (last,) = way(1)
    middle = {name: (first[name] + last[name]) / 2 for name in first}
    ends, between = codec.encode(first, [middle, last], within([middle, last], 0.06))
    assert size([between]) < size([ends]) / 20 and between["large"].mix == pytest.approx([0.5], abs=0.02)


def test_a_moment_of_another_model():
    first, moments = way()
    with pytest.raises(ValueError, match="must have the tensors"):
        codec.encode(first, [{"large": moments[0]["large"]}], within(moments, 1))
