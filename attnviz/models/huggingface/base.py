"""What all models of the transformers library have in common: network and tokenizer, text in, Trace out.

Two subclasses serve all families: `SingleStackModel` (such as BERT and GPT) and `EncoderDecoderModel`. The maps are the
weights that the model computed its output with (eager attention).
"""

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.data.tokenizer import Tokens
from attnviz.data.tokenizer_rules import TokenizerError, contained
from attnviz.models import batches
from attnviz.models.huggingface import tokenization
from attnviz.models.huggingface.errors import LIBRARY_ERRORS, one_line
from attnviz.models.measured import TraceStatistics
from attnviz.models.model import TextError, check_text
from attnviz.models.translator import check_beam
from attnviz.networks import projections
from attnviz.networks.projections import Projection
from attnviz.trace import AttentionMap, Trace

MOST_TOKENS = (
    512  # tokens of a text, even if the model could read more: memory grows with the square, in every layer and head
)

_TOGETHER = 2**25  # weights of heads that are handed on at once: 134 MB
TakeHeads = Callable[[int, int, Tensor], None]  # layer, first head, weights (heads, T, T), which are reused after it
_WINDOWS = (
    "sliding_window",
    "window_size",
    "local_attention",
    "attention_window",
)  # in configs: their layers hide keys
_KEY_HEADS = "num_key_value_heads", "num_kv_heads"  # in configs: heads with keys of their own


