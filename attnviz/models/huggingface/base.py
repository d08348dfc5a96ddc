"""The base of all models of the transformers library: network and tokenizer, text in, Trace out.

Two subclasses serve all families: `SingleStackModel` (such as BERT and GPT) and `EncoderDecoderModel`. The maps are the
weights that the model computed its output with (eager attention).
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.data.tokenizer import Tokens
from attnviz.data.tokenizer_rules import CHARACTERS, TokenizerError, contained
from attnviz.models import batches
from attnviz.models.huggingface import LIBRARY_ERRORS, one_line, tokenization, why_no_weights
from attnviz.models.huggingface.opened import family_attention
from attnviz.models.model import TextError, check_text
from attnviz.models.translator import check_beam
from attnviz.networks import projections, sharing
from attnviz.networks.projections import Projection
from attnviz.trace import AttentionMap, Trace
from attnviz.trace.checks import TOLERANCE
from attnviz.trace.layers import with_rest

# tokens of a text, even if the model could read more: memory grows with the square, in every layer and head
MOST_TOKENS = 512
_IN_TOKEN, _IN_TEXT = 8, 200_000  # characters that a token of a long text may have, and of the text
_TOGETHER = 2**25  # weights of heads that are handed on at once: 134 MB
TakeHeads = Callable[[int, int, Tensor], None]  # layer, first head, weights (heads, T, T), which are reused after it
_WINDOWS = re.compile("window|local_attention|attention_chunk|index_topk")  # in configs: their layers hide keys
_GLOBAL = "global_attention_mask"  # of Longformer and LED: which tokens see all, and are seen by all
_SCORES = ("squeezebert", "prophetnet")  # families for which the library returns masked scores before the softmax
_STREAMS = ("prophetnet",)  # families whose decoder also reads `ngram` streams of places to fill (Qi et al. 2020)
_KEY_HEADS = "num_key_value_heads", "num_kv_heads"  # in configs: heads with keys of their own


class Place(NamedTuple):
    """Where the weights of a layer are in an output. number : of the layer, from 0. entry : of the output's field."""

    number: int
    entry: int


