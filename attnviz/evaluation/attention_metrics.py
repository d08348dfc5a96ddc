"""Statistics of cross-attention, added up batch by batch while a model translates.

A metric has `add(unrolled, lengths, source_lengths)` for each batch, and `result()` at the end. lengths : target rows
of each sentence; later rows do not count. source_lengths : pieces of each source, <eos> included.
Letters: L layers, B batch, H heads, T target rows, S source positions.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from attnviz.data.tokenizer import EOS
from attnviz.networks.decode import Unrolled


class AttentionMetric(Protocol):
    def add(self, unrolled: Unrolled, lengths: Sequence[int], source_lengths: Sequence[int]) -> None: ...

    def result(self) -> dict: ...


def attention_sums(layers: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """(3,): the sum of the entropies (nats), the sum of the maximum weights, and the number of rows, in all heads and
    layers.

    layers : weights (B, H, T, S) of each layer. lengths : rows of each sentence; later rows do not count.
    """
    if not layers:
        return torch.zeros(3, dtype=torch.float64)
    weights = torch.stack(list(layers)).double().cpu()  # (L, B, H, T, S)
    real = torch.arange(weights.shape[3]) < torch.tensor(lengths).unsqueeze(1)  # (B, T)
    weights = weights.movedim(2, -2)[:, real]  # (L, real rows, H, S)
    entropy = torch.special.entr(weights / weights.sum(-1, keepdim=True)).sum(-1)  # the 0 of padding adds 0
    return torch.stack([entropy.sum(), weights.amax(-1).sum(), torch.tensor(float(entropy.numel())).double()])


class MeanEntropy:
    """entropy_nats, max_weight : means over all rows, heads and layers. None without attention."""

    def __init__(self):
        self.sums = torch.zeros(3, dtype=torch.float64)

    def add(self, unrolled: Unrolled, lengths: Sequence[int], source_lengths: Sequence[int]) -> None:
        self.sums += attention_sums(unrolled.cross, lengths)

    def result(self) -> dict:
        entropy, max_weight, rows = self.sums.tolist()
        return {"entropy_nats": entropy / rows if rows else None, "max_weight": max_weight / rows if rows else None}


class EntropyBySentence:
    """by_sentence : for each sentence, in the order of decoding, the number of source pieces (<eos> included) and the
    mean entropy (nats) of its rows in all heads and layers. None without attention."""

    def __init__(self):
        self.sentences: list[tuple[int, float]] = []

    def add(self, unrolled: Unrolled, lengths: Sequence[int], source_lengths: Sequence[int]) -> None:
        if not unrolled.cross:
            return
        for i, (length, pieces) in enumerate(zip(lengths, source_lengths)):
            entropy, _, rows = attention_sums([layer[i : i + 1] for layer in unrolled.cross], [length]).tolist()
            self.sentences.append((pieces, entropy / rows))

    def result(self) -> dict:
        return {"by_sentence": self.sentences or None}


class AntiDiagonal:
    """The share (%) of steps that attend most to the correct piece when a sequence is reversed: step t of n to piece n
    - 1 - t.

    antidiagonal : of the best head. antidiagonal_heads : of each head, by layer. None without attention. <eos> rows do
    not count. A step beyond the length of the source counts as wrong.
    """

    def __init__(self):
        self.correct, self.steps = None, 0

    def add(self, unrolled: Unrolled, lengths: Sequence[int], source_lengths: Sequence[int]) -> None:
        if not unrolled.cross:
            return
        attended = torch.stack(unrolled.cross).argmax(-1).cpu()  # (L, B, H, T)
        steps = torch.arange(attended.shape[-1])
        real = (steps < torch.tensor(lengths).unsqueeze(1)) & (unrolled.tokens.cpu() != EOS)  # (B, T)
        expected = torch.tensor(source_lengths).unsqueeze(1) - 2 - steps  # (B, T); length - 2 is the piece before <eos>
        correct = ((attended == expected.unsqueeze(1)) & real.unsqueeze(1)).sum((1, 3))  # (L, H)
        self.correct = correct if self.correct is None else self.correct + correct
        self.steps += int(real.sum())

    def result(self) -> dict:
        if self.correct is None or not self.steps:
            return {"antidiagonal": None, "antidiagonal_heads": None}
        shares = 100 * self.correct.double() / self.steps
        return {
            "antidiagonal": round(shares.max().item(), 2),
            "antidiagonal_heads": [[round(share, 2) for share in layer] for layer in shares.tolist()],
        }


ATTENTION_METRICS = {"antidiagonal": AntiDiagonal}  # those that a task may name in the table of tasks
