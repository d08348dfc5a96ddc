"""From the log-probabilities of a model to what a trace keeps of them. T steps, V tokens or labels."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attnviz.trace import Alternative

CHOICES = 5  # the most probable tokens that a trace keeps of each step


def of_tokens(log_probs: Tensor, ids: Sequence[int]) -> tuple[float, ...]:
    """log_probs (T, V) -> the T natural log-probabilities of `ids`."""
    return tuple(_chosen(log_probs, ids).tolist())


def total(log_probs: Tensor, ids: Sequence[int]) -> float:
    """log_probs (T, V) -> the natural log-probability of the whole sequence `ids`."""
    return float(_chosen(log_probs, ids).double().sum())


def _chosen(log_probs: Tensor, ids: Sequence[int]) -> Tensor:
    """(T, V) -> (T); rounding may not make one greater than 0."""
    return log_probs.gather(1, torch.as_tensor(ids).unsqueeze(1)).squeeze(1).clamp(max=0)


def alternatives(
    log_probs: Tensor, text_of: Callable[[int], str], count: int = CHOICES
) -> tuple[tuple[Alternative, ...], ...]:
    """log_probs (T, V) -> the `count` most probable of each step. text_of : id -> what readers see."""
    values, ids = log_probs.topk(min(count, log_probs.shape[-1]))
    return tuple(
        tuple(Alternative(text_of(number), probability) for number, probability in zip(*row))
        for row in zip(ids.tolist(), values.exp().tolist())
    )
