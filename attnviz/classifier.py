"""A sentence classifier of self-attention: embedding, self-attention, pooling by attention, one linear layer.

The encoder is the Transformer's (transformer.py; Vaswani et al. 2017). One more attention pools what it makes of the
tokens into the vector that decides, by a query that is the same for every sentence (Yang et al. 2016, eq. 8 to 10).
Letters: B batch, S tokens, D width, H heads, C classes.
"""

from typing import NamedTuple

from torch import Tensor, nn

from attnviz.attention import Additive
from attnviz.dropout import Dropout
from attnviz.transformer import EncoderLayer, positions


class Verdict(NamedTuple):
    """What is said of each sentence, and what was looked at on the way."""

    logits: Tensor  # (B, C)
    pooling: Tensor  # (B, 1, S) how much of each token is in the vector that decides
    maps: tuple  # self-attention weights (B, H, S, S) of each layer


class SelfAttention(nn.Module):
    """Which of `classes` a sentence is of; (negative, positive) for reviews."""

    def __init__(self, vocabulary: int, width: int = 128, heads: int = 4, layers: int = 1, hidden: int = 256,
                 dropout: float = 0.3, attention_dropout: float = 0.0, classes: int = 2, longest: int = 512):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.register_buffer("places", positions(longest, width), persistent=False)
        shape = (width, heads, hidden, dropout, attention_dropout)
        self.encoder = nn.ModuleList(EncoderLayer(*shape) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.pooling = Additive(1, width, width, attention_dropout)  # its query is the number 1: W q + U h is Yang's W h + b
        self.output = nn.Linear(width, classes)
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Verdict:
        """tokens (B, S) piece ids, mask (B, S) True = a real token -> Verdict."""
        if tokens.shape[1] > len(self.places):
            raise ValueError(f"the model takes at most {len(self.places)} tokens; got {tokens.shape[1]}")
        visible = None if mask is None else mask.unsqueeze(1)  # (B, 1, S)
        x = self.embedding(tokens) * self.embedding.embedding_dim**0.5 + self.places[: tokens.shape[1]]
        x, maps = self.dropout(x), []
        for layer in self.encoder:
            x, weights = layer(x, None if visible is None else visible.unsqueeze(1))
            maps.append(weights)
        x = self.norm(x)
        pooled, pooling = self.pooling(x.new_ones(len(x), 1, 1), x, x, visible)  # (B, 1, D), (B, 1, S)
        return Verdict(self.output(self.dropout(pooled.squeeze(1))), pooling, tuple(maps))
