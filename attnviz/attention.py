"""Attention, read top to bottom: score, softmax, weighted sum.

A *query* asks, *keys* answer, *values* are what is taken away. One step of attention is

    scores  = score(query, keys)            how well does each key match?          any real number
    weights = softmax(scores)               the same as shares of one              rows sum to 1
    context = weights @ values              the mix of values that the query gets

and the mechanisms of the literature differ in the first line alone:

    additive     v . tanh(W q + U k)        Bahdanau et al. 2015, appendix A.1.2
    dot          q . k                      Luong et al. 2015, sec. 3.1
    scaled dot   q . k / sqrt(d)            Vaswani et al. 2017, eq. 1
    general      q . W k                    Luong et al. 2015, sec. 3.1
    concat       v . tanh(W [q; k])         Luong et al. 2015, sec. 3.1
    multi-head   scaled dot, in H learned projections side by side; Vaswani et al. 2017, sec. 3.2.2
    local        general, in a window round a predicted place; Luong et al. 2015, sec. 3.2, eq. 9 and 10

Letters: B batch, T queries, S keys, D width (query and key widths may differ), H heads, d width of one head.
A mask is True where a key is *visible*. Every function returns its weights; nothing is stored on the side.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# A change of attention: weights (..., T, S) and the mask that made them -> the weights to use, of the same shape.
Reweigh = Callable[[Tensor, Tensor | None], Tensor]


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Turn scores (..., T, S) into weights of the same shape: rows sum to 1, a hidden key gets exactly 0.

    mask : bool, broadcastable to scores, True = visible. A row that sees nothing has no distribution: ValueError.
    """
    if mask is None:
        return torch.softmax(scores, dim=-1)
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool, True where a key is visible; got {mask.dtype}")
    if not bool(mask.any(dim=-1).all()):
        raise ValueError("every query must see at least one key; the mask hides all keys of some row")
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)


def attend(
    scores: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    reweigh: Reweigh | None = None,
) -> tuple[Tensor, Tensor]:
    """scores (..., T, S), values (..., S, D) -> context (..., T, D), weights (..., T, S).

    dropout : share of the weights dropped on the way to the context, in training. The weights returned are the
    undropped ones: what a reader should see. reweigh : puts other weights in their place, and those are returned.
    """
    weights = masked_softmax(scores, mask)
    if reweigh is not None:
        weights = reweigh(weights, mask)
    kept = F.dropout(weights, dropout) if dropout else weights
    return kept @ values, weights


def dot_scores(query: Tensor, keys: Tensor) -> Tensor:
    """query (..., T, D), keys (..., S, D) -> q . k (..., T, S). Luong et al. 2015, sec. 3.1, *dot*."""
    if query.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"dot scores need queries and keys of one width; got {query.shape[-1]} and {keys.shape[-1]} "
            "(use general, concat or additive when they differ)"
        )
    return query @ keys.transpose(-2, -1)


def scaled_dot_scores(query: Tensor, keys: Tensor) -> Tensor:
    """query (..., T, D), keys (..., S, D) -> q . k / sqrt(D) (..., T, S). Vaswani et al. 2017, eq. 1.

    The query is scaled before the product: the same number for fewer multiplications.
    """
    return dot_scores(query * query.shape[-1] ** -0.5, keys)


