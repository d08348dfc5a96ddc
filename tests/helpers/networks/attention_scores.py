"""Each score function with its formula in NumPy, and numbers to try it on."""

import math

import numpy as np
import pytest
import torch

from attnviz.attention import Additive, Concat, Dot, General, ScaledDot

# The oracle: plain loops over batch, query and key, written from the papers and not from the code.
DQ, DK, DV, A, B, T, S = 5, 7, 3, 4, 2, 3, 6  # every width its own number, so that none can stand in for another


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def matrix(layer):
    return layer.weight.detach().double().numpy()


MECHANISMS = {  # name: (module, query width, its score in numpy)
    "dot": (Dot, DK, lambda m: lambda q, k: sum(a * b for a, b in zip(q, k))),
    "scaled dot": (ScaledDot, DK, lambda m: lambda q, k: sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q))),
    "general": (lambda: General(DQ, DK), DQ, lambda m: lambda q, k: q @ (matrix(m.key) @ k)),
    "additive": (
        lambda: Additive(DQ, DK, A),
        DQ,
        lambda m: lambda q, k: matrix(m.energy)[0] @ np.tanh(matrix(m.query) @ q + matrix(m.key) @ k),
    ),
    "concat": (
        lambda: Concat(DQ, DK, A),
        DQ,
        lambda m: lambda q, k: matrix(m.energy)[0] @ np.tanh(matrix(m.joint) @ np.concatenate([q, k])),
    ),
}
every = pytest.mark.parametrize("name", MECHANISMS)


def module_query_and_score(name):
    build, width, score = MECHANISMS[name]
    torch.manual_seed(3)
    module = build()
    return module, numbers(B, T, width), score(module)
