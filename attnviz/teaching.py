"""Knowledge distillation: a model that learns from what trained ones say of each target token, and not from the token alone.

Hinton, Vinyals & Dean 2015; token by token, Kim & Rush 2016, sec. 3.1. The teachers speak once, before training, without
dropout; of each token their KEPT most probable pieces are remembered. Letters: B sentences, T target tokens, K = KEPT.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from attnviz import corpora
from attnviz.recipes import Settings
from attnviz.run import Run
from attnviz.text import Text

KEPT = 16
BATCH = 64  # sentences that the teachers read at once


class Lesson(NamedTuple):
    """What the teachers say of the tokens of one target: the mean of their probabilities, without the least of them."""

    pieces: Tensor  # (T, K), the most probable first
    shares: Tensor  # (T, K), each row sums to 1


@torch.inference_mode()
def lessons(teachers: Sequence[nn.Module], data: list[tuple[list[int], list[int]]], device: str) -> list[Lesson]:
    """teachers in evaluation mode, data as `Run.encode` gives it -> the lesson of each pair."""
    found: list[Lesson] = [None] * len(data)  # type: ignore[list-item]
    order = sorted(range(len(data)), key=lambda i: len(data[i][1]))
    for first in tqdm(range(0, len(data), BATCH), desc="teachers", unit="batch", leave=False):
        chosen = order[first : first + BATCH]
        source, target = (corpora.pad([data[i][side] for i in chosen]).to(device) for side in (0, 1))
        mean = sum(Run.logits(teacher, source, target).float().softmax(dim=-1) for teacher in teachers) / len(teachers)
        shares, pieces = mean.topk(min(KEPT, mean.shape[-1]), dim=-1)
        shares = shares / shares.sum(dim=-1, keepdim=True)
        for row, i in enumerate(chosen):
            length = len(data[i][1])
            found[i] = Lesson(pieces[row, :length].int().cpu(), shares[row, :length].half().cpu())
    return found


def lesson_loss(logits: Tensor, pieces: Tensor, shares: Tensor) -> Tensor:
    """logits (B, T, V), pieces and shares (B, T, K) -> mean cross-entropy against the teachers over real tokens, nats.

    The shares of padding are 0. Kim & Rush 2016, the loss "WORD-KD".
    """
    said = torch.log_softmax(logits.float(), dim=-1).gather(2, pieces)
    return -(said * shares).sum() / shares.sum()


class TaughtRun(Run):
    """A run whose loss is, by the share `teaching`, that of the lessons. ValueError for what changes the text they are of."""

    def __init__(self, plan: Settings, text: Text, pairs: corpora.Pairs, device: str, compile: bool = True,
                 teachers: Sequence[nn.Module] = ()):  # fmt: skip
        if plan.piece_dropout or plan.consistency:
            raise ValueError("piece_dropout and consistency must be 0 with a teacher; leave them out")
        super().__init__(plan, text, pairs, device, compile)
        self.lessons = lessons([teacher.to(device).eval() for teacher in teachers], self.whole, device)
        self.lesson = self.fuse(lesson_loss)

    def objective(self, batch: list[int]) -> Tensor:
        source, target = self.tensors(batch)
        logits = self._logits(source, target)
        pieces, shares = (pad_sequence([self.lessons[i][part] for i in batch], batch_first=True).to(self.device) for part in (0, 1))
        own = self.loss(logits, target, self.plan.label_smoothing, self.padding)
        return own.lerp(self.lesson(logits, pieces.long(), shares.float()), self.plan.teaching)
