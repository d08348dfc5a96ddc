"""From the log-probabilities of a model to what a trace keeps of them. T steps, V tokens or labels."""

from collections.abc import Callable, Sequence

from torch import Tensor

from attnviz.trace import Alternative

CHOICES = 5  # the most probable tokens that a trace keeps of each step


def of_tokens(log_probs: Tensor, ids: Sequence[int]) -> tuple[float, ...]:
    """log_probs (T, V) -> the T natural log-probabilities of `ids`. Rounding may not make one greater than 0."""
    values = log_probs.numpy()
    return tuple(min(values.item(step, number), 0.0) for step, number in enumerate(ids))


def total(log_probs: Tensor, ids: Sequence[int]) -> float:
    """log_probs (T, V) -> the natural log-probability of the whole sequence `ids`."""
    return sum(of_tokens(log_probs, ids))


def alternatives(
    log_probs: Tensor, text_of: Callable[[int], str], count: int = CHOICES
) -> tuple[tuple[Alternative, ...], ...]:
    """log_probs (T, V) -> the `count` most probable of each step. text_of : id -> what readers see."""
    values, ids = log_probs.topk(min(count, log_probs.shape[-1]))
    return tuple(
        tuple(Alternative(text_of(number), probability) for number, probability in zip(*row))
        for row in zip(ids.tolist(), values.exp().tolist())
    )
