"""Moments of a run, coded from the last one backwards, and restored; how near a difference comes back."""

import numpy as np
import pytest

from attnviz.moments import codec


def of_rank(rank, shape=(300, 120), seed=0):
    generator = np.random.default_rng(seed)
    product = generator.normal(0, 1, (shape[0], rank)) @ generator.normal(0, 1, (rank, shape[1]))
    return (product / rank**0.5).astype(np.float32)


def coded_and_decoded(difference, step):
    coded = codec.Difference(difference).coded(step)
    assert len(coded.levels) == codec.count_levels(difference.shape, coded.rank)
    return coded, codec.decode_difference(difference.shape, *coded)


def root_mean_square(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


@pytest.mark.parametrize("shape", [(300, 120), (120, 300)])
@pytest.mark.parametrize("rank", [1, 5, 20])
def test_few_directions_are_found_and_stored(shape, rank):
    difference = of_rank(rank, shape)
    coded, restored = coded_and_decoded(difference, 0.05)
    assert coded.rank == rank and len(coded.levels) == rank * (300 + 120)
    assert root_mean_square(difference, restored) < 0.05


def test_a_matrix_that_changes_in_all_directions_is_stored_as_it_is():
    difference = np.random.default_rng(1).normal(0, 1, (300, 120)).astype(np.float32)
    coded, restored = coded_and_decoded(difference, 0.5)
    assert coded.rank == codec.AS_IT_IS and coded.levels.size == difference.size
    assert root_mean_square(difference, restored) == pytest.approx(0.5 / 12**0.5, rel=0.02)  # rounding, evenly spread


def test_what_is_small_against_the_step_is_left_out():
    coded, restored = coded_and_decoded(of_rank(5), 100.0)
    assert coded.rank == 0 and not restored.any() and restored.shape == (300, 120)


@pytest.mark.parametrize("shape", [(40,), (30, 20), (25_000,)])
def test_other_tensors_are_stored_as_they_are(shape):
    difference = np.random.default_rng(2).normal(0, 3, shape).astype(np.float32)
    coded, restored = coded_and_decoded(difference, 0.5)
    assert coded.rank == codec.AS_IT_IS and restored.shape == shape
    assert root_mean_square(difference, restored) < (0.05 * 3 if difference.size < codec.SMALL else 0.5) / 12**0.5 * 1.1


def test_a_tensor_that_did_not_change():
    coded, restored = coded_and_decoded(np.zeros((200, 150), np.float32), 1e-12)
    assert coded.rank == 0 and not restored.any()


@pytest.mark.parametrize("shape, rank", [((5,), 1), ((4, 3), 4), ((4, 3), -2)])
def test_a_rank_that_cannot_be(shape, rank):
    with pytest.raises(ValueError, match="has no"):
        codec.count_levels(shape, rank)


SHAPES = {"large": (200, 150), "small": (40,)}


def wandering_weights(count=4, seed=0):
    """The weights of an untrained model, and weights that wander from there to another place."""
    generator = np.random.default_rng(seed)
    ends = [{name: generator.normal(0, 1, shape) for name, shape in SHAPES.items()} for _ in range(2)]
    moments = [
        {
            name: (1 - part) * ends[0][name] + part * ends[1][name] + 0.1 * generator.normal(0, 1, shape)
            for name, shape in SHAPES.items()
        }
        for part in np.linspace(0.2, 1, count)
    ]
    first, *moments = (
        {name: value.astype(np.float32) for name, value in weights.items()} for weights in (ends[0], *moments)
    )
    return first, moments


def near_enough(moments, most):
    return lambda number, weights: root_mean_square(weights["large"], moments[number]["large"]) <= most


def size(entries):
    return sum(np.count_nonzero(tensor.coded.levels) for entry in entries for tensor in entry.values())


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_every_moment_comes_back_in_its_place(count):
    first, moments = wandering_weights(count)
    restored = dict(codec.decode(first, codec.encode(first, moments, near_enough(moments, 0.05))))
    assert sorted(restored) == list(range(count)) == sorted(codec.order(count)) and codec.order(count)[0] == count - 1
    for number, moment in enumerate(moments):
        assert root_mean_square(restored[number]["large"], moment["large"]) <= 0.05
        assert root_mean_square(restored[number]["small"], moment["small"]) < 0.04


def test_as_coarse_as_is_near_enough():
    first, moments = wandering_weights()
    fine, coarse = (codec.encode(first, moments, near_enough(moments, most)) for most in (0.05, 0.2))
    assert size(coarse) < size(fine)
    finest = codec.encode(first, moments, lambda number, weights: False)
    assert all(
        tensor["large"].coded.step <= other["large"].coded.step for tensor, other in zip(finest, fine, strict=True)
    )


def test_what_lies_between_others_takes_little():
    """A moment on the way between two that are coded already needs no levels of its own."""
    first, (last,) = wandering_weights(1)
    middle = {name: (first[name] + last[name]) / 2 for name in first}
    ends, between = codec.encode(first, [middle, last], near_enough([middle, last], 0.06))
    assert size([between]) < size([ends]) / 20 and between["large"].mix == pytest.approx([0.5], abs=0.02)


def test_a_moment_of_another_model():
    first, moments = wandering_weights()
    with pytest.raises(ValueError, match="must have the tensors"):
        codec.encode(first, [{"large": moments[0]["large"]}], near_enough(moments, 1))
