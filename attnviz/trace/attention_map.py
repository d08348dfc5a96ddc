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
    """

    kind: str
    layer: int
    weights: np.ndarray

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

    @property
    def name(self) -> str:
        """Its name in error messages."""
        return f"the {self.kind} map of layer {self.layer}"

    def __repr__(self) -> str:
        """One line: kind, layer and shape."""
        heads, queries, keys = self.weights.shape
        return f"AttentionMap({self.kind}, layer {self.layer}: {heads} heads, {queries} queries, {keys} keys)"

    def __eq__(self, other):
        if not isinstance(other, AttentionMap):
            return NotImplemented
        return (self.kind, self.layer) == (other.kind, other.layer) and np.array_equal(self.weights, other.weights)

    def __hash__(self):
        return hash((self.kind, self.layer, self.weights.tobytes()))
