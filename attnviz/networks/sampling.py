"""Translations drawn at random from a model: each token by its probability, given those before it."""

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.data.tokenizer import BOS, EOS
from attnviz.networks.decode import NEVER, limit, take_rows, without

LONGEST = 60  # tokens: at a text much longer than those of training, translations may go on and on
TEMPERATURE = 0.75  # the models are trained with smoothed labels, which leave too much to improbable tokens


@torch.inference_mode()
def sample(
    model: nn.Module, source: Tensor, count: int, temperature: float = TEMPERATURE, seed: int = 0
) -> list[list[int]]:
    """Ids of `count` translations of one sentence (1, S), each with its <eos> unless it was cut off (LONGEST).

    temperature : the logits are divided by it; below 1, probable tokens become more probable. The same seed gives the
    same translations.
    """
    chance = np.random.default_rng(seed)  # the process of the models has no torch.Generator
    open_rows = torch.arange(count, device=source.device)  # translations that have not ended
    memory = take_rows(model.encode(source), torch.zeros_like(open_rows))
    state, token = memory.state, source.new_full((count,), BOS)
    texts: list[list[int]] = [[] for _ in range(count)]
    for _ in range(min(LONGEST, limit(source.shape[1]))):
        step = model.step(memory, state, token)
        token = drawn(without(NEVER, step.logits / temperature), chance)
        for row, number in zip(open_rows.tolist(), token.tolist()):
            texts[row].append(number)
        left = (token != EOS).nonzero()[:, 0]
        if not len(left):
            break
        open_rows, token = open_rows[left], token[left]
        memory, state = take_rows(memory, left), take_rows(step.state, left)
    return texts


def drawn(scores: Tensor, chance: np.random.Generator) -> Tensor:
    """A token of each row of scores (B, V), from their softmax: where its running sum passes a random number."""
    sums = scores.double().softmax(dim=-1).cumsum(dim=-1)
    places = torch.from_numpy(chance.random((len(scores), 1))).to(scores.device) * sums[:, -1:]
    return torch.searchsorted(sums, places, right=True)[:, 0]
