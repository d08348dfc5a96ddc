"""Scores taken apart: the terms whose sum is the score, for each score function of attention.py.

Letters: S source tokens, D width of query and keys, N hidden units.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from attnviz.attention import Additive, Concat, Dot, General, Local, MultiHead, ScaledDot, local_window
from attnviz.inside.replay import AttentionInputs

Terms = Callable[[AttentionInputs], Tensor]


def products(inputs: AttentionInputs) -> Tensor:
    """q_i k_i (S, D), where k may be W h: dot, general and local."""
    return inputs.query * inputs.prepared


def scaled_products(inputs: AttentionInputs) -> Tensor:
    """q_i k_i / sqrt(D) (S, D): scaled dot, and one head of multi-head."""
    return inputs.query * inputs.query.shape[-1] ** -0.5 * inputs.prepared


def additive(inputs: AttentionInputs) -> Tensor:
    """v_n tanh(W q + U k)_n (S, N)."""
    attention = inputs.attention
    return attention.energy.weight[0] * torch.tanh(attention.query(inputs.query) + inputs.prepared)


def concat(inputs: AttentionInputs) -> Tensor:
    """v_n tanh(W [q; k])_n (S, N)."""
    attention = inputs.attention
    projected = inputs.query @ attention.joint.weight[:, : attention.query_width].T
    return attention.energy.weight[0] * torch.tanh(projected + inputs.prepared)


DIMENSION, HIDDEN_UNIT = "dimension", "hidden unit"
TERMS: dict[type, tuple[Terms, str]] = {
    Dot: (products, DIMENSION),
    ScaledDot: (scaled_products, DIMENSION),
    General: (products, DIMENSION),
    Local: (products, DIMENSION),
    MultiHead: (scaled_products, DIMENSION),
    Additive: (additive, HIDDEN_UNIT),
    Concat: (concat, HIDDEN_UNIT),
}


def terms(inputs: AttentionInputs) -> tuple[Tensor, str]:
    """The terms of each key's score (S, N), and what one term belongs to."""
    function, unit = TERMS[type(inputs.attention)]
    return function(inputs), unit


def scores(inputs: AttentionInputs) -> Tensor:
    """Scores (S,) as the model's own attention gives them, before any window or mask."""
    if isinstance(inputs.attention, MultiHead):
        return scaled_products(inputs).sum(-1)
    return inputs.attention.score(inputs.query[None, None], inputs.prepared[None])[0, 0]


def window(inputs: AttentionInputs) -> tuple[float, Tensor, Tensor] | None:
    """Centre, logarithm of the Gaussian (S,) and window (S,) bool of local attention; None of any other."""
    if not isinstance(inputs.attention, Local):
        return None
    size = len(inputs.values)
    centre = inputs.attention.centre(inputs.query[None, None], torch.tensor([[float(size)]]))
    gaussian, seen = local_window(centre, size, inputs.attention.reach)
    return float(centre), gaussian[0, 0], seen[0, 0]
