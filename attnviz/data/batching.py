"""Pairs as piece ids, and piece ids as padded batches of similar lengths."""

import random

import torch
from torch import Tensor

from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import PAD, SubwordTokenizer


def encode(pairs: Pairs, tokenizer: SubwordTokenizer) -> list[tuple[list[int], list[int]]]:
    """Pairs as piece ids, <eos> last on both sides."""
    return list(zip(tokenizer.batch_ids([a for a, _ in pairs]), tokenizer.batch_ids([b for _, b in pairs])))


def pieces(pairs: Pairs, tokenizer: SubwordTokenizer, labelled: bool) -> list[tuple[list[int], ...]]:
    """The texts of each pair as piece ids, <eos> last: both sides, or only the sentence if the other is a label."""
    return list(zip(*(tokenizer.batch_ids([pair[side] for pair in pairs]) for side in range(1 if labelled else 2))))


def batches(lengths: list[int], tokens: int, generator: random.Random) -> list[list[int]]:
    """Indices in batches of about `tokens` padded tokens, similar lengths together, the batches in random order."""
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], generator.random()))
    result, batch = [], []
    for i in order:
        if batch and (len(batch) + 1) * lengths[i] > tokens:
            result.append(batch)
            batch = []
        batch.append(i)
    result.append(batch)
    generator.shuffle(result)
    return result


def pad(rows: list[list[int]]) -> Tensor:
    """Ragged ids as one matrix (B, longest), padded at the end."""
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
