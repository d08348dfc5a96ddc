"""The interface of a translator's network, independent of its architecture.

Letters: B batch, T target positions, S source positions, D width of a readout, E embedding width, V vocabulary, H
heads.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.attention import Reweigh

Block = TypeVar("Block", bound=nn.Module)


class Memory(Protocol):
    """The encoder's output for the decoder: a named tuple; its other fields are private to the network.

    state : of the decoder before its first step. maps : encoder self-attention weights (B, H, S, S) of each layer.
    """

    @property
    def state(self) -> tuple: ...

    @property
    def maps(self) -> tuple: ...


class ReadoutStep(NamedTuple):
    """One target position, before its logits are made.

    state : of a recurrent decoder its state; of a Transformer the keys and values of all positions so far, a pair for
    each layer. cross, decoder : weights of each layer; a recurrent decoder has at most one layer with one head, and no
    self-attention.
    """

    readout: Tensor  # (B, D) what the network's `logits` makes logits of
    state: tuple
    cross: tuple  # (B, H, S) of each layer
    decoder: tuple = ()  # (B, H, t) of each layer


class DecoderStep(NamedTuple):
    """One target position. state, cross, decoder : as in `ReadoutStep`."""

    logits: Tensor  # (B, V)
    state: tuple
    cross: tuple
    decoder: tuple = ()


class Network(Protocol):
    """A translator's network. `decode` needs the first five methods; the others are for changing its inputs or its
    attention.

    memory : the result of its own `encode`. target : inputs (B, T) from <bos> on. mask (B, S) : True = a real token;
    None when nothing is padded. reweigh : changes the weights of cross-attention, one a layer; () for none.
    """

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Memory:
        """source (B, S) token ids -> Memory."""

    def step(self, memory: Any, state: tuple, token: Tensor, reweigh: Sequence[Reweigh] = ()) -> DecoderStep:
        """state and token (B,) before this position -> DecoderStep."""

    def force(self, memory: Any, target: Tensor) -> tuple[Tensor, tuple, tuple]:
        """Readouts (B, T, D), and of each layer cross (B, H, T, S) and decoder weights (B, H, T, T): what `step`
        returns position by position, in evaluation mode."""

    def readouts(self, memory: Any, target: Tensor) -> Tensor:
        """The readouts of `force` alone."""

    def logits(self, readout: Tensor, /) -> Tensor:
        """readout (..., D) -> (..., V)."""

    def step_readout(self, memory: Any, state: tuple, token: Tensor, reweigh: Sequence[Reweigh] = ()) -> ReadoutStep:
        """`step` without the product with the output matrix, the most expensive one."""

    def encode_vectors(self, vectors: Tensor, mask: Tensor | None = None) -> Memory:
        """`encode` from rows of the embedding (B, S, E)."""

    @property
    def embedding(self) -> nn.Embedding: ...

    def __call__(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Logits (B, T, V), and weights of the last layer."""

    def parameters(self) -> Iterator[nn.Parameter]: ...


class Steps:
    """Steps of a network, made of its `step_readout` and its `logits`."""

    step_readout: Callable[..., ReadoutStep]
    logits: Callable[..., Tensor]

    def step(self, memory: Any, state: tuple, token: Tensor, reweigh: Sequence[Reweigh] = ()) -> DecoderStep:
        """As of `Network`."""
        readout, state, cross, own = self.step_readout(memory, state, token, reweigh)
        return DecoderStep(self.logits(readout), state, cross, own)


class Walk:
    """Step by step through the target positions from <bos> on: call it with tokens before (B, T) for logits (B, T, V).

    goes_back : can it forget steps? Then several guessed tokens can be read at once, which is faster than one by one.
    """

    goes_back = False

    def __init__(self, network: Network, memory: Memory):
        self._network, self._memory, self._state = network, memory, memory.state
        self._cross: list[tuple] = []
        self._decoder: list[tuple] = []

    def __call__(self, tokens: Tensor) -> Tensor:
        return torch.stack([self._step(token) for token in tokens.unbind(1)], dim=1)

    def _step(self, token: Tensor) -> Tensor:
        """token before (B,) -> logits (B, V)."""
        step = self._network.step(self._memory, self._state, token)
        self._state = step.state
        self._cross.append(step.cross)
        self._decoder.append(step.decoder)
        return step.logits

    def forget(self, count: int) -> None:
        """Forget the last `count` tokens, fewer than those of the last call."""
        if count:
            raise ValueError(f"{type(self).__name__} does not go back")

    def maps(self) -> tuple[list[Tensor], list[Tensor]]:
        """Weights of the T steps taken: cross (B, H, T, S) and decoder (B, H, T, T) of each layer."""
        rows = len(self._cross)
        own = [torch.stack([F.pad(w, (0, rows - w.shape[-1])) for w in layer], dim=2) for layer in zip(*self._decoder)]
        return [torch.stack(layer, dim=2) for layer in zip(*self._cross)], own


def sharing(network: Any) -> Any:
    """A copy of a network, of the same class, that shares all weights. Hooks on the copy do not affect the network."""
    return copy.deepcopy(network, {id(tensor): tensor for tensor in [*network.parameters(), *network.buffers()]})


class Blocks(nn.ModuleList, Generic[Block]):
    """torch's ModuleList with the class of its modules as a type parameter."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Block]: ...

        def __getitem__(self, place: int) -> Block: ...  # type: ignore[override]  # no slice of it is taken