class Attention(nn.Module):
    """A score function with its parameters. Subclasses say how keys are prepared and how a query is scored.

    `prepare` holds the work that depends on the keys alone, so a decoder does it once a sentence, not once a step.
    """

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.dropout = dropout

    def prepare(self, keys: Tensor) -> Tensor:
        """keys (B, S, D) -> what `score` wants of them (B, S, ...)."""
        return keys

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        """query (B, T, D), prepared keys -> scores (B, T, S)."""
        raise TypeError(f"{type(self).__name__} must define score()")

    def read(
        self,
        query: Tensor,
        prepared: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        reweigh: Reweigh | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`forward` for keys that went through `prepare` already. reweigh : as of `attend`."""
        return attend(self.score(query, prepared), values, mask, self.dropout if self.training else 0.0, reweigh)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """query (B,T,Dq), keys (B,S,Dk), values (B,S,Dv), mask (B,1|T,S) -> context (B,T,Dv), weights (B,T,S)."""
        return self.read(query, self.prepare(keys), values, mask)


class Dot(Attention):
    """q . k. Luong et al. 2015, sec. 3.1, *dot*."""

    def score(self, query, prepared):
        return dot_scores(query, prepared)


class ScaledDot(Attention):
    """q . k / sqrt(D). Vaswani et al. 2017, eq. 1."""

    def score(self, query, prepared):
        return scaled_dot_scores(query, prepared)


class General(Attention):
    """q . W k: a learned bilinear form. Luong et al. 2015, sec. 3.1, *general*."""

    def __init__(self, query_width: int, key_width: int, dropout: float = 0.0):
        super().__init__(dropout)
        self.key = nn.Linear(key_width, query_width, bias=False)  # W
        # A sum over query_width * key_width products: as small at the start as keeps the softmax from saturating.
        nn.init.normal_(self.key.weight, std=(query_width * key_width) ** -0.5)

    def prepare(self, keys):
        return self.key(keys)

    def score(self, query, prepared):
        return dot_scores(query, prepared)


def local_window(centre: Tensor, size: int, reach: float) -> tuple[Tensor, Tensor]:
    """centre (..., T), a real place among keys 0 to size - 1 -> log of the Gaussian round it, window; both (..., T, size).

    exp(-(s - p)^2 / 2 sigma^2) with sigma = D / 2, and the keys s in [p - D, p + D]; D is the reach, in keys. Luong et
    al. 2015, eq. 10 and sec. 3.2. The Gaussian carries the gradient of the centre; the window, a mask, has none.
    """
    away = torch.arange(size, device=centre.device) - centre.unsqueeze(-1)
    return -(away**2) / (2 * (reach / 2) ** 2), away.abs() <= reach


class Local(General):
    """*local-p*: the general score in a window round a predicted place. Luong et al. 2015, sec. 3.2.

    p = S sigmoid(v . tanh(W q)), eq. 9      weights = softmax over the window * Gaussian round p, eq. 10

    One deviation: the paper leaves that product as it is; here a row is divided by its sum, as all weights sum to 1. So
    the row is the softmax, over the window, of the scores plus the Gaussian's logarithm. Keys count from 0. S is the
    number of keys that a query may see, which must come first: a sentence's own length, whatever the padding.

    reach : the paper's D, in keys; at least 1, so that no window is empty, as p is from 0 to S.
    """

    def __init__(self, query_width: int, key_width: int, reach: float = 10, dropout: float = 0.0):
        if not reach >= 1:  # nor NaN
            raise ValueError(f"reach must be at least 1, so that every window holds a key; got {reach}")
        super().__init__(query_width, key_width, dropout)
        self.reach = reach
        self.hidden = nn.Linear(query_width, query_width, bias=False)  # W_p
        self.place = nn.Linear(query_width, 1, bias=False)  # v_p

    def centre(self, query: Tensor, lengths: Tensor) -> Tensor:
        """query (B, T, D), lengths (B, 1|T) -> p (B, T), a real number from 0 to the length."""
        return lengths * torch.sigmoid(self.place(torch.tanh(self.hidden(query)))).squeeze(-1)

    def read(self, query, prepared, values, mask=None, reweigh=None):
        size = values.shape[-2]
        visible = torch.ones(1, 1, size, dtype=torch.bool, device=values.device) if mask is None else mask
        lengths = visible.sum(dim=-1, dtype=torch.float32)  # and so p is: bfloat16 counts in halves from 64 on
        gaussian, window = local_window(self.centre(query, lengths), size, self.reach)
        scores = self.score(query, prepared) + gaussian.to(values.dtype)
        return attend(scores, values, window & visible, self.dropout if self.training else 0.0, reweigh)


class Additive(Attention):
    """v . tanh(W q + U k). Bahdanau et al. 2015, appendix A.1.2; the paper's W_a, U_a, v_a."""

    def __init__(self, query_width: int, key_width: int, width: int, dropout: float = 0.0):
        super().__init__(dropout)
        self.query = nn.Linear(query_width, width, bias=False)  # W
        self.key = nn.Linear(key_width, width, bias=False)  # U
        self.energy = nn.Linear(width, 1, bias=False)  # v

    def prepare(self, keys):
        return self.key(keys)

    def score(self, query, prepared):
        hidden = torch.tanh(self.query(query).unsqueeze(-2) + prepared.unsqueeze(-3))  # (B, T, S, width)
        return hidden @ self.energy.weight[0]


class Concat(Attention):
    """v . tanh(W [q; k]): one matrix over the two laid end to end. Luong et al. 2015, sec. 3.1, *concat*.

    W [q; k] is W_q q + W_k k with W = [W_q, W_k], so the half that meets the keys is worked out once.
    """

    def __init__(self, query_width: int, key_width: int, width: int, dropout: float = 0.0):
        super().__init__(dropout)
        self.query_width = query_width
        self.joint = nn.Linear(query_width + key_width, width, bias=False)  # W
        self.energy = nn.Linear(width, 1, bias=False)  # v

    def prepare(self, keys):
        return keys @ self.joint.weight[:, self.query_width :].T

    def score(self, query, prepared):
        asked = query @ self.joint.weight[:, : self.query_width].T
        return torch.tanh(asked.unsqueeze(-2) + prepared.unsqueeze(-3)) @ self.energy.weight[0]


class MultiHead(nn.Module):
    """H scaled-dot attentions side by side, each in its own learned projection. Vaswani et al. 2017, sec. 3.2.2.

    The H projections are rows of one matrix; `split` cuts the result into heads. Keys and values are projected by
    `remember`, apart from the queries, so that a decoder can keep them from step to step.

    width : of all heads together, and of the output. query_width, key_width, value_width : of what comes in, `width`
    unless given. Without a value_width keys and values are made of one memory, as in the paper, in one product.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        key_width: int | None = None,
        value_width: int | None = None,
        query_width: int | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(f"width must be a multiple of heads; got width {width} and {heads} heads")
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(query_width or width, width)
        if value_width is None:
            self.memory = nn.Linear(key_width or width, 2 * width)
        else:
            self.key, self.value = nn.Linear(key_width or width, width), nn.Linear(value_width, width)
        self.output = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        """(B, S, H*d) -> (B, H, S, d)."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def remember(self, keys: Tensor, values: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """keys (B, S, Dk) and values (B, S, Dv), or the memory (B, S, D) both are made of -> both (B, H, S, d)."""
        if (values is None) != hasattr(self, "memory"):
            raise ValueError("values must be given apart from the keys if, and only if, value_width was")
        projected = self.memory(keys).chunk(2, dim=-1) if values is None else (self.key(keys), self.value(values))
        return self.split(projected[0]), self.split(projected[1])

    def read(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        reweigh: Reweigh | None = None,
    ) -> tuple[Tensor, Tensor]:
        """query (B,T,Dq), keys and values (B,H,S,d), mask (B,1,1|T,S) -> context (B,T,D), weights (B,H,T,S)."""
        scores = scaled_dot_scores(self.split(self.query(query)), keys)  # (B, H, T, S)
        context, weights = attend(scores, values, mask, self.dropout if self.training else 0.0, reweigh)
        return self.output(context.transpose(1, 2).flatten(-2)), weights

    def forward(self, query: Tensor, keys: Tensor, values: Tensor | None = None, mask: Tensor | None = None):
        """query (B,T,Dq), keys (B,S,Dk), values (B,S,Dv) or None where the keys are the memory, mask (B,1,1|T,S)
        -> context (B,T,D), weights (B,H,T,S).
        """
        return self.read(query, *self.remember(keys, values), mask)
