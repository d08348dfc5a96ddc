"""The Transformer: an encoder-decoder of attention alone (Vaswani et al. 2017), with the norm before or after each
sub-layer.

Pre-norm (Xiong et al. 2020): x + f(norm(x)), and one norm at the end of each stack. Post-norm (Vaswani et al. 2017,
sec. 3.1): norm(x + f(x)). Weights of every layer and head are returned by the same call as the output.
Letters: B batch, T target, S source, D width, H heads.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.attention import MultiHead, Reweigh, attend, causal_mask, scaled_dot_scores
from attnviz.networks import Blocks, ReadoutStep, Steps, Walk
from attnviz.networks.cpu import Dropout, Joined, Packed, share


class TransformerMemory(NamedTuple):
    """The encoder's output for the decoder."""

    cross: tuple  # keys and values of each decoder layer's cross-attention, each (B, H, S, d)
    mask: Tensor | None  # (B, 1, 1, S) True = visible; None when nothing is padded
    state: tuple  # the decoder's cache before its first step: empty
    maps: tuple  # encoder self-attention weights (B, H, S, S) of each layer


class FeedForward(nn.Module):
    """Two linear maps around a ReLU, position by position. Vaswani et al. 2017, eq. 2."""

    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__()
        self.enter, self.leave = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(self.dropout(self.enter(x).relu_()))


class Shape(NamedTuple):
    """The settings shared by all layers of a stack."""

    width: int
    heads: int
    hidden: int  # units of the feed-forward network
    dropout: float  # of what a sub-layer adds
    attention_dropout: float  # of the attention weights
    activation_dropout: float  # of the hidden units
    norm_first: bool  # pre-norm rather than post-norm


class Layer(nn.Module):
    """Sub-layers that add to what they read, with a norm for each."""

    def __init__(self, sublayers: int, shape: Shape):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(shape.width) for _ in range(sublayers))
        self.dropout = Dropout(shape.dropout)
        self.norm_first = shape.norm_first

    def read(self, x: Tensor, norm: nn.Module) -> Tensor:
        """The input of a sub-layer, from x."""
        return norm(x) if self.norm_first else x

    def add(self, x: Tensor, answer: Tensor, norm: nn.Module) -> Tensor:
        """x with the output of a sub-layer added."""
        x = x + self.dropout(answer)
        return x if self.norm_first else norm(x)


