"""The Transformer: an encoder-decoder of attention alone (Vaswani et al. 2017), with the norm before each sub-layer.

Pre-norm (Xiong et al. 2020): x + f(norm(x)), and one norm at the end of each stack. Weights of every layer and head
come back from the very call that makes the output. Letters: B batch, T target, S source, D width, H heads.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.attention import MultiHead
from attnviz.dropout import Dropout


class Memory(NamedTuple):
    """What the encoder leaves for the decoder."""

    cross: tuple  # keys and values of each decoder layer's cross-attention, each (B, H, S, d)
    mask: Tensor | None  # (B, 1, 1, S) True = visible; None when nothing is padded
    state: tuple  # the decoder's cache before its first step: empty
    maps: tuple  # encoder self-attention weights (B, H, S, S) of each layer


class Step(NamedTuple):
    """One target position."""

    logits: Tensor  # (B, V)
    state: tuple  # keys and values of all positions so far, a pair for each layer
    cross: tuple  # (B, H, S) of each layer
    decoder: tuple  # (B, H, t) of each layer


class FeedForward(nn.Module):
    """Two linear maps around a ReLU, position by position. Vaswani et al. 2017, eq. 2."""

    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__()
        self.enter, self.leave = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(self.dropout(F.relu(self.enter(x))))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int, dropout: float, attention_dropout: float):
        super().__init__()
        self.attention = MultiHead(width, heads, dropout=attention_dropout)
        self.feed = FeedForward(width, hidden, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """x (B, S, D), mask (B, 1, 1, S) -> (B, S, D), weights (B, H, S, S)."""
        before_attention, before_feed = self.norms
        normed = before_attention(x)
        context, weights = self.attention(normed, normed, mask=mask)
        x = x + self.dropout(context)
        return x + self.dropout(self.feed(before_feed(x))), weights


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int, dropout: float, attention_dropout: float):
        super().__init__()
        self.attention = MultiHead(width, heads, dropout=attention_dropout)
        self.cross = MultiHead(width, heads, dropout=attention_dropout)
        self.feed = FeedForward(width, hidden, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, cache: tuple, causal: Tensor | None, memory: tuple, mask: Tensor | None):
        """x (B, T, D), cache (keys, values) of earlier positions, causal (T, T), memory (keys, values), mask
        -> (B, T, D), cache with x's positions added, self weights (B, H, T, t), cross weights (B, H, T, S).
        """
        before_attention, before_cross, before_feed = self.norms
        normed = before_attention(x)
        keys, values = self.attention.remember(normed)
        if cache:
            keys, values = torch.cat([cache[0], keys], dim=2), torch.cat([cache[1], values], dim=2)
        context, own = self.attention.read(normed, keys, values, causal)
        x = x + self.dropout(context)
        context, cross = self.cross.read(before_cross(x), *memory, mask)
        x = x + self.dropout(context)
        return x + self.dropout(self.feed(before_feed(x))), (keys, values), own, cross


def positions(length: int, width: int, device=None) -> Tensor:
    """Sinusoids (length, width). Vaswani et al. 2017, sec. 3.5."""
    place = torch.arange(length, device=device).unsqueeze(1)
    rate = 10_000 ** (-torch.arange(0, width, 2, device=device) / width)
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], dim=-1).flatten(1)


class Transformer(nn.Module):
    """Pre-norm encoder-decoder; one matrix embeds source, target and output (the vocabulary is joint)."""

    def __init__(self, vocabulary: int, width: int, heads: int, layers: int, hidden: int,
                 dropout: float = 0.1, attention_dropout: float = 0.0, longest: int = 512):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.register_buffer("places", positions(longest, width), persistent=False)
        shape = (width, heads, hidden, dropout, attention_dropout)
        self.encoder = nn.ModuleList(EncoderLayer(*shape) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(*shape) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """tokens (B, T) standing at positions first, first + 1, ... -> (B, T, D)."""
        last = first + tokens.shape[1]
        if last > len(self.places):
            raise ValueError(f"the model takes at most {len(self.places)} tokens; got {last}")
        scale = self.embedding.embedding_dim**0.5
        return self.dropout(self.embedding(tokens) * scale + self.places[first:last])

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Memory:
        """source (B, S) token ids, mask (B, S) True = a real token -> Memory."""
        visible = None if mask is None else mask[:, None, None, :]
        x, maps = self.embed(source), []
        for layer in self.encoder:
            x, weights = layer(x, visible)
            maps.append(weights)
        x = self.encoder_norm(x)
        cross = tuple(layer.cross.remember(x) for layer in self.decoder)
        return Memory(cross, visible, ((),) * len(self.decoder), tuple(maps))

    def decode(self, memory: Memory, state: tuple, tokens: Tensor):
        """tokens (B, T) after the positions in state -> logits (B, T, V), state, self and cross weights by layer."""
        first = state[0][0].shape[2] if state[0] else 0
        count = tokens.shape[1]
        causal = None
        if count > 1:
            visible = torch.ones(count, first + count, dtype=torch.bool, device=tokens.device)
            causal = visible.tril(diagonal=first)
        x, caches, own, cross = self.embed(tokens, first), [], [], []
        for layer, cache, kept in zip(self.decoder, state, memory.cross):
            x, cache, own_weights, cross_weights = layer(x, cache, causal, kept, memory.mask)
            caches.append(cache)
            own.append(own_weights)
            cross.append(cross_weights)
        logits = F.linear(self.decoder_norm(x), self.embedding.weight)
        return logits, tuple(caches), tuple(own), tuple(cross)

    def step(self, memory: Memory, state: tuple, token: Tensor) -> Step:
        """state, token (B,) the token before this position -> Step, reading kept keys and values."""
        logits, state, own, cross = self.decode(memory, state, token.unsqueeze(1))
        return Step(logits[:, 0], state, tuple(w.squeeze(2) for w in cross), tuple(w.squeeze(2) for w in own))

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """source (B, S), target inputs (B, T) from <bos> on, mask (B, S) -> logits (B, T, V), last layer's cross
        weights (B, H, T, S)."""
        memory = self.encode(source, mask)
        logits, _, _, cross = self.decode(memory, memory.state, target)
        return logits, cross[-1]
