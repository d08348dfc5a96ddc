"""Attention, read top to bottom: score, softmax, weighted sum.

A *query* is compared with every *key*; each key has a *value*. One step of attention is

    scores  = score(query, keys)            how well each key matches the query    any real number
    weights = softmax(scores)               the scores as shares of 1              rows sum to 1
    context = weights @ values              the weighted mean of the values

The mechanisms of the literature differ mostly in the first line (d: the width of a query):

    additive     v . tanh(W q + U k)        Bahdanau et al. 2015, appendix A.1.2
    dot          q . k                      Luong et al. 2015, sec. 3.1
    scaled dot   q . k / sqrt(d)            Vaswani et al. 2017, eq. 1
    general      q . U k                    Luong et al. 2015, sec. 3.1
    concat       v . tanh([W U] [q; k])     Luong et al. 2015, sec. 3.1
    multi-head   scaled dot in H learned projections, side by side; Vaswani et al. 2017, sec. 3.2.2
    local        general, in a window around a predicted position; Luong et al. 2015, sec. 3.2, eq. 9 and 10
    rotary       scaled dot of q and k, each turned by angles that grow with its position; Su et al. 2021, eq. 16

Where queries and keys come from:

    cross-attention   queries from the target (a decoder's states), keys and values from the source (an encoder's)
    self-attention    queries, keys and values from the same tokens: each token looks at all of them, itself included
    causal mask       self-attention in which no token sees a later one, to write from left to right: `causal_mask`

One letter, one matrix: W is applied to the query, U to the key; v weights hidden units. B batch, T queries, S keys, D
width (query and key widths may differ), H heads, d width of one head. 1|T is 1 or T. A mask is True where a key is
*visible*. Whatever attends returns its weights and stores none. `python -m attnviz.attention` runs the last lines.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Mask = Tensor | None  # bool, broadcastable to the scores, True = visible. None: every key is visible.
# Changes attention: weights (..., T, S) and their mask -> the weights to use instead. None: no change.
Reweigh = Callable[[Tensor, Mask], Tensor] | None


def masked_softmax(scores: Tensor, mask: Mask = None) -> Tensor:
    """Scores (..., T, S) -> weights of the same shape. Rows sum to 1; the weight of a hidden key is exactly 0.
    ValueError if the mask is not bool, or a row has no visible key.

    >>> masked_softmax(torch.zeros(3), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is None:
        return torch.softmax(scores, dim=-1)
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool, True where a key is visible; got {mask.dtype}")
    if not bool(mask.any(dim=-1).all()):
        raise ValueError("every query must see at least one key; the mask hides all keys of some row")
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """(queries, keys), True where a key is visible: a token sees itself and every token before it.
    The queries are the last of the keys. Vaswani et al. 2017, sec. 3.2.3.

    >>> causal_mask(2, 3).int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(diagonal=keys - queries)


def attend(scores: Tensor, values: Tensor, mask: Mask = None, dropout: float = 0.0, reweigh: Reweigh = None):
    """scores (..., T, S), values (..., S, D) -> context (..., T, D), weights (..., T, S).

    dropout : the probability of dropping each weight, for training. The returned weights are those before dropout.
    reweigh : replaces the weights; the returned weights are the new ones.

    >>> attend(scores=torch.zeros(1, 2), values=torch.tensor([[1.0], [3.0]]))
    (tensor([[2.]]), tensor([[0.5000, 0.5000]]))
    """
    weights = masked_softmax(scores, mask)
    if reweigh is not None:
        weights = reweigh(weights, mask)
    used = F.dropout(weights, dropout) if dropout else weights
    return used @ values, weights


def dot_scores(query: Tensor, keys: Tensor) -> Tensor:
    """query (..., T, D), keys (..., S, D) -> q . k (..., T, S). Luong et al. 2015, sec. 3.1, *dot*.

    >>> dot_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [1.0, 0.0]]))
    tensor([[11.,  1.]])
    """
    if query.shape[-1] != keys.shape[-1]:
        widths = f"{query.shape[-1]} and {keys.shape[-1]} (use general, concat or additive for different widths)"
        raise ValueError(f"dot scores need queries and keys of the same width; got {widths}")
    return query @ keys.transpose(-2, -1)


def scaled_dot_scores(query: Tensor, keys: Tensor) -> Tensor:
    """query (..., T, D), keys (..., S, D) -> q . k / sqrt(d), with d = D (..., T, S). Vaswani et al. 2017, eq. 1.

    >>> scaled_dot_scores(torch.ones(1, 4), torch.ones(3, 4))
    tensor([[2., 2., 2.]])
    """
    return dot_scores(query * query.shape[-1] ** -0.5, keys)  # scaled before: the products stay small


def products(query: Tensor, keys: Tensor) -> Tensor:
    """query (..., T, D), keys (..., S, D) -> q_i k_i (..., T, S, D): the terms of a dot product.

    >>> products(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([[[3., 8.]]])
    """
    return query.unsqueeze(-2) * keys.unsqueeze(-3)


class Attention(nn.Module):
    """A score function with its parameters. Subclasses define `score` and, if needed, `prepare` and `terms`.
    `prepare` does the work that depends only on the keys, so that a decoder does it once a sentence, not once a step.

    name : of the score. unit : what a term belongs to. extra : the names of the last terms, which belong to none, such
    as a constant. widths : of queries and keys; None if any is valid. reach : of a window, keys to either side.

    >>> [tuple(x.shape) for x in ScaledDot()(torch.randn(1, 2, 4), torch.randn(1, 3, 4), torch.randn(1, 3, 5))]
    [(1, 2, 5), (1, 2, 3)]
    """

    name, unit = "", "dimension"
    extra: tuple[str, ...] = ()
    widths: tuple[int, int] | None = None
    reach: float = 0

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.dropout = dropout

    def prepare(self, keys: Tensor) -> Tensor:
        """keys (B, S, D) -> the keys as `score` needs them (B, S, ...)."""
        return keys

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        """query (B, T, D), prepared keys -> scores (B, T, S)."""
        raise TypeError(f"{type(self).__name__} must define score()")

    def terms(self, query: Tensor, prepared: Tensor) -> Tensor:
        """query (B, T, D), prepared keys -> terms (B, T, S, N), whose sum over N is the score; by default N is 1."""
        return self.score(query, prepared).unsqueeze(-1)

    def window(self, query: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor] | None:
        """query (B, T, D), number of keys -> centre (B, T), log Gaussian and window (B, T, S); None if not local."""
        return None

    def read(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask = None, reweigh: Reweigh = None):
        """The same as `forward`, for keys already processed by `prepare`. reweigh : as in `attend`."""
        return attend(self.score(query, prepared), values, mask, self.dropout if self.training else 0.0, reweigh)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Mask = None) -> tuple[Tensor, Tensor]:
        """query (B,T,Dq), keys (B,S,Dk), values (B,S,Dv), mask (B,1|T,S) -> context (B,T,Dv), weights (B,T,S)."""
        return self.read(query, self.prepare(keys), values, mask)


class Dot(Attention):
    """q . k. Luong et al. 2015, sec. 3.1, *dot*.

    >>> Dot().score(torch.ones(1, 1, 4), torch.ones(1, 3, 4))
    tensor([[[4., 4., 4.]]])
    """

    name = "dot"

    def score(self, query, prepared):
        return dot_scores(query, prepared)

    def terms(self, query, prepared):
        return products(query, prepared)


class ScaledDot(Attention):
    """q . k / sqrt(d). Vaswani et al. 2017, eq. 1.

    >>> ScaledDot().score(torch.ones(1, 1, 4), torch.ones(1, 3, 4))
    tensor([[[2., 2., 2.]]])
    """

    name = "scaled dot"

    def score(self, query, prepared):
        return scaled_dot_scores(query, prepared)

    def terms(self, query, prepared):
        return products(query * query.shape[-1] ** -0.5, prepared)


class General(Dot):
    """q . U k: a learned bilinear form. Luong et al. 2015, sec. 3.1, *general*; the paper's W_a.

    >>> General(query_width=4, key_width=6).prepare(torch.randn(1, 3, 6)).shape
    torch.Size([1, 3, 4])
    """

    name = "general"

    def __init__(self, query_width: int, key_width: int, dropout: float = 0.0):
        super().__init__(dropout)
        self.widths = query_width, key_width
        self.key = nn.Linear(key_width, query_width, bias=False)  # U
        nn.init.normal_(self.key.weight, std=(query_width * key_width) ** -0.5)  # small: an unsaturated softmax

    def prepare(self, keys):
        return self.key(keys)


class Local(General):
    """*local-p*: the general score in a window around a predicted position. Luong et al. 2015, sec. 3.2.

    p = S sigmoid(v . tanh(W q)), eq. 9      weights = softmax over the window * Gaussian around p, eq. 10

    One difference from the paper: the product is divided by its sum, so a row is the softmax, over the window, of score
    + log Gaussian. Keys count from 0. S is the number of visible keys, without padding; they must come first.

    reach : the paper's D, in keys. At least 1: p lies between 0 and S, so no window is empty.

    >>> Local(4, 6, reach=2).around(centre=torch.tensor([1.0]), size=5)[1]
    tensor([[ True,  True,  True,  True, False]])
    """

    def __init__(self, query_width: int, key_width: int, reach: float = 10, dropout: float = 0.0):
        if not reach >= 1:  # also true for NaN
            raise ValueError(f"reach must be at least 1, so that every window holds a key; got {reach}")
        super().__init__(query_width, key_width, dropout)
        self.reach = reach
        self.hidden = nn.Linear(query_width, query_width, bias=False)  # W_p
        self.place = nn.Linear(query_width, 1, bias=False)  # v_p

    def centre(self, query: Tensor, lengths: Tensor) -> Tensor:
        """query (B, T, D), lengths (B, 1|T) -> p (B, T), a real number from 0 to the length."""
        return lengths * torch.sigmoid(self.place(torch.tanh(self.hidden(query)))).squeeze(-1)

    def around(self, centre: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """centre (..., T), a position among keys 0 to size - 1 -> log Gaussian around it, window; both (..., T, size).
        exp(-(s - p)^2 / (2 sigma^2)), sigma = reach / 2, which alone has a gradient; True where |s - p| <= reach.
        """
        away = torch.arange(size, device=centre.device) - centre.unsqueeze(-1)
        return -(away**2) / (2 * (self.reach / 2) ** 2), away.abs() <= self.reach

    def window(self, query, size):
        centre = self.centre(query, query.new_full((1, 1), size))
        return centre, *self.around(centre, size)

    def read(self, query, prepared, values, mask=None, reweigh=None):
        size = values.shape[-2]
        visible = torch.ones(1, 1, size, dtype=torch.bool, device=values.device) if mask is None else mask
        lengths = visible.sum(dim=-1, dtype=torch.float32)  # p too: bfloat16 has steps of 0.5 above 64
        gaussian, window = self.around(self.centre(query, lengths), size)
        scores = self.score(query, prepared) + gaussian.to(values.dtype)
        return attend(scores, values, window & visible, self.dropout if self.training else 0.0, reweigh)


class Additive(Attention):
    """v . tanh(W q + U k). Bahdanau et al. 2015, appendix A.1.2; the paper's W_a, U_a, v_a.

    >>> Additive(4, 6, width=8).terms(torch.randn(1, 2, 4), torch.randn(1, 3, 8)).shape
    torch.Size([1, 2, 3, 8])
    """

    name, unit = "additive", "hidden unit"

    def __init__(self, query_width: int, key_width: int, width: int, dropout: float = 0.0):
        super().__init__(dropout)
        self.widths = query_width, key_width
        self.query = nn.Linear(query_width, width, bias=False)  # W
        self.key = nn.Linear(key_width, width, bias=False)  # U
        self.energy = nn.Linear(width, 1, bias=False)  # v

    def prepare(self, keys):
        return self.key(keys)

    def score(self, query, prepared):
        return self._hidden(query, prepared) @ self.energy.weight[0]

    def terms(self, query, prepared):
        return self._hidden(query, prepared) * self.energy.weight[0]

    def _hidden(self, query, prepared):
        return torch.tanh(self.query(query).unsqueeze(-2) + prepared.unsqueeze(-3))  # (B, T, S, width)


class Concat(Attention):
    """v . tanh([W U] [q; k]), with [q; k] the concatenation. Luong et al. 2015, sec. 3.1, *concat*.
    [W U], the paper's W_a, times [q; k] is W q + U k: additive, with both matrices in one.

    >>> Concat(4, 6, width=8).joint.weight.shape
    torch.Size([8, 10])
    """

    name, unit = "concat", Additive.unit
    score, terms = Additive.score, Additive.terms  # sums over the same hidden units

    def __init__(self, query_width: int, key_width: int, width: int, dropout: float = 0.0):
        super().__init__(dropout)
        self.widths, self.query_width = (query_width, key_width), query_width
        self.joint = nn.Linear(query_width + key_width, width, bias=False)  # [W U]
        self.energy = nn.Linear(width, 1, bias=False)  # v

    def prepare(self, keys):
        return keys @ self.joint.weight[:, self.query_width :].T

    def _hidden(self, query, prepared):
        return torch.tanh((query @ self.joint.weight[:, : self.query_width].T).unsqueeze(-2) + prepared.unsqueeze(-3))


class MultiHead(nn.Module):
    """H scaled-dot attentions side by side, each in its own learned projection. Vaswani et al. 2017, sec. 3.2.2.

    One matrix holds the H projections, and `split` cuts the result into heads. `remember` projects the memory to keys
    and values, which a decoder keeps from step to step. The projections have biases, which the paper's formula has not.

    >>> MultiHead(width=8, heads=2)(torch.randn(1, 2, 8), torch.randn(1, 3, 8))[1].shape
    torch.Size([1, 2, 2, 3])
    """

    unit, extra, reach = ScaledDot.unit, ScaledDot.extra, ScaledDot.reach
    score: Callable = ScaledDot.score  # query (..., T, d), keys (..., S, d) of heads -> (..., T, S)
    terms: Callable = ScaledDot.terms
    window: Callable = ScaledDot.window

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(f"width must be a multiple of heads; got width {width} and {heads} heads")
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(width, width)
        self.memory = nn.Linear(width, 2 * width)  # keys, then values
        self.output = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        """(B, S, H*d) -> (B, H, S, d)."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """memory (B, S, D) -> keys and values, both (B, H, S, d)."""
        keys, values = self.memory(memory).chunk(2, dim=-1)
        return self.split(keys), self.split(values)

    def read(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask = None, reweigh: Reweigh = None):
        """query (B,T,D), prepared keys and values (B,H,S,d), mask (B,1,1|T,S) -> context (B,T,D), weights (B,H,T,S)."""
        scores = scaled_dot_scores(self.split(self.query(query)), prepared)  # (B, H, T, S)
        context, weights = attend(scores, values, mask, self.dropout if self.training else 0.0, reweigh)
        return self.output(context.transpose(1, 2).flatten(-2)), weights

    def forward(self, query: Tensor, memory: Tensor, mask: Mask = None) -> tuple[Tensor, Tensor]:
        """query (B,T,D), memory (B,S,D), mask (B,1,1|T,S) -> context (B,T,D), weights (B,H,T,S)."""
        return self.read(query, *self.remember(memory), mask)


def rotated(x: Tensor, first: int = 0, base: float = 10_000) -> Tensor:
    """x (..., T, d), at positions first, first + 1, ... -> the same, each pair of numbers turned by an angle.
    Number i and number i + d/2 are a pair, turned by position * base^(-2i/d). So q . k depends only on the difference
    of the two positions. Su et al. 2021, eq. 15 and 34.

    >>> rotated(torch.tensor([[1.0, 0.0]]), first=1)
    tensor([[0.5403, 0.8415]])
    """
    half = x.shape[-1] // 2
    speed = base ** (-torch.arange(half, device=x.device) / half)  # radians a position
    angle = torch.arange(first, first + x.shape[-2], device=x.device).unsqueeze(1) * speed  # (T, d/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_printoptions(precision=2, sci_mode=False)
    sentence = torch.randn(1, 5, 4)  # five words, a vector of four numbers each
    attention = ScaledDot()
    context, weights = attention(sentence, sentence, sentence)
    print("self-attention: scores", attention.score(sentence, sentence)[0], sep="\n")
    print("weights, whose rows sum to 1", weights[0], "context", context[0], sep="\n")
    _, weights = attention(sentence, sentence, sentence, causal_mask(5, 5))
    print("weights with a causal mask", weights[0], sep="\n")
    context, weights = attention(torch.randn(1, 1, 4), sentence, sentence)  # the query is a decoder's state
    print("cross-attention: weights", weights[0], "context", context[0], sep="\n")