class EncoderLayer(Layer):
    def __init__(self, shape: Shape):
        super().__init__(2, shape)
        self.attention = MultiHead(shape.width, shape.heads, dropout=shape.attention_dropout)
        self.feed = FeedForward(shape.width, shape.hidden, shape.activation_dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """x (B, S, D), mask (B, 1, 1, S) -> (B, S, D), weights (B, H, S, S)."""
        of_attention, of_feed = self.norms
        seen = self.read(x, of_attention)
        context, weights = self.attention(seen, seen, mask=mask)
        x = self.add(x, context, of_attention)
        return self.add(x, self.feed(self.read(x, of_feed)), of_feed), weights


class DecoderLayer(Layer):
    def __init__(self, shape: Shape):
        super().__init__(3, shape)
        self.attention, self.cross = (
            MultiHead(shape.width, shape.heads, dropout=shape.attention_dropout) for _ in range(2)
        )
        self.feed = FeedForward(shape.width, shape.hidden, shape.activation_dropout)
        self.reads = Joined()  # what self-attention reads, for `QuickWalk`

    def forward(
        self,
        x: Tensor,
        cache: tuple,
        causal: Tensor | None,
        memory: tuple,
        mask: Tensor | None,
        reweigh: Reweigh = None,
    ):
        """x (B, T, D), cache (keys, values) of earlier positions, causal (T, T), memory (keys, values), mask
        -> (B, T, D), cache with x's positions added, self weights (B, H, T, t), cross weights (B, H, T, S).

        reweigh : changes the weights of cross-attention.
        """
        of_attention, of_cross, of_feed = self.norms
        seen = self.read(x, of_attention)
        keys, values = self.attention.remember(seen)
        if cache:
            keys, values = torch.cat([cache[0], keys], dim=2), torch.cat([cache[1], values], dim=2)
        context, own = self.attention.read(seen, keys, values, causal)
        x = self.add(x, context, of_attention)
        of_memory, read_values = memory
        context, cross = self.cross.read(self.read(x, of_cross), of_memory, read_values, mask, reweigh)
        x = self.add(x, context, of_cross)
        return self.add(x, self.feed(self.read(x, of_feed)), of_feed), (keys, values), own, cross


def positions(length: int, width: int, scale: float = 1.0) -> Tensor:
    """Sinusoids (length, width) between -scale and scale. Vaswani et al. 2017, sec. 3.5."""
    if torch.get_default_device().type == "meta":  # arithmetic there would import torch's compiler: a second
        return torch.empty(length, width)
    angles = torch.arange(length).unsqueeze(1) * 10_000 ** (-torch.arange(0, width, 2) / width)
    return scale * torch.stack([torch.sin(angles), torch.cos(angles)], dim=-1).flatten(1)


def begin_evenly(model: nn.Module) -> None:
    """Draw the weights of linear maps again, so that neither activations nor gradients grow or shrink much.

    Glorot and Bengio 2010, eq. 16.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)


class Transformer(Steps, nn.Module):
    """Encoder-decoder; one matrix embeds source, target and output (the vocabulary is joint).

    encoder_layers: when not as many as `layers`; a deep encoder costs little, it runs once (Kasai et al. 2021).
    activation_dropout: of the feed-forward networks' hidden units; equal to dropout if None. norm_first: the norm
    before each sub-layer, not after it. Post-norm begins with the weights of Glorot and Bengio (2010).
    """

    places: Tensor
    causal = True  # False only in a lesson that shows what goes wrong where a decoder sees the letters to come

    def __init__(
        self,
        vocabulary: int,
        width: int,
        heads: int,
        layers: int,
        hidden: int,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        longest: int = 512,
        activation_dropout: float | None = None,
        norm_first: bool = True,
        encoder_layers: int | None = None,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.register_buffer("places", positions(longest, width), persistent=False)
        within = dropout if activation_dropout is None else share(activation_dropout, "activation_dropout")
        shape = Shape(width, heads, hidden, dropout, attention_dropout, within, norm_first)
        self.encoder: Blocks[EncoderLayer] = Blocks(EncoderLayer(shape) for _ in range(encoder_layers or layers))
        self.decoder: Blocks[DecoderLayer] = Blocks(DecoderLayer(shape) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = (nn.LayerNorm(width) if norm_first else nn.Identity() for _ in range(2))
        if not norm_first:
            begin_evenly(self)
        self.dropout = Dropout(dropout)
        self.output = Packed()

    def embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """tokens (B, T) standing at positions first, first + 1, ... -> (B, T, D)."""
        return self.place(self.embedding(tokens), first)

    def place(self, vectors: Tensor, first: int = 0) -> Tensor:
        """Rows of the embedding (B, T, D), scaled, with their positions from `first` on."""
        last = first + vectors.shape[1]
        if last > len(self.places):
            raise ValueError(f"the model takes at most {len(self.places)} tokens; got {last}")
        scale = self.embedding.embedding_dim**0.5
        return self.dropout(vectors * scale + self.places[first:last])

    def encode(self, source: Tensor, mask: Tensor | None = None) -> TransformerMemory:
        """source (B, S) token ids, mask (B, S) True = a real token -> TransformerMemory."""
        return self.encode_vectors(self.embedding(source), mask)

    def encode_vectors(self, vectors: Tensor, mask: Tensor | None = None) -> TransformerMemory:
        """`encode` from rows of the embedding (B, S, D), without positions, which are added here."""
        visible = None if mask is None else mask[:, None, None, :]
        x, maps = self.place(vectors), []
        for layer in self.encoder:
            x, weights = layer(x, visible)
            maps.append(weights)
        x = self.encoder_norm(x)
        cross = tuple(layer.cross.remember(x) for layer in self.decoder)
        return TransformerMemory(cross, visible, ((),) * len(self.decoder), tuple(maps))

    def decode(self, memory: TransformerMemory, state: tuple, tokens: Tensor, reweigh: Sequence[Reweigh] = ()):
        """tokens (B, T) after the positions in state -> the vectors that give the logits (B, T, D), state, self and
        cross weights by layer. reweigh : changes the weights of cross-attention, one a layer; () for none."""
        first = state[0][0].shape[2] if state[0] else 0
        count = tokens.shape[1]
        causal = causal_mask(count, first + count, tokens.device) if count > 1 and self.causal else None
        x, caches, own, cross = self.embed(tokens, first), [], [], []
        changes = reweigh or (None,) * len(self.decoder)
        for layer, cache, remembered, change in zip(self.decoder, state, memory.cross, changes, strict=True):
            x, cache, own_weights, cross_weights = layer(x, cache, causal, remembered, memory.mask, change)
            caches.append(cache)
            own.append(own_weights)
            cross.append(cross_weights)
        return self.decoder_norm(x), tuple(caches), tuple(own), tuple(cross)

    def logits(self, readout: Tensor) -> Tensor:
        """readout (..., D) -> (..., V), by the matrix that embeds the words."""
        return self.output.product(readout, self.embedding.weight)

    def walk(self, memory: TransformerMemory) -> "Walk | QuickWalk":
        """All its steps, one after the other."""
        return QuickWalk(self, memory) if _is_plain(self) else Walk(self, memory)

    def step_readout(
        self, memory: TransformerMemory, state: tuple, token: Tensor, reweigh: Sequence[Reweigh] = ()
    ) -> ReadoutStep:
        """state, token (B,) the token before this position. reweigh : as in `decode`."""
        readouts, state, own, cross = self.decode(memory, state, token.unsqueeze(1), reweigh)
        of_cross, of_own = (tuple(weights.squeeze(2) for weights in kind) for kind in (cross, own))
        return ReadoutStep(readouts[:, 0], state, of_cross, of_own)

    def force(self, memory: TransformerMemory, target: Tensor) -> tuple[Tensor, tuple, tuple]:
        """target inputs (B, T) from <bos> on -> readouts (B, T, D), and of each layer cross (B, H, T, S) and decoder
        weights (B, H, T, T): what `step` gives position by position, in one pass."""
        readouts, _, own, cross = self.decode(memory, memory.state, target)
        return readouts, cross, own

    def readouts(self, memory: TransformerMemory, target: Tensor) -> Tensor:
        """target inputs (B, T) from <bos> on -> what logits are made of (B, T, D)."""
        return self.decode(memory, memory.state, target)[0]

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """source (B, S), target inputs (B, T) from <bos> on, mask (B, S) -> logits (B, T, V), last layer's cross
        weights (B, H, T, S)."""
        memory = self.encode(source, mask)
        readouts, cross, _ = self.force(memory, target)
        return self.logits(readouts), cross[-1]


class QuickWalk:
    """A faster `Walk` for a network of unmodified pre-norm layers: module attributes are looked up once, not at every
    step, and keys and values are written into preallocated memory. This halves the time of a step."""

    goes_back = True

    def __init__(self, network: Transformer, memory: TransformerMemory):
        self._network, self._position = network, 0
        heads, visible = network.decoder[0].attention.heads, memory.mask
        if visible is not None:  # the same for each head
            visible = visible.expand(-1, heads, -1, -1).flatten(0, 1)
        self._layers = [_LayerWalk(*parts, visible) for parts in zip(network.decoder, memory.cross, strict=True)]

    def __call__(self, tokens: Tensor) -> Tensor:
        """See `Walk`."""
        network, count = self._network, tokens.shape[1]
        x = network.embed(tokens, self._position)
        causal = causal_mask(count, self._position + count, tokens.device) if count > 1 else None
        for layer in self._layers:
            x = layer(x, self._position, causal)
        self._position += count
        return network.logits(network.decoder_norm(x))

    def forget(self, count: int) -> None:
        """See `Walk`."""
        self._position -= count
        for rows in (rows for layer in self._layers for rows in (layer.own, layer.cross)):
            rows[-1] = rows[-1][:, : rows[-1].shape[1] - count]

    def maps(self) -> tuple[list[Tensor], list[Tensor]]:
        """See `Walk`."""
        heads, steps = self._network.decoder[0].attention.heads, self._position
        cross = [torch.cat(layer.cross, dim=1).unflatten(0, (-1, heads)) for layer in self._layers]
        return cross, [_filled(layer.own, steps).unflatten(0, (-1, heads)) for layer in self._layers]


def _filled(parts: Sequence[Tensor], steps: int) -> Tensor:
    """Weights of some positions after another (N, T, t) -> of all (N, steps, steps), 0 for later keys."""
    filled, first = parts[0].new_zeros(len(parts[0]), steps, steps), 0
    for part in parts:
        last, keys = first + part.shape[1], min(part.shape[2], steps)
        filled[:, first:last, :keys] = part[:, :, :keys]
        first = last
    return filled


class _LayerWalk:
    """`DecoderLayer.forward`, with a cache of its positions so far. N sentences times heads, T new positions, t all so
    far, d width of a head.

    own, cross : weights (N, T, t) and (N, T, S) of each call.
    """

    def __init__(self, layer: DecoderLayer, remembered: tuple, visible: Tensor | None):
        attention, cross = layer.attention, layer.cross
        self.own: list[Tensor] = []
        self.cross: list[Tensor] = []
        self._heads, self._visible = attention.heads, visible
        self._norms: list[tuple[Any, ...]] = [
            (norm.normalized_shape, norm.weight, norm.bias, norm.eps) for norm in layer.norms
        ]
        self._read = layer.reads.weights(attention.query, attention.memory)
        linear = attention.output, cross.query, cross.output, layer.feed.enter, layer.feed.leave
        self._linear = [(module.weight, module.bias) for module in linear]
        self._keys, self._values = (part.flatten(0, 1) for part in remembered)  # (N, S, d)
        self._cache = self._keys.new_empty(2, len(self._keys), 0, self._keys.shape[-1])  # keys and values (N, t, d)

    def __call__(self, x: Tensor, first: int, causal: Tensor | None) -> Tensor:
        """x (B, T, D) of the positions from `first` on, causal (T, t) -> (B, T, D)."""
        (write, look, write_looked, enter, leave), norms = self._linear, self._norms
        x = x + F.linear(self._look_back(torch.layer_norm(x, *norms[0]), first, causal), *write)
        (query,) = self._split(F.linear(torch.layer_norm(x, *norms[1]), *look), 1)
        context, weights = attend(scaled_dot_scores(query, self._keys), self._values, self._visible)
        self.cross.append(weights)
        x = x + F.linear(self._joined(context, x), *write_looked)
        return x + F.linear(F.linear(torch.layer_norm(x, *norms[2]), *enter).relu_(), *leave)

    def _look_back(self, seen: Tensor, first: int, causal: Tensor | None) -> Tensor:
        """seen (B, T, D) -> context of self-attention (B, T, D)."""
        parts, last = self._split(F.linear(seen, *self._read), 3), first + seen.shape[1]
        if last > self._cache.shape[2]:
            self._cache = F.pad(self._cache, (0, 0, 0, max(32, 2 * last) - self._cache.shape[2]))
        self._cache[:, :, first:last] = parts[1:]
        keys, values = self._cache[:, :, :last]
        context, weights = attend(scaled_dot_scores(parts[0], keys), values, causal)
        self.own.append(weights)
        return self._joined(context, seen)

    def _split(self, x: Tensor, count: int) -> Tensor:
        """x (B, T, count*H*d) -> (count, N, T, d)."""
        if x.shape[0] == x.shape[1] == 1:
            return x.view(count, self._heads, 1, -1)
        return x.view(*x.shape[:2], count, self._heads, -1).permute(2, 0, 3, 1, 4).flatten(1, 2)

    def _joined(self, context: Tensor, x: Tensor) -> Tensor:
        """context (N, T, d) -> (B, T, H*d), as x is."""
        if x.shape[1] == 1:
            return context.view(x.shape)
        return context.view(len(x), self._heads, x.shape[1], -1).transpose(1, 2).reshape(x.shape)


def _is_plain(network: Transformer) -> bool:
    """Is it unmodified, pre-norm, in evaluation mode, and without hooks?"""
    if network.training or not all(layer.norm_first for layer in network.decoder):
        return False
    parts: list[nn.Module] = [network.decoder]
    for part in parts:  # grows on the way; `modules()` takes three times as long
        if type(part) not in _PARTS or part._forward_hooks or part._forward_pre_hooks:
            return False
        parts += filter(None, part._modules.values())
    return True


_PARTS = (Blocks, nn.ModuleList, DecoderLayer, MultiHead, FeedForward, nn.Linear, nn.LayerNorm, Dropout)
