"""Changes of attention, as values: a change defines what replaces a row of weights.

A change is called with weights (..., S), `visible` (the same shape, True where the query may look) and a `Place`. It
returns weights that are at least 0 and sum to 1. Hidden keys keep weight 0, except under `LastOnly` and `Given`, which
choose their keys. `str(change)` is a short form for addresses (`parse` reads it); `title` is for readers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from attnviz.arguments import Checked, checked

TOLERANCE = 1e-3  # by which given weights may miss a sum of 1; it is divided out


class Place(NamedTuple):
    """Where a change applies: step and layer, from 0.

    >>> row = torch.rand(99)
    >>> first, second = (intervene.Permuted()(row, row > 0, intervene.Place(step, layer=0)) for step in (0, 1))
    >>> first.equal(second)
    False
    """

    step: int
    layer: int


@dataclass(frozen=True)
class Change(Checked):
    """A change of attention; the base class. name : as in `str`. title : the change in words.

    >>> str(intervene.Hide((0, 1))), intervene.Hide((0, 1)).title
    ('hide:0,1', 'source tokens 1, 2 hidden')
    """

    name: ClassVar[str]

    @property
    def title(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __call__(self, weights: Tensor, visible: Tensor, place: Place) -> Tensor:
        raise TypeError(f"{type(self).__name__} must say how it changes weights")


@dataclass(frozen=True)
class Identity(Change):
    """No change: the weights stay.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.Identity()(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0.2000, 0.5000, 0.3000])
    """

    name = "identity"
    title = "no change"

    def __call__(self, weights, visible, place):
        return weights


@dataclass(frozen=True)
class Uniform(Change):
    """The same weight on every visible token.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.Uniform()(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0.3333, 0.3333, 0.3333])
    """

    name = "uniform"
    title = "uniform"

    def __call__(self, weights, visible, place):
        return evenly(visible, weights)


@dataclass(frozen=True)
class ZeroLargest(Change):
    """The largest weight becomes 0; the others are divided by their sum. A query that sees one token keeps it.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.ZeroLargest()(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0.4000, 0.0000, 0.6000])
    """

    name = "zero-largest"
    title = "largest weight to 0"

    def __call__(self, weights, visible, place):
        others = visible & ~largest(weights)
        return torch.where(others.any(-1, keepdim=True), shared(weights, others), weights)


@dataclass(frozen=True)
class OnlyLargest(Change):
    """The largest weight becomes 1 and all others 0.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.OnlyLargest()(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0., 1., 0.])
    """

    name = "only-largest"
    title = "only the largest weight"

    def __call__(self, weights, visible, place):
        return largest(weights).to(weights)


@dataclass(frozen=True)
class KeepLargest(Change):
    """The largest weight is kept; the rest is spread evenly over the other visible tokens.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.KeepLargest()(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0.2500, 0.5000, 0.2500])
    """

    name = "keep-largest"
    title = "largest kept, the rest even"

    def __call__(self, weights, visible, place):
        top = largest(weights)
        others = visible & ~top
        rest = (1 - weights.amax(-1, keepdim=True)) * evenly(others, weights)
        return torch.where(others.any(-1, keepdim=True), torch.where(top, weights, rest), weights)


@dataclass(frozen=True)
class Permuted(Change):
    """The same weights on other visible tokens, in an order drawn from the seed, the step and the layer.

    Every row of a batch, and every head, has an order of its own. Jain and Wallace 2019.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.Permuted(seed=0)(row, row > 0, intervene.Place(step=0, layer=0)).sort().values
    tensor([0.2000, 0.3000, 0.5000])
    """

    name = "permuted"
    title = "permuted"
    seed: int = 0

    def __call__(self, weights, visible, place):
        generator = torch.Generator().manual_seed(hash((self.seed, *place)) & (2**63 - 1))
        order = torch.rand(weights.shape, generator=generator).masked_fill(~visible, torch.inf)
        moved = weights.gather(-1, order.argsort(-1))  # visible tokens in a random order, then the hidden ones
        if visible.all():  # most often, and a second sort takes as long as the first
            return moved
        ordered = (~visible).to(torch.uint8).argsort(dim=-1, stable=True)  # the same in their own order
        return torch.empty_like(weights).scatter_(-1, ordered, moved)

    def __str__(self) -> str:
        return f"{self.name}:{self.seed}"


@dataclass(frozen=True)
class LastOnly(Change):
    """All weight on the last source token: the same context at every step (compare Cho et al. 2014).

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.LastOnly()(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0., 0., 1.])
    """

    name = "last-only"
    title = "only the last source state"

    def __call__(self, weights, visible, place):
        last = torch.zeros_like(weights)
        last[..., -1] = 1
        return last


@dataclass(frozen=True)
class Temperature(Change):
    """The softmax of the scores divided by `value`: above 1 the weights are flatter, below 1 sharper.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.Temperature(0.5)(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0.1053, 0.6579, 0.2368])
    """

    name = "temperature"
    value: float

    def __post_init__(self):
        super().__post_init__()
        if not 0 < self.value < float("inf"):  # nor NaN
            raise ValueError(f"temperature must be above 0; got {self.value}")

    def __call__(self, weights, visible, place):
        return torch.softmax(weights.log() / self.value, dim=-1)  # log a = score - a constant of the row

    @property
    def title(self) -> str:
        return f"temperature {self.value:g}"

    def __str__(self) -> str:
        return f"{self.name}:{self.value:g}"


@dataclass(frozen=True)
class Hide(Change):
    """Source tokens (places from 0) get weight 0, as under a mask; the other weights are divided by their sum.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.Hide((1,))(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0.4000, 0.0000, 0.6000])
    """

    name = "hide"

    tokens: tuple[int, ...]

    def __post_init__(self):
        super().__post_init__()
        if not self.tokens or min(self.tokens) < 0:
            raise ValueError(f"tokens must be places of source tokens, from 0; got {self.tokens}")

    def __call__(self, weights, visible, place):
        size = weights.shape[-1]
        if max(self.tokens) >= size:
            raise ValueError(f"tokens must be places of source tokens, 0 to {size - 1}; got {max(self.tokens)}")
        left = visible.clone()
        left[..., list(self.tokens)] = False
        if not left.any(-1).all():
            raise ValueError("at least one source token must stay visible; hide fewer")
        return shared(weights, left)

    @property
    def title(self) -> str:
        return f"source token{'s' if len(self.tokens) > 1 else ''} {', '.join(str(t + 1) for t in self.tokens)} hidden"

    def __str__(self) -> str:
        return f"{self.name}:" + ",".join(map(str, self.tokens))


@dataclass(frozen=True)
class Given(Change):
    """Weights chosen by hand, one for each source token.

    >>> row = torch.tensor([0.2, 0.5, 0.3])
    >>> intervene.Given((0.1, 0.9, 0.0))(row, row > 0, intervene.Place(step=0, layer=0))
    tensor([0.1000, 0.9000, 0.0000])
    """

    name = "given"
    title = "given weights"

    weights: tuple[float, ...]

    def __post_init__(self):
        super().__post_init__()
        if not self.weights or not min(self.weights) >= 0 or not abs(sum(self.weights) - 1) <= TOLERANCE:
            raise ValueError(f"weights must be at least 0 and sum to 1; got {self.weights}")

    def __call__(self, weights, visible, place):
        if len(self.weights) != weights.shape[-1]:
            raise ValueError(f"weights must be one per source token, {weights.shape[-1]}; got {len(self.weights)}")
        row = weights.new_tensor(self.weights)
        return (row / row.sum()).expand_as(weights)

    def __str__(self) -> str:
        return f"{self.name}:" + ",".join(f"{weight:g}" for weight in self.weights)


@dataclass(frozen=True)
class Stacked(Change):
    """Several changes in one batch. Each change has a number of rows, in order; all share one unchanged pass."""

    name = "stacked"
    title = "several changes"

    parts: tuple[tuple[Change, int], ...]

    @property
    def rows(self) -> int:
        """Number of batch rows that the change applies to."""
        return sum(count for _, count in self.parts)

    def __call__(self, weights, visible, place):
        if len(weights) != self.rows:
            raise ValueError(f"weights must have {self.rows} rows, as the changes have; got {len(weights)}")
        counts = [count for _, count in self.parts]
        rows = zip(self.parts, weights.split(counts), visible.split(counts))
        return torch.cat([change(own, seen, place) for (change, _), own, seen in rows])


def largest(weights: Tensor) -> Tensor:
    """bool (..., S): True for the largest weight of each row (the first one, if several are equal)."""
    return torch.zeros_like(weights, dtype=torch.bool).scatter_(-1, weights.argmax(-1, keepdim=True), True)


def evenly(chosen: Tensor, like: Tensor) -> Tensor:
    """The same weight on each chosen key (..., S); 0 everywhere in a row without chosen keys."""
    return chosen.to(like) / chosen.sum(-1, keepdim=True).clamp(min=1)


def shared(weights: Tensor, chosen: Tensor) -> Tensor:
    """The weights of the chosen keys divided by their sum; equal weights where this sum is 0."""
    weight_of_chosen = weights * chosen
    total = weight_of_chosen.sum(-1, keepdim=True)
    return torch.where(
        total > 0, weight_of_chosen / total.clamp(min=torch.finfo(weights.dtype).tiny), evenly(chosen, weights)
    )


KINDS: dict[str, type[Change]] = {
    kind.name: kind
    for kind in (Identity, Uniform, ZeroLargest, OnlyLargest, KeepLargest, Permuted, LastOnly, Temperature, Hide, Given)
}


READERS: dict[str, Callable[[str], Change]] = {  # those that have a value
    Permuted.name: lambda text: Permuted(int(text)),
    Temperature.name: lambda text: Temperature(float(text)),
    Hide.name: lambda text: Hide(tuple(int(part) for part in text.split(","))),
    Given.name: lambda text: Given(tuple(float(part) for part in text.split(","))),
}


@checked
def parse(text: str) -> Change:
    """The change of a text that `str` wrote: `uniform`, `permuted:3`, `temperature:0.5`, `hide:1,2`, `given:0.5,0.5`.

    ValueError for any other text.

    >>> intervene.parse("hide:1,2")
    Hide(tokens=(1, 2))
    """
    name, colon, value = text.partition(":")
    if name not in KINDS or (name in READERS) != bool(colon):
        forms = ", ".join(f"{kind}:…" if kind in READERS else kind for kind in KINDS)
        raise ValueError(f"change must be one of {forms}; got {text!r:.80}")
    try:
        return READERS[name](value) if colon else KINDS[name]()
    except ValueError as error:
        raise ValueError(f"change {text!r:.80} cannot be read: {error}") from None
