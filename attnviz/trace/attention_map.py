"""AttentionMap: the attention weights of one layer."""

from dataclasses import dataclass

import numpy as np

from attnviz.arguments import shown
from attnviz.trace import checks
from attnviz.trace.axes import KINDS


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Weights (heads, queries, keys) of one layer, counted from 0. Every weight is at least 0 and every row sums to 1.

    The weights are kept as a read-only float32 copy. Raises ValueError for an unknown kind, layer or bad weights.

    mask : bool (queries, keys), True where a query can see a key, as in a sliding window; None: what the kind says. The
        weight of a hidden key is 0.
    sink : the last column is no key: it holds what each query gives to none of them (an attention sink).
    averaged : the only head is the mean of all heads of the layer.
    shared : the number of query heads that share keys and values (Ainslie et al. 2023); 1 where each has its own.
    """

    kind: str
    layer: int
    weights: np.ndarray
    mask: np.ndarray | None = None
    sink: bool = False
    averaged: bool = False
    shared: int = 1

    def __post_init__(self):
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {shown(self.kind)}")
        if not isinstance(self.layer, int) or isinstance(self.layer, bool) or self.layer < 0:
            raise ValueError(f"layer must be an integer of at least 0; got {shown(self.layer)}")
        if self.layer >= 2**31:
            raise ValueError(f"layer must be below {2**31:,}; got a number of {len(str(self.layer))} digits")
        name = f"weights of {self.name}"
        try:
            given = np.asarray(self.weights)
            if given.dtype.kind == "c":
                raise ValueError("they are complex")
            weights = np.array(given, dtype=np.float32, order="C")
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must be numbers with axes [heads, queries, keys]") from None
        if weights.ndim != 3 or not weights.size:
            raise ValueError(f"{name} must have axes [heads, queries, keys], none empty; got shape {weights.shape}")
        checks.rows(weights, name)
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)
        checks.marks(name, sink=self.sink, averaged=self.averaged)
        if type(self.shared) is not int or self.shared < 1 or len(weights) % self.shared:
            raise ValueError(f"shared must divide the {len(weights)} heads of {self.name}; got {shown(self.shared)}")
        if self.averaged and len(weights) != 1:
            raise ValueError(f"{self.name} must have one head to be a mean of heads; got {len(weights)}")
        if self.mask is not None:
            object.__setattr__(self, "mask", checks.mask(self))

    @property
    def keys(self) -> np.ndarray:
        """The weights on keys alone, without the sink: (heads, queries, keys)."""
        return self.weights[..., :-1] if self.sink else self.weights

    @property
    def name(self) -> str:
        """Its name in error messages."""
        return f"the {self.kind} map of layer {self.layer}"

    def to_dict(self, weights: bool = True) -> dict:
        """Plain values. weights : False leaves out the arrays. What is as usual is not written."""
        values = {"kind": self.kind, "layer": self.layer}
        usual = {"sink": False, "averaged": False, "shared": 1}
        values |= {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}
        if weights:
            values |= {"weights": self.weights.tolist()} | ({} if self.mask is None else {"mask": self.mask.tolist()})
        return values

    def __repr__(self) -> str:
        """One line: kind, layer and shape."""
        heads, queries, keys = self.weights.shape
        return f"AttentionMap({self.kind}, layer {self.layer}: {heads} heads, {queries} queries, {keys} keys)"

    def __eq__(self, other):
        if not isinstance(other, AttentionMap):
            return NotImplemented
        names = ("kind", "layer", "sink", "averaged", "shared")
        return (
            all(getattr(self, name) == getattr(other, name) for name in names)
            and np.array_equal(self.weights, other.weights)
            and (self.mask is None) == (other.mask is None)
            and (self.mask is None or np.array_equal(self.mask, other.mask))
        )

    def __hash__(self):
        return hash((self.kind, self.layer, self.weights.tobytes()))
