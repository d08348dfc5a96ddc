"""The network of a model of the transformers library, opened for changes of its attention or its inputs: what all such
models share, and that of an encoder–decoder. Letters as in `attnviz.networks`; d width of a query, v of a value."""

import functools
import inspect
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from attnviz.attention import Attention, Reweigh, dot_scores, products
from attnviz.models.huggingface import LIBRARY_ERRORS
from attnviz.networks import ReadoutStep, Steps, sharing

CLOSE = 1e-4  # by which logits and weights may differ from the library's own
_NAME = "attnviz-opened"  # of `_attend`, for the library
_TRIED = 8, 5  # tokens of source and target that a network is tried with; their lengths tell cross-attention apart
Network = TypeVar("Network")  # opened
Rows = Callable[[int, int, Tensor], Tensor]  # layer, step of the first row, weights (B, H, T, S) -> those to use


class OpenedMemory(NamedTuple):
    """The encoder's output. hidden (B, S, D), mask (B, S) bool, True = a real token."""

    state: tuple
    maps: tuple
    hidden: Tensor
    mask: Tensor


class LayerInputs(NamedTuple):
    """The inputs of a layer's cross-attention: query (B, H, T, d), key (B, H, S, d), value (B, H, S, v), and the factor
    of the products of query and key."""

    query: Tensor
    key: Tensor
    value: Tensor
    scaling: float


class Scaled(Attention):
    """q . k times a number: 1 / sqrt(d) in most families, 1 in T5."""

    name = "scaled dot"

    def __init__(self, scaling: float):
        super().__init__()
        self.scaling = scaling

    def score(self, query, prepared):
        return dot_scores(query * self.scaling, prepared)

    def terms(self, query, prepared):
        return products(query * self.scaling, prepared)


class Openable(Generic[Network]):
    """A model whose network can be opened, if its family computes attention in a way that is known. possible : what can
    be done even if it cannot."""

    name: str
    mechanism: str
    possible = "its maps can be shown"

    @functools.cached_property
    def why_closed(self) -> str:
        """Why its steps cannot be opened or changed, in a sentence; "" when they can."""
        try:
            self._check(self._open())
        except LIBRARY_ERRORS:
            reason = "its network is built in a way that attnviz does not know"
        except ValueError as error:
            reason = str(error)
        else:
            return ""
        return (
            f"{self.name} is of the family {self.mechanism}: {reason}, so its steps cannot be opened or changed here; "
            f"{self.possible}"
        )

    def opened_network(self) -> Network:
        """Its network with access to attention, for changing it. ValueError, with the reason, if this is not
        possible."""
        if self.why_closed:
            raise ValueError(self.why_closed)
        return self._open()

    @abstractmethod
    def _open(self) -> Network:
        """ValueError, with the reason, for a network that cannot be opened."""

    def _check(self, network: Network) -> None:
        """ValueError, with the reason, if the opened network does not compute what the model does."""


def family_attention(module: nn.Module) -> Callable:
    """The library's attention function of the module's family. ValueError if it has a way of its own."""
    own = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if own is None:
        raise ValueError(f"{type(module).__name__} computes attention in a way of its own")
    return own


class Copied:
    """A copy of a `network` of the library that shares all its weights, and computes attention by `attend`."""

    def __init__(self, network: Any):
        _register()
        self.network = sharing(network)
        for module in self.network.modules():
            module.attnviz_opened = self  # where `_attend` finds it
            if hasattr(module, "config"):
                module.config._attn_implementation = _NAME

    def parameters(self) -> Iterator[nn.Parameter]:
        """Its weights."""
        return self.network.parameters()


def inputs_of(query: Tensor, key: Tensor, value: Tensor, options: dict) -> LayerInputs:
    """The inputs of attention with the library's arguments; key and value (B, G, S, …) of heads in G groups."""
    key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], 1) for part in (key, value))
    scaling = options.get("scaling")
    return LayerInputs(query, key, value, query.shape[-1] ** -0.5 if scaling is None else scaling)


