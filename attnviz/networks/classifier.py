"""A sentence classifier of self-attention: embedding, multi-head self-attention, pooling by attention, one linear
layer.

Multi-head self-attention is the Transformer's (Vaswani et al. 2017, sec. 3.2.2), with a residual connection, the norm
before it and no feed-forward layer after it, because there is little data. Another attention pools the tokens into one
vector for the label, with a query that is the same for every sentence (Yang et al. 2016, eq. 5 to 7). Letters: B batch,
S tokens, D width, H heads, C classes.
"""

from typing import NamedTuple

from torch import Tensor, nn

from attnviz.attention import Additive, MultiHead, Reweigh
from attnviz.networks.cpu import Dropout
from attnviz.networks.transformer import positions

SMALL = 0.1  # of tokens and places at the start: what is learnt of a rare word soon outweighs what chance gave it


class Verdict(NamedTuple):
    """The output for each sentence, with all attention weights."""

    logits: Tensor  # (B, C)
    pooling: Tensor  # (B, 1, S) how much of each token is in the vector that decides
    maps: tuple  # self-attention weights (B, H, S, S) of each layer


class SelfAttention(nn.Module):
    """The logits of `classes` for a sentence; negative and positive for reviews."""

    places: Tensor

    def __init__(
        self,
        vocabulary: int,
        width: int = 64,
        heads: int = 4,
        layers: int = 1,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        classes: int = 2,
        longest: int = 512,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=SMALL * width**-0.5)
        self.register_buffer("places", positions(longest, width, SMALL), persistent=False)
        self.encoder = nn.ModuleList(MultiHead(width, heads, dropout=attention_dropout) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        # its query is the number 1: W q + U h is Yang's W h + b
        self.pooling = Additive(1, width, width, attention_dropout)
        self.output = nn.Linear(width, classes)
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Verdict:
        """tokens (B, S) piece ids, mask (B, S) True = a real token -> Verdict."""
        return self.judge_vectors(self.embedding(tokens), mask)

    def judge_vectors(self, vectors: Tensor, mask: Tensor | None = None, reweigh: Reweigh = None) -> Verdict:
        """`forward` from rows of the embedding (B, S, D). reweigh : changes the weights of the pooling."""
        size = vectors.shape[1]
        if size > len(self.places):
            raise ValueError(f"the model takes at most {len(self.places)} tokens; got {size}")
        visible = None if mask is None else mask[:, None, None, :]
        x = vectors * self.embedding.embedding_dim**0.5 + self.places[:size]
        x, maps = self.dropout(x), []
        for attention, norm in zip(self.encoder, self.norms):
            normed = norm(x)
            context, weights = attention(normed, normed, mask=visible)
            x = x + self.dropout(context)
            maps.append(weights)
        query, seen = x.new_ones(len(x), 1, 1), None if mask is None else mask.unsqueeze(1)
        pooled, pooling = self.pooling.read(query, self.pooling.prepare(x), x, seen, reweigh)
        return Verdict(self.output(self.dropout(pooled.squeeze(1))), pooling, tuple(maps))  # pooled (B, 1, D)
