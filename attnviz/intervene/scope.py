"""Where attention is changed: which steps, and in a Transformer which layer and head of cross-attention."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from attnviz.arguments import Checked
from attnviz.attention import Reweigh
from attnviz.function_words import CONTENT, FUNCTION
from attnviz.intervene.changes import Change, Identity, Place


@dataclass(frozen=True)
class Scope(Checked):
    """steps : from 0; None for all. words : only steps that produce a "function" or a "content" word.
    layer, head : of a Transformer, from 0; None for all layers, all heads of a layer.
    """

    steps: tuple[int, ...] | None = None
    words: str | None = None
    layer: int | None = None
    head: int | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.words not in (None, FUNCTION, CONTENT):
            raise ValueError(f"words must be {FUNCTION}, {CONTENT} or None; got {self.words!r:.80}")
        if self.steps is not None and (not self.steps or min(self.steps) < 0):
            raise ValueError(f"steps must be places of target tokens, from 0, or None for all; got {self.steps}")


def layers(network: nn.Module) -> int:
    """How many layers of cross-attention a translator's network has."""
    return len(network.decoder) if hasattr(network, "decoder") else int(hasattr(network, "attention"))


def heads(network: nn.Module) -> int:
    """How many heads each of them has."""
    return network.decoder[0].cross.heads if hasattr(network, "decoder") else 1


def check(network: nn.Module, scope: Scope) -> None:
    """ValueError if the network has no attention, or not that layer or head."""
    count = layers(network)
    if not count:
        raise ValueError("model must have attention; a fixed context has none to change")
    for name, number, most in (("layer", scope.layer, count), ("head", scope.head, heads(network))):
        if number is not None and not 0 <= number < most:
            raise ValueError(f"{name} must be None or from 0 to {most - 1}; got {number}")


def reweighs(network: nn.Module, change: Change, scope: Scope, step: int) -> tuple[Reweigh | None, ...]:
    """The argument `reweigh` of a network's `step` where the change applies: one per layer, None for no change."""
    if isinstance(change, Identity):
        return (None,) * layers(network)
    return tuple(
        _at(change, scope.head, Place(step, layer)) if scope.layer in (None, layer) else None
        for layer in range(layers(network))
    )


def _at(change: Change, head: int | None, place: Place) -> Callable[[Tensor, Tensor | None], Tensor]:
    return partial(_apply, change, head, place)


def _apply(change: Change, head: int | None, place: Place, weights: Tensor, mask: Tensor | None) -> Tensor:
    """weights (B, H, T, S), or (B, 1, S) of a recurrent network; mask as the network has it, None when all is
    visible."""
    visible = weights.new_ones(weights.shape, dtype=bool) if mask is None else mask.expand_as(weights)
    changed = change(weights, visible, place)
    if head is None:
        return changed
    mixed = weights.clone()
    mixed[:, head] = changed[:, head]
    return mixed
