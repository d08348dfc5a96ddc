"""Figures of attention, summed up batch by batch while a model translates.

Letters: L layers, B batch, H heads, T target rows, S source positions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from attnviz.data.tokenizer import EOS
from attnviz.networks.decode import Unrolled


def attention_sums(layers: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Entropy (nats) and maximum weight summed over the real rows of all heads and layers, and their number: (3,).

    layers : weights (B, H, T, S) of each. lengths : rows of each sentence; what comes after them does not count.
    """
    if not layers:
        return torch.zeros(3, dtype=torch.float64)
    weights = torch.stack(list(layers)).double().cpu()  # (L, B, H, T, S)
    real = torch.arange(weights.shape[3]) < torch.tensor(lengths).unsqueeze(1)  # (B, T)
    weights = weights.movedim(2, -2)[:, real]  # (L, real rows, H, S)
    entropy = torch.special.entr(weights / weights.sum(-1, keepdim=True)).sum(-1)  # padding's 0 adds 0
    return torch.stack([entropy.sum(), weights.amax(-1).sum(), torch.tensor(float(entropy.numel())).double()])


class Spread:
    """Mean entropy and maximum weight, summed up batch by batch."""

    def __init__(self):
        self.sums = torch.zeros(3, dtype=torch.float64)

    def add(self, unrolled: Unrolled, lengths: Sequence[int], sources: Sequence[int]) -> None:
        self.sums += attention_sums(unrolled.cross, lengths)

    def figures(self) -> dict:
        entropy, largest, rows = self.sums.tolist()
        return {"entropy_nats": entropy / rows if rows else None, "max_weight": largest / rows if rows else None}


class BySentence:
    """by_sentence : (pieces of the source, <eos> included; mean entropy in nats of its rows in every head and layer) of each
    sentence, in the order of decoding. None without attention."""

    def __init__(self):
        self.found: list[tuple[int, float]] = []

    def add(self, unrolled: Unrolled, lengths: Sequence[int], sources: Sequence[int]) -> None:
        for i, (length, pieces) in enumerate(zip(lengths, sources)) if unrolled.cross else ():
            entropy, _, rows = attention_sums([layer[i : i + 1] for layer in unrolled.cross], [length]).tolist()
            self.found.append((pieces, entropy / rows))

    def figures(self) -> dict:
        return {"by_sentence": self.found or None}


class AntiDiagonal:
    """Share (%) of steps that look most at the piece they should when a sequence is reversed: step t of n at n - 1 - t.

    antidiagonal : of the head that does so most; antidiagonal_heads : of each, by layer. <eos> rows do not count, and a step
    beyond the source's length is wrong. None without attention.
    """

    def __init__(self):
        self.right, self.steps = None, 0

    def add(self, unrolled: Unrolled, lengths: Sequence[int], sources: Sequence[int]) -> None:
        """sources : pieces of each source, <eos> included."""
        if not unrolled.cross:
            return
        best = torch.stack(unrolled.cross).argmax(-1).cpu()  # (L, B, H, T)
        steps = torch.arange(best.shape[-1])
        real = (steps < torch.tensor(lengths).unsqueeze(1)) & (unrolled.tokens.cpu() != EOS)  # (B, T)
        wanted = torch.tensor(sources).unsqueeze(1) - 2 - steps  # (B, T); the last piece before <eos> is at sources - 2
        right = ((best == wanted.unsqueeze(1)) & real.unsqueeze(1)).sum((1, 3))  # (L, H)
        self.right = right if self.right is None else self.right + right
        self.steps += int(real.sum())

    def figures(self) -> dict:
        if self.right is None or not self.steps:
            return {"antidiagonal": None, "antidiagonal_heads": None}
        shares = 100 * self.right.double() / self.steps
        return {
            "antidiagonal": round(shares.max().item(), 2),
            "antidiagonal_heads": [[round(share, 2) for share in layer] for layer in shares.tolist()],
        }


TALLIES = {"antidiagonal": AntiDiagonal}  # those that a task may name in the table of tasks
