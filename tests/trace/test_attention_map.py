"""AttentionMap: the maps of all layers of a kind, made at once."""

import numpy as np
import pytest

from attnviz.trace import AttentionMap


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_all_layers_at_once_are_those_one_by_one(kind):
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 2, 5)).astype(np.float32)
    maps = AttentionMap.of_layers(kind, weights)
    assert maps == tuple(AttentionMap(kind, layer, each) for layer, each in enumerate(weights))
    weights[:] = 0
    assert maps[2].weights.sum() == pytest.approx(10) and not maps[2].weights.flags.writeable


@pytest.mark.parametrize("wrong", [np.nan, -0.5, 0.5, np.inf])
def test_all_layers_at_once_are_refused_as_one_by_one(wrong):
    weights = np.full((2, 1, 2, 2), 0.5)
    weights[1, 0, 1, 0] += wrong
    with pytest.raises(ValueError) as alone:
        AttentionMap("cross", 1, weights[1])
    with pytest.raises(ValueError) as together:
        AttentionMap.of_layers("cross", weights)
    assert str(together.value) == str(alone.value) and "the cross map of layer 1" in str(alone.value)
