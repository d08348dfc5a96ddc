"""Scores taken apart: the terms whose sum is the score, for each score function of attention.py.

Letters: S source tokens, D width of query and keys, N hidden units.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from attnviz.attention import Additive, Concat, Dot, General, Local, MultiHead, ScaledDot, local_window
from attnviz.inside.replay import Moment

Terms = Callable[[Moment], Tensor]


def products(asked: Moment) -> Tensor:
    """q_i k_i (S, D), where k may be W h: dot, general and local."""
    return asked.query * asked.prepared


def scaled_products(asked: Moment) -> Tensor:
    """q_i k_i / sqrt(D) (S, D): scaled dot, and one head of multi-head."""
    return asked.query * asked.query.shape[-1] ** -0.5 * asked.prepared


def additive(asked: Moment) -> Tensor:
    """v_n tanh(W q + U k)_n (S, N)."""
    attention = asked.attention
    return attention.energy.weight[0] * torch.tanh(attention.query(asked.query) + asked.prepared)


def concat(asked: Moment) -> Tensor:
    """v_n tanh(W [q; k])_n (S, N)."""
    attention = asked.attention
    projected = asked.query @ attention.joint.weight[:, : attention.query_width].T
    return attention.energy.weight[0] * torch.tanh(projected + asked.prepared)


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


def terms(asked: Moment) -> tuple[Tensor, str]:
    """The terms of each key's score (S, N), and what one term belongs to."""
    function, unit = TERMS[type(asked.attention)]
    return function(asked), unit


def scores(asked: Moment) -> Tensor:
    """Scores (S,) as the model's own attention gives them, before any window or mask."""
    if isinstance(asked.attention, MultiHead):
        return scaled_products(asked).sum(-1)
    return asked.attention.score(asked.query[None, None], asked.prepared[None])[0, 0]


def window(asked: Moment) -> tuple[float, Tensor, Tensor] | None:
    """Centre, logarithm of the Gaussian (S,) and window (S,) bool of local attention; None of any other."""
    if not isinstance(asked.attention, Local):
        return None
    size = len(asked.values)
    centre = asked.attention.centre(asked.query[None, None], torch.tensor([[float(size)]]))
    gaussian, seen = local_window(centre, size, asked.attention.reach)
    return float(centre), gaussian[0, 0], seen[0, 0]
