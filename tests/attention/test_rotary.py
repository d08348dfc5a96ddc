"""The causal mask, and positions as rotations of queries and keys."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz.attention import causal_mask, rotated


def test_the_causal_mask_by_hand():
    assert causal_mask(3, 3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True] * 4]  # two tokens were read before
    assert causal_mask(1, 3).tolist() == [[True] * 3]


def test_rotation_by_hand():
    # Width 4 has two pairs, (x0, x2) and (x1, x3), which turn by 1 and by 10000^(-2/4) = 1/100 a position.
    x = torch.tensor([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    wanted = [
        [1, 1, 0, 0],  # position 0 is not turned
        [math.cos(1), math.cos(0.01), math.sin(1), math.sin(0.01)],
        [-math.sin(2), -math.sin(0.02), math.cos(2), math.cos(0.02)],
    ]
    torch.testing.assert_close(rotated(x), torch.tensor(wanted))
    torch.testing.assert_close(rotated(x[1:], first=1), torch.tensor(wanted[1:]))


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 300), st.integers(0, 10_000))
def test_a_score_depends_on_how_far_apart_two_positions_are(a, b, shift, seed):
    query, key = torch.randn(2, 1, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    score = rotated(query, a) @ rotated(key, b).T
    score_of_shifted = rotated(query, a + shift) @ rotated(key, b + shift).T
    torch.testing.assert_close(score, score_of_shifted, atol=1e-3, rtol=1e-3)  # angles are float32


@pytest.mark.parametrize("first", [0, 5, 500])
def test_rotation_keeps_lengths(first):
    x = torch.randn(2, 3, 7, 16, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(rotated(x, first).norm(dim=-1), x.norm(dim=-1))
