"""A difference of weights as whole numbers: how near it comes back, and what it takes."""

import numpy as np
import pytest

from attnviz.moments import matrices


def of_rank(rank, shape=(300, 120), seed=0):
    chance = np.random.default_rng(seed)
    product = chance.normal(0, 1, (shape[0], rank)) @ chance.normal(0, 1, (rank, shape[1]))
    return (product / rank**0.5).astype(np.float32)


def back(difference, step):
    coded = matrices.Difference(difference).coded(step)
    assert len(coded.levels) == matrices.count(difference.shape, coded.rank)
    return coded, matrices.decode(difference.shape, *coded)


def apart(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


@pytest.mark.parametrize("shape", [(300, 120), (120, 300)])
@pytest.mark.parametrize("rank", [1, 5, 20])
def test_few_directions_are_found_and_stored(shape, rank):
    difference = of_rank(rank, shape)
    coded, restored = back(difference, 0.05)
    assert coded.rank == rank and len(coded.levels) == rank * (300 + 120)
    assert apart(difference, restored) < 0.05


def test_a_matrix_that_changes_in_all_directions_is_stored_as_it_is():
    difference = np.random.default_rng(1).normal(0, 1, (300, 120)).astype(np.float32)
    coded, restored = back(difference, 0.5)
    assert coded.rank == matrices.AS_IT_IS and coded.levels.size == difference.size
    assert apart(difference, restored) == pytest.approx(0.5 / 12**0.5, rel=0.02)  # rounding, evenly spread


def test_what_is_small_against_the_step_is_left_out():
    coded, restored = back(of_rank(5), 100.0)
    assert coded.rank == 0 and not restored.any() and restored.shape == (300, 120)


@pytest.mark.parametrize("shape", [(40,), (30, 20), (25_000,)])
def test_other_tensors_are_stored_as_they_are(shape):
    difference = np.random.default_rng(2).normal(0, 3, shape).astype(np.float32)
    coded, restored = back(difference, 0.5)
    assert coded.rank == matrices.AS_IT_IS and restored.shape == shape
    assert apart(difference, restored) < (0.05 * 3 if difference.size < matrices.SMALL else 0.5) / 12**0.5 * 1.1


def test_a_tensor_that_did_not_change():
    coded, restored = back(np.zeros((200, 150), np.float32), 1e-12)
    assert coded.rank == 0 and not restored.any()


@pytest.mark.parametrize("shape, rank", [((5,), 1), ((4, 3), 4), ((4, 3), -2)])
def test_a_rank_that_cannot_be(shape, rank):
    with pytest.raises(ValueError, match="has no"):
        matrices.count(shape, rank)