@dataclass(frozen=True, eq=False)
class HuggingFaceModel(batches.OneByOne, ABC):
    """A network and its tokenizer, ready to trace. It implements the protocol `model.Model`.

    name : `hf:` and the folder or the name on the hub. mechanism : its family, from its config (`bert`, `t5`).
    fields : kind of map -> field of the model's output with its layers. limit : tokens of the longest text.
    context : tokens that the model reads, which may be more than `limit`.
    head_counts : kind -> heads of each layer that attends.
    places : kind -> where these layers are in the output; only for kinds in which some layers do not attend. notes :
    sentences on what a trace does not show, such as layers of another kind. sinks : does its softmax include a learnt
    score that belongs to no key? Rows then sum to less than 1. start_id, first_id : id of the target language, if the
    decoder starts with it or must produce it first; else None. language : of what it produces, as `function_words`
    names it; "" if unknown. whole : the decoder reads all that it has produced again at each step, without a cache.
    used : the paths of the modules that read a text; () for all. A model that also reads images has others.
    prefix : what a model that translates reads before every text, and no trace has in its text.
    """

    name: str
    mechanism: str
    model: Any  # a network of the transformers library
    tokenizer: Any
    fields: dict[str, str]
    limit: int
    head_counts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    context: int = 0
    places: dict[str, tuple[Place, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    used: frozenset[str] = frozenset()
    sinks: bool = False
    start_id: int | None = None
    first_id: int | None = None
    language: str = ""
    whole: bool = False
    prefix: str = ""

    labels = ()

    def __repr__(self) -> str:
        """One line: which model, and how large."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return f"{type(self).__name__}({self.name}: {self.mechanism}, {parameters:,} parameters)"

    @property
    def why_no_log_prob(self) -> str:
        """Why `log_prob` cannot be measured, in a sentence; "" when it can."""
        return ""

    @property
    def why_closed(self) -> str:
        """Why its steps cannot be opened or changed, in a sentence; "" if they can."""
        return (
            f"{self.name} is of the family {self.mechanism}, which has no attention from a text that it produces to "
            "its source; steps of its self-attention cannot be opened or changed here, but its maps can be shown, and "
            "heads switched off (attnviz.ablation)"
        )

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

    def output(self, number: int) -> str:
        """The piece of an id."""
        return tokenization.name(self.tokenizer, number)

    def read(self, text: str, target: bool = False, most: int | None = None) -> Tokens:
        """The tokens of a text. most : of them; `limit` unless given. Raises TextError for an empty or too long one."""
        most = self.limit if most is None else most
        what = "target" if target else "text"
        check_text(text, what, max(CHARACTERS, min(_IN_TOKEN * most, _IN_TEXT)))
        if self.reads_pairs and not all(part.strip() for part in text.split(tokenization.PAIR, 1)):
            raise TextError(
                f"one of the two texts around {tokenization.PAIR} is empty; type both, or one text without it"
            )
        try:
            with contained():
                tokens = tokenization.encode(self.tokenizer, text, target, self.reads_pairs)
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

    @property
    def reads_pairs(self) -> bool:
        """Does it read two texts at once, as BERT does?"""
        return False

    def projections(self) -> list[Projection]:
        """Where its heads can be switched off. ValueError, with the reason, when this is not known for its family."""
        try:
            numbers = {kind: [place.number for place in places] for kind, places in self.places.items()}
            return projections.named(self.model, self.head_counts, numbers, self.used)
        except ValueError as error:
            raise ValueError(f"{self.name} ({self.mechanism}): {error}") from None

    @torch.inference_mode()
    def run(self, ids: tuple[int, ...], segments: tuple[int, ...] = (), **more: Tensor | bool) -> Any:
        """The output of the model, its attention included, for one text. segments : of a pair of texts."""
        return self.body(**self.inputs(torch.tensor([ids]), segments), output_attentions=True, **more)

    def inputs(self, ids: Tensor, segments: tuple[int, ...] = ()) -> dict[str, Tensor]:
        """The inputs of the model for texts of equal length, ids (B, n). All tokens are visible. In a family with
        global attention, the first token has it, as its authors advise (Beltagy et al. 2020)."""
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if segments and getattr(self.model.config, "type_vocab_size", 0) > max(segments):
            given["token_type_ids"] = torch.tensor([segments]).expand_as(ids)
        if self.is_global:
            given[_GLOBAL] = torch.zeros_like(ids)
            given[_GLOBAL][:, 0] = 1
        return given

    def check_beam(self, beam: int) -> None:
        """ValueError for a beam that this model does not take."""
        check_beam(beam)

    @property
    def body(self) -> nn.Module:
        """The part of the model that attends."""
        return self.model

    @property
    def family_notes(self) -> tuple[str, ...]:
        """A sentence on global attention, or on several streams, if the family has them."""
        if self.mechanism in _STREAMS:
            return (
                "The decoder reads several streams. Its self-attention is that of the tokens, its cross-attention that "
                "of the stream that predicts the next token.",
            )
        return ("The first token has global attention: it sees all tokens, and all see it.",) if self.is_global else ()

    @property
    def is_global(self) -> bool:
        """Do some of its tokens see all, and the others a window?"""
        return _GLOBAL in inspect.signature(self.model.forward).parameters

    def attending(self, kind: str, output: Any) -> list[tuple[int, Tensor]]:
        """The layers of a kind that attend: the number of each, from 0, and its weights (1, H, Q, K) in an output of
        the model."""
        entries = output[self.fields[kind]]
        places = self.places.get(kind) or [Place(number, number) for number in range(len(entries))]
        return [(place.number, self._weights(kind, entries[place.entry])) for place in places]

    def _weights(self, kind: str, layer: Tensor) -> Tensor:
        """What the library returns of a layer, after the softmax; of several streams, that of the next token."""
        if kind == "cross" and self.mechanism in _STREAMS:
            layer = layer.chunk(1 + self.model.config.ngram, dim=2)[1]
        scores = self.mechanism in _SCORES and ((layer.sum(-1) - 1).abs() > TOLERANCE).any()
        return layer.softmax(-1) if scores else layer

    def maps(self, output: Any) -> tuple[AttentionMap, ...]:
        """Every layer of every kind in an output of the model."""
        maps = []
        for kind, name in self.fields.items():
            around = output.get(name.replace("attentions", "global_attentions")) if kind == "encoder" else None
            for place, (number, weights) in enumerate(self.attending(kind, output)):
                if weights.ndim != 4:  # as of a text that is longer than a block
                    raise TextError(f"{self.name} shows no text as long as this: {why_no_weights(weights)}")
                rows = None if around is None else around[place][0].float().numpy()
                maps.append(self.map_of(kind, number, weights[0].float().numpy(), rows))
        return tuple(maps)

    def map_of(self, kind: str, number: int, weights: np.ndarray, rows: np.ndarray | None = None) -> AttentionMap:
        """weights (H, Q, K), or a band of them beside those of global tokens, whose own are `rows` (H, K, G)."""
        config = self.model.config.get_text_config()
        if kind == "encoder" and getattr(config, "attention_window", None):
            weights, mask = _out_of_band(weights, rows)
        else:
            mask = _hidden_keys(config, weights)
        sink = self.sinks and weights.ndim == 3 and weights.sum(-1).min() < 1 - TOLERANCE
        if sink:
            weights = with_rest(weights)
        return AttentionMap(kind, number, weights, mask=mask, sink=bool(sink), shared=_shared(config, len(weights)))


class _OneHead:
    """Stands in for an attention module when the family's function computes one query head with its keys."""

    num_key_value_groups = 1

    def __init__(self, module: nn.Module):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _HeadByHead:
    """An attention function for the library. It computes every head alone, with the family's function, and passes on
    the weights of a few heads at a time."""

    def __init__(self, take: TakeHeads):
        self.take, self.layers = take, 0

    def __call__(self, module, query, key, value, attention_mask, **options) -> tuple[Tensor, None]:
        """query (1, H, T, d), key and value (1, G, T, d), mask (1, 1 or H, T, T) -> contexts (1, T, H, d)."""
        eager = family_attention(module)
        heads, rows, columns = query.shape[1], query.shape[2], key.shape[2]
        together = max(1, _TOGETHER // (rows * columns))
        contexts, collected = [], query.new_empty(min(together, heads), rows, columns)
        for head in range(heads):
            own, place = slice(head * key.shape[1] // heads, head * key.shape[1] // heads + 1), head % together
            alone = attention_mask is not None and attention_mask.shape[1] > 1
            mask = attention_mask[:, head : head + 1] if alone else attention_mask
            parts = query[:, head : head + 1], key[:, own], value[:, own], mask
            context, weights = eager(_OneHead(module), *parts, **options)
            contexts.append(context)
            collected[place] = weights[0, 0]
            if place + 1 == together or head + 1 == heads:
                self.take(self.layers, head - place, collected[: place + 1])
        self.layers += 1
        return torch.cat(contexts, dim=2), None


def by_heads(body: nn.Module, ids: Tensor, mask: Tensor, take: TakeHeads) -> int:
    """Run a copy of the body, which shares its weights, on ids and mask (1, T) -> the number of layers that passed on
    weights.

    The library selects the attention function by its name in the config, so the copy's config has another name.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    copied, attend = sharing(body), _HeadByHead(take)
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


def _hidden_keys(config: Any, weights: np.ndarray) -> np.ndarray | None:
    """weights (H, Q, K) -> the mask (Q, K) of a layer that hides keys, as its config says; None if it hides none.

    A model sets hidden scores to -inf, so their weights are exactly 0, in all heads. A sliding window hides all keys at
    the same distance; chunks, and keys chosen per query, do not.
    """
    hides = [name for name, value in vars(config).items() if value and _WINDOWS.search(name)]
    if not hides or weights.ndim != 3:
        return None
    if any(name.startswith(("attention_chunk", "index_topk")) for name in hides):
        seen = np.asarray(weights.any(0))
        every = np.tril(np.ones_like(seen)) if not np.triu(seen, 1).any() else np.ones_like(seen)
        return None if np.array_equal(seen, every) else seen
    return _window(weights)


def _out_of_band(weights: np.ndarray, rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Weights of queries on a band of keys -> weights (H, Q, Q), and the mask (Q, Q) of what a query sees.

    weights (H, Q, G + 2w + 1): on the G global keys, which are the first tokens, then on the keys from w before a
    query to w after it. rows (H, K, G): of the global queries on all keys; None without any. Beltagy et al. 2020.
    """
    _, queries, width = weights.shape
    count = 0 if rows is None else rows.shape[-1]
    reach = (width - count - 1) // 2
    away = np.arange(queries) - np.arange(queries)[:, None]  # from query to key
    seen = np.abs(away) <= reach
    columns = np.clip(away + reach, 0, 2 * reach)[None]
    placed = np.where(seen, np.take_along_axis(weights[..., count:], columns, axis=-1), 0)
    if rows is not None:
        placed[..., :count] += weights[..., :count]
        placed[:, :count] = rows[:, :queries].transpose(0, 2, 1)
        seen[:, :count] = seen[:count] = True
    return placed, seen


def _window(weights: np.ndarray) -> np.ndarray | None:
    """weights (H, Q, K) -> the mask (Q, K) of a sliding window; None if every key is visible.

    A model sets hidden scores to -inf, so their weights are exactly 0, in all heads and at all places of one distance.
    Weights that underflow to 0 do not cover a whole distance.
    """
    queries, keys = weights.shape[1:]
    away = np.arange(keys) - np.arange(queries)[:, None] + queries - 1  # at least 0
    reached = np.bincount(away.ravel(), weights.any(0).ravel()) > 0
    past, future = reached[:queries], reached[queries:]
    whole = past.all() and (future.all() or not future.any())  # no window; a causal layer sees no later token
    return None if whole else reached[away]
