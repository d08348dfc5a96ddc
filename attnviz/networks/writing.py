"""Continuing a text token by token: the candidates for the next token, the choice of one, and reading it with the
model.

Letters: T tokens, V vocabulary, H heads.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.arguments import shown
from attnviz.data.tokenizer import BOS, EOS
from attnviz.networks.decode import NEVER, drawn, without
from attnviz.networks.decoder_only import DecoderOnly, Reading

HOTTEST = 100.0  # a temperature at which every token is nearly as probable as any other


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. ValueError for a number out of range.

    temperature : the logits are divided by it; 0 takes the most probable token. top_k : the number of most probable
    tokens that may be drawn; 0 for all. top_p : of these, the smallest set with at least this total probability; 1 for
    all (Holtzman et al. 2020, sec. 3.1). seed : of the random numbers.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self):
        for name, fits, wanted in (
            ("temperature", _number(self.temperature) and 0 <= self.temperature <= HOTTEST, f"from 0 to {HOTTEST:g}"),
            ("top_k", _whole(self.top_k) and self.top_k >= 0, "a whole number of at least 0, where 0 means all tokens"),
            ("top_p", _number(self.top_p) and 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("seed", _whole(self.seed) and 0 <= self.seed < 2**63, "a whole number of at least 0 and below 2^63"),
        ):
            if not fits:
                raise ValueError(f"{name} must be {wanted}; got {shown(getattr(self, name))}")


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return _whole(value) or (isinstance(value, float | np.floating) and not math.isnan(value))


def allowed(logits: Tensor, how: Sampling, never: Sequence[int] = NEVER) -> Tensor:
    """logits (V) -> scores (V), whose softmax is the distribution that tokens are drawn from: -inf for tokens that are
    cut off or `never` drawn. With temperature 0 only the most probable is left."""
    scores = without(never, logits.double().unsqueeze(0))[0] if never else logits.double()
    if how.temperature == 0:
        best = scores.argmax()  # the first of equal ones
        return scores.masked_fill(torch.arange(len(scores), device=scores.device) != best, -torch.inf)
    scores = scores / how.temperature
    if not how.top_k and how.top_p == 1:  # to sort a large vocabulary takes milliseconds
        return scores
    order = scores.argsort(descending=True, stable=True)
    count = how.top_k or len(scores)
    before = F.pad(scores[order[:count]].softmax(dim=-1).cumsum(dim=-1)[:-1], (1, 0))
    left_out = order[count:], order[:count][before >= how.top_p]
    return scores.index_fill(0, torch.cat(left_out), -torch.inf)


def chooser(how: Sampling, never: Sequence[int] = NEVER) -> Callable[[Tensor], int]:
    """A function from logits (V) to the id of a token, which draws its own random numbers. never : as in `allowed`."""
    generator = np.random.default_rng(how.seed)
    return lambda logits: int(drawn(allowed(logits, how, never).unsqueeze(0), generator)[0])


def check_steps(steps: int) -> None:
    """ValueError unless it is a possible number of tokens to write."""
    if not _whole(steps) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1; got {shown(steps)}")


def checked_choices(choices: Mapping[int, int], fits: Callable[[int], bool], name: str) -> dict[int, int]:
    """Steps and ids of tokens that a person chose. ValueError for a token that the model `name` cannot write."""
    for step, number in choices.items():
        if not _whole(step) or step < 0:
            raise ValueError(f"choices must be of steps from 0; got {shown(step)}")
        if not _whole(number) or not fits(number):
            raise ValueError(f"choices must be tokens that {name} can write; got number {shown(number)}")
    return dict(choices)


@dataclass(frozen=True)
class Candidate:
    """A token that may come next. id : in the vocabulary. text : as a reader sees it. probability : the model's.
    drawn : the probability of drawing it, after temperature and cut-offs."""

    id: int
    text: str
    probability: float
    drawn: float


def candidates(logits: Tensor, scores: Tensor, name: Callable[[int], str], count: int) -> tuple[Candidate, ...]:
    """The `count` most probable tokens, by the logits (V) of the model. scores (V) : from `allowed`. name : id ->
    text."""
    best, drawn_with = logits.softmax(dim=-1).topk(min(count, len(logits))), scores.softmax(dim=-1)
    return tuple(
        Candidate(number, name(number), probability, float(drawn_with[number]))
        for number, probability in zip(best.indices.tolist(), best.values.tolist())
    )


@dataclass(frozen=True)
class Written:
    """ids (T) of the text and its continuation; logits (T, V) from which each was chosen; weights
    (H, T, T) of each layer, row t of the token that produced token t, 0 above the diagonal."""

    ids: list[int]
    logits: Tensor
    maps: list[Tensor]


@torch.inference_mode()
def write(model: DecoderOnly, ids: Sequence[int], steps: int, choose: Callable[[Tensor], int]) -> Written:
    """Read the ids of a text, then write up to `steps` tokens after it; fewer when one of them is <eos>.

    Keys and values of all tokens are cached, so a step reads one token. With 0 steps the text is only read.
    """
    readings: list[Reading] = []
    written, new = list(ids), [BOS, *ids]
    for _ in range(steps):
        readings.append(model.read(torch.tensor([new]), readings[-1].state if readings else ()))
        new = [choose(model.logits(readings[-1].readouts[0, -1]))]
        written += new
        if new[0] == EOS:
            break
    if not readings:
        readings.append(model.read(torch.tensor([new[:-1]])))
    logits = model.logits(torch.cat([reading.readouts for reading in readings], dim=1)[0])
    layers = zip(*(reading.maps for reading in readings))
    return Written(written, logits, [_joined(rows, len(written)) for rows in layers])


def _joined(rows: Sequence[Tensor], size: int) -> Tensor:
    """Weights (1, H, T', t) of the passes of one layer, t growing -> (H, T, T)."""
    return torch.cat([F.pad(weights[0], (0, size - weights.shape[-1])) for weights in rows], dim=1)
