"""Losses on logits. Letters: B batch, T target tokens, V vocabulary."""

import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.data.tokenizer import PAD


def token_loss(logits: Tensor, target: Tensor, smoothing: float, padding: int = PAD) -> Tensor:
    """logits (B, T, V), target (B, T) -> mean cross-entropy (nats) over the tokens that are not `padding`."""
    flat = logits.float().flatten(0, 1)
    return F.cross_entropy(flat, target.flatten(), ignore_index=padding, label_smoothing=smoothing)


def consistency_loss(logits: Tensor, target: Tensor, padding: int = PAD) -> Tensor:
    """logits (2 B, T, V) of two passes one after the other, target (B, T) -> half of KL(p || q) + KL(q || p) (nats),
    mean over the tokens that are not `padding`. R-Drop, Liang et al. 2021, eq. 2."""
    p, q = (torch.log_softmax(half.float(), dim=-1) for half in logits.chunk(2))
    symmetric_kl, real = ((p.exp() - q.exp()) * (p - q)).sum(dim=-1), target != padding
    return (symmetric_kl * real).sum() / real.sum() / 2
