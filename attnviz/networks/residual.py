"""What a model that writes would say after each layer, and what each head adds to the logit of a token.

A layer adds to a stream of vectors, one a token; the final norm and the matrix of the embedding read logits from it
(Elhage et al. 2021). So a stream may be read early (nostalgebraist 2020, the logit lens), and a logit is a sum over all
that was added: the norm divides the whole by one number, and everything after that is linear.
Letters: T tokens, D width, H heads, d width of one head, L layers, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.attention import attend, causal_mask, scaled_dot_scores
from attnviz.networks.decoder_only import DecoderOnly


@dataclass(frozen=True)
class Stream:
    """What was added to the stream of one text. embedding (T, D), heads (L, H, T, D), biases (L, D) of the output
    projections of attention, feeds (L, T, D) of the feed-forward networks."""

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
    biases = [layer.attention.output.bias for layer in network.decoder]
    return Stream(embedding, torch.stack(heads), torch.stack(biases), torch.stack(feeds))


@torch.inference_mode()
def lens(network: DecoderOnly, tokens: Tensor) -> Tensor:
    """tokens (T,) from <bos> on -> logits (L + 1, T, V) before the first layer and after each; the last are the
    model's. The final norm is applied to all."""
    return network.logits(network.decoder_norm(stream(network, tokens).after()))


@dataclass(frozen=True)
class Contributions:
    """The direct parts of the logits of T tokens: embedding (T,), heads (L, H, T), biases (L, T), feeds (L, T)."""

    embedding: Tensor
    heads: Tensor
    biases: Tensor
    feeds: Tensor

    def total(self) -> Tensor:
        """Their sum (T,): the logits."""
        return self.embedding + self.heads.sum(dim=(0, 1)) + self.biases.sum(dim=0) + self.feeds.sum(dim=0)


@torch.inference_mode()
def contributions(network: DecoderOnly, tokens: Tensor, produced: Tensor) -> Contributions:
    """tokens (T,) from <bos> on, produced (T,) the token after each -> the parts of the logit of each produced token.

    What a part changes in later layers is not in it. RMSNorm is x / rms(x) * gain; rms is that of the whole stream
    (Elhage et al. 2021, “Handling layer normalization”).
    """
    parts, norm = stream(network, tokens), network.decoder_norm
    whole = parts.after()[-1]
    epsilon = torch.finfo(whole.dtype).eps if norm.eps is None else norm.eps
    scale = whole.square().mean(dim=-1, keepdim=True).add(epsilon).rsqrt()
    directions = network.embedding.weight[produced] * norm.weight * scale  # (T, D): logit = stream . direction
    of = [(part * directions).sum(dim=-1) for part in (parts.embedding, parts.heads, parts.feeds)]
    return Contributions(of[0], of[1], F.linear(parts.biases, directions), of[2])
