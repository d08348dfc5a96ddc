"""A translator's network with changed attention. decode.py can use it like any other network.

The change is an argument of the network's `step`; the number of the step is a part of the decoder's state. So the
network itself never changes, also when a change raises.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.intervene import scope as scopes
from attnviz.intervene.changes import Change
from attnviz.intervene.scope import Scope
from attnviz.networks import decode

OnStep = Callable[[], None]
Chosen = Callable[[int, Callable[[], Tensor]], bool]  # step, what the unchanged network says there (V,) -> change it?


class Changed:
    """`encode`, `step`, `force` and `logits` of a network whose attention is changed.

    chosen : at which steps. on_step : called before each step; what it raises ends the decoding. said :
    logits (V,) of the steps so far, of the first row of the batch, for the caller.
    """

    def __init__(
        self, network: nn.Module, change: Change, scope: Scope, chosen: Chosen, on_step: OnStep = lambda: None
    ):
        scopes.check(network, scope)
        self.network, self.change, self.scope, self.chosen = network, change, scope, chosen
        self.on_step = on_step
        self.said: list[Tensor] = []

    def encode(self, source: Tensor, mask: Tensor | None = None):
        memory = self.network.encode(source, mask)
        return memory._replace(state=(source.new_zeros(len(source)), memory.state))

    def step(self, memory, state: tuple, token: Tensor):
        """As the `step` of the network; the state also has the number of the step."""
        self.on_step()
        numbers, inner = state
        number = int(numbers[0])
        reweighs: Sequence = (None,) * scopes.layers(self.network)
        if self.chosen(number, lambda: self.network.step(memory, inner, token).logits[0]):
            reweighs = scopes.reweighs(self.network, self.change, self.scope, number)
        step = self.network.step(memory, inner, token, reweighs)
        self.said.append(step.logits[0])
        return step._replace(state=(numbers + 1, step.state))

    def force(self, memory, target: Tensor) -> tuple[Tensor, tuple, tuple]:
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


def at(steps: Sequence[int] | None) -> Chosen:
    """These steps, or all."""
    return lambda number, _said: steps is None or number in steps


def where_said(steps: Sequence[int] | None, is_such: Callable[[int], bool]) -> Chosen:
    """The steps, of those given, at which the first choice of the unchanged network is a piece of the wanted sort."""

    def chosen(number: int, said: Callable[[], Tensor]) -> bool:
        return (steps is None or number in steps) and is_such(int(decode.best(number, said()[None])))

    return chosen