class Opened(Steps, Copied):
    """A network as `networks.Network` describes it: a copy of the library's `network` that shares all weights.

    rows : changes the weights of cross-attention; None for none. on_step : called once per target position; an
    exception that it raises ends the pass. Both also apply to passes of `network`. inputs : layer -> the last inputs of
    its cross-attention. bos : id of the token that the decoder reads first. other : id of a token that is not padding.
    cross_layers, cross_heads : layers of cross-attention, and heads of a layer.
    """

    def __init__(self, network: Any, bos: int, layers: int, heads: int):
        """ValueError, with the reason, if cross-attention is computed in an unsupported way."""
        super().__init__(network)
        self.bos, self.cross_layers, self.cross_heads = bos, layers, heads
        self.rows: Rows | None = None
        self.on_step: Callable[[], None] = lambda: None
        self.inputs: dict[int, LayerInputs] = {}
        self._pad = network.config.pad_token_id
        self.other = int(self._pad == 0)
        self._encoded: Any = None  # class of what the encoder returns
        self._first = 0  # step of the first row of this pass
        self._numbers: dict[int, int] = {}  # id of a module of cross-attention -> its layer
        self._crossing: list[nn.Module] = []  # these modules, in the order of their calls
        self._vectors: Tensor | None = None  # in place of the embedding's output
        self._taken: list[Tensor] | None = None  # the readouts of a pass, which is spared the output matrix
        self._chosen = torch.zeros(1, dtype=torch.bool)  # rows of a pass that are changed (B, 1, T, 1)
        self._given: Tensor | None = None  # readouts in place of those of a pass
        self.embedding.register_forward_hook(self._after_embedding)
        self._head().register_forward_pre_hook(self._before_head)
        self._number()

    def _head(self) -> nn.Module:
        """The output matrix."""
        head = self.network.get_output_embeddings()
        if head is None:
            raise ValueError("the library does not say where its output matrix is")
        return head

    def _few(self) -> tuple[Tensor, Tensor]:
        """Some ids of source and target without padding, which some families hide or skip in positions."""
        ids = [self.other if number == self._pad else number for number in range(max(_TRIED))]
        source, target = (torch.tensor([ids[:count]]) for count in _TRIED)
        return source, target

    @torch.inference_mode()
    def _number(self) -> None:
        """Find the modules of cross-attention by a short pass: their number of keys is that of the source tokens."""
        source, target = self._few()
        self.force(self.encode(source), target)
        if len(self._crossing) != self.cross_layers:
            others = self.cross_layers - len(self._crossing)
            raise ValueError(
                f"{others} of its {self.cross_layers} layers compute cross-attention in code of their own, which takes "
                "no other weights"
            )
        self._numbers = {id(module): number for number, module in enumerate(self._crossing)}

    @torch.inference_mode()
    def check(self, logits: Callable[[Tensor, Tensor], Tensor]) -> None:
        """ValueError, with the reason, unless rows of the embedding, weights times values, products of queries and
        keys, and steps one by one reproduce the model. logits : the model's logits for source and target."""
        source, target = self._few()
        wanted = logits(source, target)
        self.rows = lambda _layer, _first, weights: weights.clone()
        memory = self.encode_vectors(self.embedding(source))
        readouts, cross, _ = self.force(memory, target)
        products = [(read.query @ read.key.mT * read.scaling).softmax(-1) for _, read in sorted(self.inputs.items())]
        steps, state = [], memory.state
        for token in target.unbind(1):
            step = self.step(memory, state, token)
            steps.append(step.logits)
            state = step.state
        self.rows = None
        compared = [
            ("its output does not follow from weights times values", self.logits(readouts), wanted),
            ("its steps one by one are not those of one pass", torch.stack(steps, dim=1), wanted),
            *(
                ("its weights are not the softmax of products of queries and keys", *pair)
                for pair in zip(products, cross)
            ),
        ]
        for reason, a, b in compared:
            if a.shape != b.shape or not torch.allclose(a, b, CLOSE, CLOSE):
                raise ValueError(reason)

    def choose_rows(self, is_such: Callable[[int], bool]) -> None:
        """From now on `rows` applies only at steps where the unchanged network would choose such a piece. So each pass,
        which must read all tokens so far, is first run without `rows`."""
        rows, on_step = self.rows, self.on_step

        def before(_network: nn.Module, _inputs: tuple, given: dict) -> None:
            if self.rows is None or rows is None:
                return
            self.rows, self.on_step = None, lambda: None
            try:
                best = self.network(**given).logits.argmax(-1)
            finally:
                self.rows, self.on_step = changed, on_step
            chosen = [[is_such(int(piece)) for piece in text] for text in best]
            self._chosen = torch.tensor(chosen)[:, None, :, None]  # (B, 1, T, 1)

        def changed(layer: int, first: int, weights: Tensor) -> Tensor:
            return torch.where(self._chosen, rows(layer, first, weights), weights) if rows else weights

        self.rows = changed
        self.network.register_forward_pre_hook(before, with_kwargs=True)

    @property
    def embedding(self) -> nn.Embedding:
        """From ids of the source to the rows that `encode_vectors` takes."""
        encoder = self.network.get_encoder()
        return (encoder if hasattr(encoder, "get_input_embeddings") else self.network).get_input_embeddings()

    def encode(self, source: Tensor, mask: Tensor | None = None) -> OpenedMemory:
        """As of `Network`."""
        seen = torch.ones_like(source, dtype=torch.bool) if mask is None else mask
        output = self.network.get_encoder()(input_ids=source, attention_mask=seen.long())
        self._encoded = type(output)
        return OpenedMemory((), (), output[0], seen)

    def encode_vectors(self, vectors: Tensor, mask: Tensor | None = None) -> OpenedMemory:
        """As of `Network`. Some families count places by ids, so the encoder reads ids, for which its embedding gives
        `vectors`."""
        seen = torch.ones(vectors.shape[:2], dtype=torch.bool) if mask is None else mask
        self._vectors = vectors
        try:
            return self.encode(torch.where(seen, self.other, self.other if self._pad is None else self._pad), seen)
        finally:
            self._vectors = None

    def step_readout(
        self, memory: OpenedMemory, state: tuple, token: Tensor, reweigh: Sequence[Reweigh] = ()
    ) -> ReadoutStep:
        """As of `Network`. state : keys and values of each layer, of the positions so far and of the source."""
        from transformers import DynamicCache, EncoderDecoderCache

        parts = [DynamicCache(list(part) or None) for part in state or ((), ())]
        cache = EncoderDecoderCache(*parts)
        before, changes = self.rows, dict(enumerate(reweigh))
        if any(changes.values()):
            self.rows = lambda layer, _first, weights: _changed(changes[layer], weights)
        try:
            options = {cache_name(self.network): cache, "use_cache": True}
            readouts, cross, own = self._decode(memory, token[:, None], **options)
        finally:
            self.rows = before
        state = tuple(tuple((layer.keys, layer.values) for layer in part.layers) for part in parts)
        cross, own = (tuple(weights[:, :, 0] for weights in layers) for layers in (cross, own))
        return ReadoutStep(readouts[:, 0], state, cross, own)

    def force(self, memory: OpenedMemory, target: Tensor) -> tuple[Tensor, tuple, tuple]:
        """As of `Network`."""
        return self._decode(memory, target, use_cache=False)

    def readouts(self, memory: OpenedMemory, target: Tensor) -> Tensor:
        """As of `Network`."""
        return self.force(memory, target)[0]

    def logits(self, readout: Tensor, /) -> Tensor:
        """As of `Network`. What follows the output matrix differs by family. So the family's own code computes it, in a
        pass of one token in which `readout` replaces the input of that matrix."""
        source = torch.zeros(1, 1, dtype=torch.long)
        rows, on_step = self.rows, self.on_step
        self.rows, self.on_step, self._given = None, lambda: None, readout.reshape(1, -1, readout.shape[-1])
        try:
            logits = self._run(self.encode(source), torch.tensor([[self.bos]]), use_cache=False).logits
        finally:
            self.rows, self.on_step, self._given = rows, on_step, None
        return logits.reshape(*readout.shape[:-1], -1)

    def __call__(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """As of `Network`."""
        readouts, cross, _ = self.force(self.encode(source, mask), target)
        return self.logits(readouts), cross[-1]

    def _decode(self, memory: OpenedMemory, target: Tensor, **options) -> tuple[Tensor, tuple, tuple]:
        """Readouts (B, T, D), and weights of each layer of cross-attention and of the decoder."""
        self._taken = []
        try:
            output = self._run(memory, target, output_attentions=True, **options)
            return self._taken[0], tuple(output.cross_attentions), tuple(output.decoder_attentions)
        finally:
            self._taken = None

    def _run(self, memory: OpenedMemory, target: Tensor, **options) -> Any:
        encoded = self._encoded(last_hidden_state=memory.hidden)
        mask = memory.mask.long()
        return self.network(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=target, **options)

    def _after_embedding(self, _module: nn.Module, _inputs: tuple, output: Tensor) -> Tensor:
        return output if self._vectors is None else self._vectors

    def _before_head(self, _module: nn.Module, inputs: tuple) -> tuple | None:
        if self._given is not None:
            return (self._given,)
        if self._taken is None:
            return None
        self._taken.append(inputs[0])
        return (inputs[0][:, :1],)

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options
    ) -> tuple[Tensor, Tensor]:
        """Attention with the library's signature -> context (B, T, H, v), weights (B, H, T, S)."""
        context, weights = family_attention(module)(module, query, key, value, mask, **options)
        if not self._numbers and (query.shape[2], key.shape[2]) == _TRIED[::-1]:
            self._crossing.append(module)
        layer = self._numbers.get(id(module))
        if layer is None:
            self._first = key.shape[2] - query.shape[2]  # of the decoder's own attention, which comes first
            return context, weights
        for _ in range(query.shape[2] if layer == 0 else 0):
            self.on_step()
        self.inputs[layer] = inputs_of(query, key, value, options)
        if self.rows is None:
            return context, weights
        weights = self.rows(layer, self._first, weights)
        return (weights @ self.inputs[layer].value).transpose(1, 2).contiguous(), weights


def _changed(change: Reweigh, weights: Tensor) -> Tensor:
    return weights if change is None else change(weights, None)


def cache_name(network: Any) -> str:
    """The library's name for its cache of keys and values."""
    return "cache" if "cache" in inspect.signature(network.forward).parameters else "past_key_values"


def _register() -> None:
    """Register `_attend` with the library."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(_NAME, _attend)
    AttentionMaskInterface.register(_NAME, eager_mask)


def _attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options
) -> tuple[Tensor, Tensor]:
    """The attention function of an opened network, with the library's signature."""
    return module.attnviz_opened.attend(module, query, key, value, attention_mask, **options)
