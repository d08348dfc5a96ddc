"""From the logits of a model to the probabilities in a trace. B sentences, T steps, V tokens or labels.

Models return logits; the softmax is taken here.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnviz.trace import Alternative

CHOICES = 5  # the most probable tokens that a trace keeps of each step
ROWS = 128  # steps whose logits are worked out together: few enough not to fill the memory
Alternatives = tuple[tuple[Alternative, ...], ...]
Spell = Callable[[int], str]  # id -> what readers see


class TokenProbabilities(NamedTuple):
    """The probabilities in a trace. log_probs : of the T tokens. alternatives : of each step; () if not requested."""

    log_probs: tuple[float, ...]
    alternatives: Alternatives = ()


def _of_tokens(log_probs: Tensor, ids: Sequence[int]) -> tuple[float, ...]:
    """log_probs (T, V) -> the T natural log-probabilities of `ids`. Values are clipped to at most 0, because of
    rounding."""
    return tuple(np.minimum(log_probs.numpy()[np.arange(len(ids)), ids], 0).tolist())


def _alternatives(log_probs: Tensor, text_of: Spell, count: int = CHOICES) -> Alternatives:
    """log_probs (T, V) -> the `count` most probable of each step."""
    values, ids = log_probs.topk(min(count, log_probs.shape[-1]))
    return tuple(
        tuple(map(Alternative, map(text_of, numbers), probabilities))
        for numbers, probabilities in zip(ids.tolist(), values.exp().tolist())
    )


def total(logits: Tensor, ids: Sequence[int]) -> float:
    """logits (T, V) -> the natural log-probability of the whole sequence `ids`."""
    return sum(_of_tokens(torch.log_softmax(logits, dim=-1), ids))


def alternatives(logits: Tensor, text_of: Spell) -> Alternatives:
    """logits (T, V) -> the CHOICES most probable of each step."""
    return _alternatives(torch.log_softmax(logits, dim=-1), text_of)


def of_sentence(logits: Tensor, ids: Sequence[int], text_of: Spell, count: int = CHOICES) -> TokenProbabilities:
    """logits (T, V) -> the probabilities of the tokens `ids`, with `count` alternatives per step."""
    log_probs = torch.log_softmax(logits, dim=-1)
    return TokenProbabilities(_of_tokens(log_probs, ids), _alternatives(log_probs, text_of, count))


@torch.inference_mode()
def of_batch(
    readouts: Tensor, tokens: Tensor, steps: Sequence[int], project: Callable[[Tensor], Tensor], text_of: Spell | None
) -> list[TokenProbabilities]:
    """`of_sentence` of each sentence, without the logits of padding, and never with all logits in memory.

    readouts (B, T, D), which `project` turns into logits. tokens : (B, T) ids. steps : of each sentence. text_of : None
    leaves out the alternatives.
    """
    real: tuple | Tensor = torch.arange(tokens.shape[1]) < torch.tensor(steps)[:, None]
    if len(steps) == 1:
        real = (0, slice(steps[0]))  # a view, no copy
    chosen: list[float] = []
    choices: list[tuple[Alternative, ...]] = []
    for rows, ids in zip(readouts[real].split(ROWS), tokens[real].split(ROWS)):
        logits = project(rows)
        own = None if logits is rows else logits  # in place: half the memory
        log_probs = torch.log_softmax(logits, dim=-1, out=own)
        chosen += log_probs.gather(1, ids[:, None])[:, 0].clamp(max=0).tolist()
        choices += () if text_of is None else _alternatives(log_probs, text_of)
    numbers, others = iter(chosen), iter(choices)
    return [TokenProbabilities(tuple(islice(numbers, count)), tuple(islice(others, count))) for count in steps]


def when_read(read: Callable[[], list[TokenProbabilities]], count: int) -> list[Callable[[], tuple[float, ...]]]:
    """The log-probabilities of each of the `count` sentences of a batch, each as a function. The first call computes
    those of the whole batch."""
    whole_batch = cache(read)

    def log_probs_of(place: int) -> Callable[[], tuple[float, ...]]:
        return lambda: whole_batch()[place].log_probs

    return [log_probs_of(place) for place in range(count)]
