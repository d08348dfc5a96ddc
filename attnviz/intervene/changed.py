"""Where attention is changed (which steps, and in a Transformer which layer and head of cross-attention), and a
translator's network with changed attention, which decode.py can use like any other network.

The change is an argument of the network's `step`; the number of the step is a part of the decoder's state. So the
network itself never changes, also when a change raises.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.arguments import Checked
from attnviz.attention import Reweigh
from attnviz.function_words import CONTENT, FUNCTION
from attnviz.intervene.changes import Change, Identity, Place
from attnviz.networks import DecoderStep, Memory, Network, decode
from attnviz.networks.transformer import Transformer

OnStep = Callable[[], None]
Chosen = Callable[[int, Callable[[], Tensor]], bool]  # step, what the unchanged network says there (V,) -> change it?


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


def cross_layers(network: Network) -> int:
    """How many layers of cross-attention a translator's network has."""
    return len(network.decoder) if isinstance(network, Transformer) else int(hasattr(network, "attention"))


def cross_heads(network: Network) -> int:
    """How many heads each of them has."""
    return network.decoder[0].cross.heads if isinstance(network, Transformer) else 1


def check_scope(network: Network, scope: Scope) -> None:
    """ValueError if the network has no attention, or not that layer or head."""
    count = cross_layers(network)
    if not count:
        raise ValueError("model must have attention; a fixed context has none to change")
    for name, number, most in (("layer", scope.layer, count), ("head", scope.head, cross_heads(network))):
        if number is not None and not 0 <= number < most:
            raise ValueError(f"{name} must be None or from 0 to {most - 1}; got {number}")


def reweigh_layers(network: Network, change: Change, scope: Scope, step: int) -> tuple[Reweigh, ...]:
    """The argument `reweigh` of a network's `step` where the change applies: one per layer, None for no change."""
    if isinstance(change, Identity):
        return (None,) * cross_layers(network)
    return tuple(
        _at(change, scope.head, Place(step, layer)) if scope.layer in (None, layer) else None
        for layer in range(cross_layers(network))
    )


def _at(change: Change, head: int | None, place: Place) -> Reweigh:
    return partial(_apply, change, head, place)


def _apply(change: Change, head: int | None, place: Place, weights: Tensor, mask: Tensor | None) -> Tensor:
    """weights (B, H, T, S), or (B, 1, S) of a recurrent network; mask as the network has it, None when all is
    visible."""
    visible = weights.new_ones(weights.shape, dtype=torch.bool) if mask is None else mask.expand_as(weights)
    changed = change(weights, visible, place)
    if head is None:
        return changed
    mixed = weights.clone()
    mixed[:, head] = changed[:, head]
    return mixed


class Changed:
    """A network whose attention is changed, as `decode` needs it.

    chosen : at which steps. on_step : called before each step; what it raises ends the decoding. step_logits : logits
    (V,) of the steps so far, of the first row of the batch, for the caller.
    """

    def __init__(self, network: Network, change: Change, scope: Scope, chosen: Chosen, on_step: OnStep = lambda: None):
        check_scope(network, scope)
        self.network, self.change, self.scope, self.chosen = network, change, scope, chosen
        self.on_step = on_step
        self.step_logits: list[Tensor] = []

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Memory:
        memory: Any = self.network.encode(source, mask)
        return memory._replace(state=(source.new_zeros(len(source)), memory.state))

    def step(self, memory: Any, state: tuple, token: Tensor) -> DecoderStep:
        """As the `step` of the network; the state also has the number of the step."""
        self.on_step()
        numbers, inner = state
        number = int(numbers[0])
        reweighs: tuple[Reweigh, ...] = ()
        if self.chosen(number, lambda: self.network.step(memory, inner, token).logits[0]):
            reweighs = reweigh_layers(self.network, self.change, self.scope, number)
        step = self.network.step(memory, inner, token, reweighs)
        self.step_logits.append(step.logits[0])
        return step._replace(state=(numbers + 1, step.state))

    def force(self, memory: Any, target: Tensor) -> tuple[Tensor, tuple, tuple]:
        """As the `force` of the network, but step by step, because a change may depend on the step. Its readouts are
        the logits of these steps."""
        state, steps = memory.state, []
        for token in target.unbind(1):
            steps.append(self.step(memory, state, token))
            state = steps[-1].state
        rows = len(steps)
        readouts = torch.stack([step.logits for step in steps], dim=1)
        cross = [torch.stack(layer, dim=2) for layer in zip(*(step.cross for step in steps))]
        own = [
            torch.stack([F.pad(weights, (0, rows - weights.shape[-1])) for weights in layer], dim=2)
            for layer in zip(*(step.decoder for step in steps))
        ]
        return readouts, tuple(cross), tuple(own)

    def logits(self, readouts: Tensor) -> Tensor:
        """The readouts of `force` are logits already."""
        return readouts


def at_steps(steps: Sequence[int] | None) -> Chosen:
    """These steps, or all."""
    return lambda number, _said: steps is None or number in steps


def where_first_choice(steps: Sequence[int] | None, is_such: Callable[[int], bool]) -> Chosen:
    """The steps, of those given, at which the first choice of the unchanged network is a piece of the wanted sort."""

    def chosen(number: int, logits: Callable[[], Tensor]) -> bool:
        return (steps is None or number in steps) and is_such(int(decode.best(number, logits()[None])))

    return chosen