@dataclass(frozen=True, eq=False)
class HuggingFaceModel(ABC):
    """A network and its tokenizer, ready to trace. It implements the protocol `model.Model`.

    name : `hf:` and the folder or the name on the hub. mechanism : its family, as the model says (`bert`, `t5`).
    fields : kind of map -> field of the model's output with its layers. limit : tokens of the longest text.
    head_counts : kind -> heads of each layer. context : tokens that the model reads, which may be more than `limit`.
    """

    name: str
    mechanism: str
    model: Any  # a network of the transformers library
    tokenizer: Any
    fields: dict[str, str]
    limit: int
    head_counts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    context: int = 0

    labels = ()

    def __repr__(self) -> str:
        """One line: which model, and how large."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return f"{type(self).__name__}({self.name}: {self.mechanism}, {parameters:,} parameters)"

    @property
    def why_no_log_prob(self) -> str:
        """Why `log_prob` cannot be measured, in a sentence; "" when it can."""
        return ""

    @abstractmethod
    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """The output for a text, or `target`, with all attention weights. Raises TextError, ValueError."""

    @abstractmethod
    def log_prob(self, text: str, target: str | None = None) -> float:
        """Natural log of the probability of `target`, or of the text. Raises what `trace` raises."""

    @property
    def title(self) -> str:
        """Its name for readers."""
        return self.name

    @property
    def head_kinds(self) -> tuple[str, ...]:
        """Kinds of attention that have heads to show."""
        return tuple(self.fields)

    def read(self, text: str, target: bool = False, most: int | None = None) -> Tokens:
        """The tokens of a text. most : of them; `limit` unless given. Raises TextError for an empty or too long one."""
        most = self.limit if most is None else most
        what = "target" if target else "text"
        check_text(text, what)
        try:
            with contained():
                tokens = tokenization.encode(self.tokenizer, text, target)
        except TokenizerError as error:
            raise TextError(f"{self.name} cannot read the {what}: {error}") from None
        except LIBRARY_ERRORS as error:
            raise TextError(f"{self.name} cannot read the {what}: its tokenizer fails ({one_line(error)})") from None
        except ValueError as error:
            raise TextError(
                f"{error}; {self.name} needs a fast tokenizer, with a tokenizer.json, for this {what}"
            ) from None
        pieces = self.model.get_input_embeddings().weight.shape[0]
        if unknown := next((number for number in tokens.ids if not 0 <= number < pieces), None):
            raise TextError(
                f"{self.name} cannot read the {what}: its tokenizer gives piece number {unknown:,}, but the model "
                f"has {pieces:,}; they do not belong together"
            )
        if all(token.special for token in tokens.tokens):
            raise TextError(f"the {what} has no tokens but special ones; type a sentence")
        if len(tokens.ids) > most:
            raise TextError(
                f"the {what} is too long: {len(tokens.ids)} tokens with those that {self.name} adds, and its limit "
                f"here is {most}; shorten it or split it into sentences"
            )
        return tokens

    def projections(self) -> list[Projection]:
        """Where its heads can be switched off. ValueError, with the reason, when this is not known for its family."""
        try:
            return projections.named(self.model, self.head_counts)
        except ValueError as error:
            raise ValueError(f"{self.name} ({self.mechanism}): {error}") from None

    @torch.inference_mode()
    def run(self, ids: tuple[int, ...], **more: Tensor | bool) -> Any:
        """The output of the model, its attention included, for one text."""
        source = torch.tensor([ids])
        return self.body(input_ids=source, attention_mask=torch.ones_like(source), output_attentions=True, **more)

    def traces(
        self,
        texts: Iterable[str],
        targets: Iterable[str | None] | None = None,
        *,
        batch_size: int = batches.BATCH,
        beam: int = 1,
        keep: Collection[str] = ("maps",),
    ) -> Iterator[Trace | TraceStatistics | TextError]:
        """`trace` of each text, in the order given, as `Translator.traces`; one at a time, whatever the batch_size."""
        batches.check_size(batch_size)
        self.check_beam(beam)
        return batches.one_by_one(partial(self.trace, beam=beam), texts, targets, batches.parts_kept(keep))

    def check_beam(self, beam: int) -> None:
        """ValueError for a beam that this model does not take."""
        check_beam(beam)

    @property
    def body(self) -> nn.Module:
        """The part of the model that attends."""
        return self.model

    def maps(self, output: Any) -> tuple[AttentionMap, ...]:
        """Every layer (1, H, Q, K) of every kind in an output of the model."""
        layers = [
            (kind, layer, weights[0].numpy())
            for kind, name in self.fields.items()
            for layer, weights in enumerate(output[name])
        ]
        windows = any(getattr(self.model.config, name, None) for name in _WINDOWS)
        return tuple(
            AttentionMap(
                kind,
                layer,
                weights,
                mask=_window(weights) if windows else None,
                shared=_shared(self.model.config, len(weights)),
            )
            for kind, layer, weights in layers
        )


class _OneHead:
    """A module of attention as the function of its family sees it when it is given one query head and its keys."""

    num_key_value_groups = 1

    def __init__(self, module: nn.Module):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _HeadByHead:
    """A function of attention as the library asks for one: it computes each head alone, by the function of its family,
    and hands on the weights of some heads at a time."""

    def __init__(self, take: TakeHeads):
        self.take, self.layers = take, 0

    def __call__(self, module, query, key, value, attention_mask, **options) -> tuple[Tensor, None]:
        """query (1, H, T, d), key and value (1, G, T, d), mask (1, 1 or H, T, T) -> contexts (1, T, H, d)."""
        eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        if eager is None:
            raise ValueError(f"{type(module).__name__} computes attention in a way of its own")
        heads, rows, columns = query.shape[1], query.shape[2], key.shape[2]
        together = max(1, _TOGETHER // (rows * columns))
        contexts, kept = [], query.new_empty(min(together, heads), rows, columns)
        for head in range(heads):
            own, place = slice(head * key.shape[1] // heads, head * key.shape[1] // heads + 1), head % together
            alone = attention_mask is not None and attention_mask.shape[1] > 1
            mask = attention_mask[:, head : head + 1] if alone else attention_mask
            parts = query[:, head : head + 1], key[:, own], value[:, own], mask
            context, weights = eager(_OneHead(module), *parts, **options)
            contexts.append(context)
            kept[place] = weights[0, 0]
            if place + 1 == together or head + 1 == heads:
                self.take(self.layers, head - place, kept[: place + 1])
        self.layers += 1
        return torch.cat(contexts, dim=2), None


def by_heads(body: nn.Module, ids: Tensor, mask: Tensor, take: TakeHeads) -> int:
    """Run a copy of the body, which shares its weights, on ids and mask (1, T) -> how many layers handed on weights.

    The library asks a function for attention by the name in the config, so the copy's config names another one.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    shared = {id(tensor): tensor for tensor in [*body.parameters(), *body.buffers()]}
    copied: Any = copy.deepcopy(body, shared)
    attend = _HeadByHead(take)
    name = f"attnviz {id(attend)}"
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, eager_mask)
    try:
        copied.config._attn_implementation = name
        copied(input_ids=ids, attention_mask=mask, use_cache=False)
    finally:
        AttentionInterface._global_mapping.pop(name, None)
        AttentionMaskInterface._global_mapping.pop(name, None)
    return attend.layers


def _shared(config: Any, heads: int) -> int:
    """How many of a layer's query heads share keys and values (Ainslie et al. 2023; all of them: Shazeer 2019)."""
    text = config.get_text_config()
    if getattr(text, "multi_query", False) and not getattr(text, "new_decoder_architecture", False):  # Falcon has both
        return heads
    own = next((count for name in _KEY_HEADS if isinstance(count := getattr(text, name, None), int)), heads)
    return heads // own if own and heads % own == 0 else 1


def _window(weights: np.ndarray) -> np.ndarray | None:
    """weights (H, Q, K) -> the mask (Q, K) of a sliding window; None where every key may be seen.

    A model sets hidden scores to -inf, so their weights are exactly 0, in all heads and at all places of one distance.
    A key on which softmax underflows is 0 here and there, not at a whole distance.
    """
    queries, keys = weights.shape[1:]
    away = np.arange(keys) - np.arange(queries)[:, None] + queries - 1  # at least 0
    reached = np.bincount(away.ravel(), weights.any(0).ravel()) > 0
    past, future = reached[:queries], reached[queries:]
    whole = past.all() and future.all() == future.any()  # a layer without a window; a causal one sees no later token
    return None if whole else reached[away]
