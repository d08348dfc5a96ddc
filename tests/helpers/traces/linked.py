"""For tests of alignment: a linked pair, and traces with the weights that a test wants."""

from dataclasses import replace

import numpy as np
import synthetic

from attnviz import gold
from attnviz.trace import AttentionMap

PAIR = gold.parse("The black dog\nLe chien noir\n0-0 0-1? 1-2 2-1")[0]


def forced(pair, weights, layers=1, **options):
    """A trace of a pair with given cross weights [heads, target and <eos>, source and <eos>], the same in every
    layer."""
    trace = synthetic.trace(pair.source, pair.target, forced=True, **options)
    return replace(trace, maps=tuple(AttentionMap("cross", layer, weights) for layer in range(layers)))


def sharp(*keys, size):
    """One-hot rows."""
    return np.eye(size)[list(keys)]
