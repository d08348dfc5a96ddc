"""A model that writes: a decoder-only Transformer, which reads a text and returns the logits of the token after each
token; its predictions after each layer; and the contribution of each head to the logit of a token.

Every token attends to itself and to the tokens before it (Vaswani et al. 2017, sec. 3.2.3). Positions are rotations of
queries and keys (Su et al. 2021). Each sub-layer adds f(norm(x)) to x (Xiong et al. 2020), with RMSNorm (Zhang and
Sennrich 2019). The feed-forward network is SwiGLU (Shazeer 2020, eq. 6). One matrix embeds the tokens and gives the
logits (Press and Wolf 2017).

A layer adds to the residual stream, one vector per token; the final norm and the embedding matrix turn it into logits
(Elhage et al. 2021). So the stream may be read after any layer (nostalgebraist 2020, the logit lens), and a logit is a
sum over everything that was added: the norm divides the stream by one number, and everything after it is linear.
Letters: B batch, T tokens, t tokens so far, D width, H heads, d width of one head, L layers, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.attention import MultiHead, Reweigh, attend, causal_mask, rotated, scaled_dot_scores
from attnviz.networks import Blocks
from attnviz.networks.cpu import Dropout

SMALL = 0.02  # standard deviation of the first weights, as in GPT-2 (Radford et al. 2019)


class Reading(NamedTuple):
    """The result of a pass for its tokens."""

    readouts: Tensor  # (B, T, D) what `logits` makes logits of
    state: tuple  # keys and values (B, H, t, d) of each layer, for the next pass
    maps: tuple  # weights (B, H, T, t) of each layer


class SwiGLU(nn.Module):
    """leave(SiLU(gate x) * enter x), position by position. Shazeer 2020, eq. 6."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate, self.enter = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.leave = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(F.silu(self.gate(x)) * self.enter(x))


