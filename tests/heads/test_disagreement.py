"""Two maps of the same tokens, step by step: by hand, and against scipy."""

import numpy as np
import pytest
from grids import grid, words
from scipy.spatial.distance import jensenshannon

from attnviz import heads

QUERIES, KEYS = words("chien", "noir"), words("dog", "black")
A = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
B = np.array([[0, 1, 0], [0.5, 0.5, 0], [0.6, 0.3, 0.1]])


def test_by_hand():
    """Step 1: no key in common, 1. Step 2: equal rows, 0, and the same argmax. Step 3: other argmax."""
    seen = heads.disagreement(grid(QUERIES, KEYS, A), grid(QUERIES, KEYS, B))
    assert seen.distances[:2] == pytest.approx([1, 0], abs=1e-6)
    assert seen.same_argmax.tolist() == [0, 1, 0] and seen.share_same == pytest.approx(1 / 3)
    assert seen.largest == 0 and seen.mean_distance == pytest.approx(seen.distances.mean())


def test_against_scipy():
    seen = heads.disagreement(grid(QUERIES, KEYS, A), grid(QUERIES, KEYS, B))
    oracle = [jensenshannon(a, b, base=2) for a, b in zip(A, B, strict=True)]
    assert seen.distances == pytest.approx(oracle, abs=1e-3)


def test_blank_rows_do_not_count():
    blank = A.copy()
    blank[0] = np.nan
    seen = heads.disagreement(grid(QUERIES, KEYS, blank), grid(QUERIES, KEYS, B))
    assert np.isnan(seen.distances[0]) and seen.share_same == 0.5 and seen.largest == 2
    nothing = heads.disagreement(grid(QUERIES, KEYS, np.full((3, 3), np.nan)), grid(QUERIES, KEYS, B))
    assert nothing.largest is None and np.isnan(nothing.mean_distance)


def test_other_tokens_are_refused():
    with pytest.raises(ValueError, match="two maps must share queries and keys"):
        heads.disagreement(grid(QUERIES, KEYS, A), grid(words("chat", "noir"), KEYS, B))