class RotaryAttention(MultiHead):
    """Causal multi-head self-attention; queries and keys are rotated by their positions. Su et al. 2021, eq. 16."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__(width, heads, dropout)
        if width // heads % 2:
            raise ValueError(f"a head must have an even width, to rotate pairs; got {width // heads}")

    def look_back(self, x: Tensor, before: tuple = (), reweigh: Reweigh = None) -> tuple[Tensor, tuple, Tensor]:
        """x (B, T, D), keys and values of the t - T tokens before it -> context (B, T, D), keys and values
        (B, H, t, d) of all, weights (B, H, T, t). reweigh : as in `attend`."""
        first = before[0].shape[2] if before else 0
        queries, keys, values = self.rotated(x, first)
        if before:
            keys, values = torch.cat([before[0], keys], dim=2), torch.cat([before[1], values], dim=2)
        mask = causal_mask(x.shape[1], keys.shape[2], x.device)
        dropout = self.dropout if self.training else 0.0
        context, weights = attend(scaled_dot_scores(queries, keys), values, mask, dropout, reweigh)
        return self.output(context.transpose(1, 2).flatten(-2)), (keys, values), weights

    def context(self, x: Tensor) -> Tensor:
        """The context of `look_back` for a whole text (B, T, D), without its weights: torch's fused kernel."""
        dropout = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(*self.rotated(x), is_causal=True, dropout_p=dropout)
        return self.output(context.transpose(1, 2).flatten(-2))

    def rotated(self, x: Tensor, first: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """x (B, T, D) at positions from `first` on -> rotated queries, rotated keys, values, each (B, H, T, d)."""
        keys, values = self.remember(x)
        return rotated(self.split(self.query(x)), first), rotated(keys, first), values


class DecoderOnlyLayer(nn.Module):
    """Causal self-attention, then the feed-forward network; each adds to what it reads."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float):
        super().__init__()
        self.attention, self.feed = RotaryAttention(width, heads), SwiGLU(width, hidden)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, before: tuple = (), reweigh: Reweigh = None) -> tuple[Tensor, tuple, Tensor]:
        """x (B, T, D), keys and values of the tokens before -> (B, T, D), keys and values (B, H, t, d), weights
        (B, H, T, t)."""
        of_attention, of_feed = self.norms
        context, state, weights = self.attention.look_back(of_attention(x), before, reweigh)
        x = x + self.dropout(context)
        return x + self.dropout(self.feed(of_feed(x))), state, weights

    def fast(self, x: Tensor) -> Tensor:
        """`forward` of a whole text (B, T, D) without its weights, which is faster."""
        of_attention, of_feed = self.norms
        x = x + self.dropout(self.attention.context(of_attention(x)))
        return x + self.dropout(self.feed(of_feed(x)))


class DecoderOnly(nn.Module):
    """Decoder-only Transformer. longest : tokens of its context, <bos> included."""

    def __init__(
        self,
        vocabulary: int,
        width: int = 192,
        heads: int = 6,
        layers: int = 6,
        hidden: int = 512,
        dropout: float = 0.1,
        longest: int = 512,
    ):
        super().__init__()
        self.longest = longest
        self.embedding = nn.Embedding(vocabulary, width)
        self.decoder: Blocks[DecoderOnlyLayer] = Blocks(
            DecoderOnlyLayer(width, heads, hidden, dropout) for _ in range(layers)
        )
        self.decoder_norm = nn.RMSNorm(width)
        self.dropout = Dropout(dropout)
        self._begin_small()

    @property
    def layers(self) -> int:
        return len(self.decoder)

    @property
    def heads(self) -> int:
        """Of each layer."""
        return self.decoder[0].attention.heads

    def _begin_small(self) -> None:
        """Draw the initial weights. The outputs of the 2 * layers sub-layers are scaled by 1 / sqrt(2 * layers)
        (Radford et al. 2019, sec. 2.3)."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                adds = name.endswith(("attention.output.weight", "feed.leave.weight"))
                nn.init.normal_(parameter, std=SMALL / (2 * len(self.decoder)) ** 0.5 if adds else SMALL)

    def read(self, tokens: Tensor, state: Sequence = (), reweigh: Sequence[Reweigh] = ()) -> Reading:
        """tokens (B, T) after those in `state` -> Reading. reweigh : changes the weights, one a layer; () for none.

        ValueError for more tokens than the context has.
        """
        first = state[0][0].shape[2] if state else 0
        self._check_length(first + tokens.shape[1])
        x, states, maps = self.dropout(self.embedding(tokens)), [], []
        changes, caches = reweigh or (None,) * len(self.decoder), state or ((),) * len(self.decoder)
        for layer, cache, change in zip(self.decoder, caches, changes, strict=True):
            x, cache, weights = layer(x, cache, change)
            states.append(cache)
            maps.append(weights)
        return Reading(self.decoder_norm(x), tuple(states), tuple(maps))

    def readouts(self, tokens: Tensor) -> Tensor:
        """The readouts (B, T, D) of `read` for a whole text, without its weights: for training."""
        return self.readouts_of(self.embedding(tokens))

    def readouts_of(self, vectors: Tensor) -> Tensor:
        """`readouts` of rows (B, T, D) in place of the tokens' embeddings."""
        self._check_length(vectors.shape[1])
        x = self.dropout(vectors)
        for layer in self.decoder:
            x = layer.fast(x)
        return self.decoder_norm(x)

    def logits(self, readouts: Tensor) -> Tensor:
        """readouts (..., D) -> logits (..., V) of the next token."""
        return F.linear(readouts, self.embedding.weight)

    def forward(self, tokens: Tensor) -> tuple[Tensor, tuple]:
        """tokens (B, T) from <bos> on -> logits (B, T, V), weights (B, H, T, T) of each layer."""
        reading = self.read(tokens)
        return self.logits(reading.readouts), reading.maps

    def _check_length(self, count: int) -> None:
        if count > self.longest:
            raise ValueError(f"the model takes at most {self.longest} tokens; got {count}")


@dataclass(frozen=True)
class Stream:
    """The contributions to the residual stream of one text. embedding (T, D), heads (L, H, T, D), biases (L, D) of the
    output projections of attention, feeds (L, T, D) of the feed-forward networks."""

    embedding: Tensor
    heads: Tensor
    biases: Tensor
    feeds: Tensor

    def after(self) -> Tensor:
        """The stream before the first layer and after each: (L + 1, T, D)."""
        layers = self.heads.sum(dim=1) + self.biases[:, None] + self.feeds
        return torch.cat([self.embedding[None], layers]).cumsum(dim=0)


@torch.inference_mode()
def stream(network: DecoderOnly, tokens: Tensor) -> Stream:
    """tokens (T,) from <bos> on, in evaluation mode -> Stream."""
    x = embedding = network.embedding(tokens)
    heads, feeds = [], []
    for layer in network.decoder:
        of_attention, of_feed = layer.norms
        queries, keys, values = layer.attention.rotated(of_attention(x)[None])
        contexts, _ = attend(scaled_dot_scores(queries, keys), values, causal_mask(len(x), len(x), x.device))
        output = layer.attention.output
        parts = output.weight.unflatten(1, (layer.attention.heads, -1))  # (D, H, d): a head's columns
        heads.append(torch.einsum("htd,khd->htk", contexts[0], parts))
        x = x + heads[-1].sum(dim=0) + output.bias
        feeds.append(layer.feed(of_feed(x)))
        x = x + feeds[-1]
    biases: list[Tensor] = [layer.attention.output.bias for layer in network.decoder]
    return Stream(embedding, torch.stack(heads), torch.stack(biases), torch.stack(feeds))


@torch.inference_mode()
def lens(network: DecoderOnly, tokens: Tensor) -> Tensor:
    """tokens (T,) from <bos> on -> logits (L + 1, T, V) before the first layer and after each; the last are the
    model's. The final norm is applied to all."""
    return network.logits(network.decoder_norm(stream(network, tokens).after()))


@dataclass(frozen=True)
class Contributions:
    """The direct parts of the logits of T tokens: embedding (T,), heads (L, H, T), biases (L, T), feeds (L, T).
    constant (T,) : the contribution of a bias of the final norm or the output matrix; None without one."""

    embedding: Tensor
    heads: Tensor
    biases: Tensor
    feeds: Tensor
    constant: Tensor | None = None

    @property
    def others(self) -> Tensor:
        """(T,): the sum of all parts except the heads and the feed-forward networks."""
        parts = self.embedding + self.biases.sum(dim=0)
        return parts if self.constant is None else parts + self.constant

    def total(self) -> Tensor:
        """Their sum (T,): the logits."""
        return self.others + self.heads.sum(dim=(0, 1)) + self.feeds.sum(dim=0)


@torch.inference_mode()
def contributions(network: DecoderOnly, tokens: Tensor, produced: Tensor) -> Contributions:
    """tokens (T,) from <bos> on, produced (T,) the token after each -> the parts of the logit of each produced token.

    The effect of a part through later layers is not included. RMSNorm is x / rms(x) * gain; rms is that of the whole
    stream (Elhage et al. 2021, “Handling layer normalization”).
    """
    parts, norm = stream(network, tokens), network.decoder_norm
    whole = parts.after()[-1]
    epsilon = torch.finfo(whole.dtype).eps if norm.eps is None else norm.eps
    scale = whole.square().mean(dim=-1, keepdim=True).add(epsilon).rsqrt()
    directions = network.embedding.weight[produced] * norm.weight * scale  # (T, D): logit = stream . direction
    of = [(part * directions).sum(dim=-1) for part in (parts.embedding, parts.heads, parts.feeds)]
    return Contributions(of[0], of[1], F.linear(parts.biases, directions), of[2])
