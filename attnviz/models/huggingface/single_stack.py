"""A model of the transformers library with one stack: an encoder such as BERT, or a decoder such as GPT. It reads a
text."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.attention import Reweigh
from attnviz.data.tokenizer import Tokens
from attnviz.models import probabilities
from attnviz.models.huggingface import tokenization
from attnviz.models.huggingface.base import HuggingFaceModel, TakeHeads, by_heads
from attnviz.models.huggingface.opened import CLOSE, Copied, LayerInputs, cache_name, family_attention, inputs_of
from attnviz.models.measured import Reduced, Reducer
from attnviz.models.model import TextError
from attnviz.networks.decoder_only import Reading
from attnviz.trace import Alternative, AttentionMap, Trace

_TRIED = 6  # tokens that a network is tried with
MASKED = 64  # tokens of a text that are masked in turn, at most: the model reads the whole text for each
PERMUTES = ("xlnet",)  # families that predict a token from those before it in a random order (Yang et al. 2019)
BATCH = 8  # of these texts read at once


class _Found(Exception):
    """Ends a pass early: its result is there."""


@dataclass(frozen=True)
class Prediction:
    """A single-stack model's prediction of one token of the text from the others. position : of the token, from 0.
    log_prob : natural, of the token itself. alternatives : the most probable ones."""

    position: int
    log_prob: float
    alternatives: tuple[Alternative, ...]


class SingleStackModel(HuggingFaceModel):
    """One stack of layers, which reads a text. Its maps are `encoder` when every token sees all tokens, `decoder` when
    causal."""

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Read a text: a trace with all attention weights and without a target.

        Raises TextError for an empty or too long text and for a target, ValueError for a beam: this model produces no
        text.
        """
        self.check_beam(beam)
        self._refuse_target(target)
        source = self.read(text)
        return self._read_trace(text, source, self.maps(self.run(source.ids, source.segments)))

    def _read_trace(self, text: str, source: Tokens, maps: tuple[AttentionMap, ...]) -> Trace:
        return Trace(
            model=self.name,
            mechanism=self.mechanism,
            text=text,
            translation="",
            forced=False,
            source=source.tokens,
            target=(),
            log_probs=(),
            alternatives=(),
            maps=maps,
            notes=(*self.notes, *self._pair_notes(text, source)),
        )

    @torch.inference_mode()
    def reduced(self, text: str, on_heads: Callable[[], None] = lambda: None) -> Reduced:
        """Read a text of up to `context` tokens, and keep only the data of the overview. Weights are reduced while they
        are computed, a few heads at a time, so memory grows with the square of the tokens but not with layers and
        heads.

        The numbers are those of `heads.table` of the whole trace. `opened` gives one head in full. on_heads : called
        after a few heads; an exception that it raises stops the reading. Raises TextError; ValueError for a family with
        its own way of computing attention.
        """
        source = self.read(text, most=self.context)
        reducer = Reducer(self._read_trace(text, source, ()))

        def take(layer: int, first: int, weights: Tensor) -> None:
            reducer.take(self._map(layer, weights), first)
            on_heads()

        self._by_heads(source, take)
        return reducer.done()

    @torch.inference_mode()
    def opened(self, text: str, layer: int, head: int) -> AttentionMap:
        """The map of one head of a text of up to `context` tokens, computed again. Errors as in `reduced`; ValueError
        for a layer or head out of range."""
        (kind,) = self.fields
        counts = self.head_counts[kind]
        if not 0 <= layer < len(counts) or not 0 <= head < counts[layer]:
            raise ValueError(f"layer and head must be of the {len(counts)} layers of {self.name}; got {layer}, {head}")
        result: list[AttentionMap] = []

        def take(number: int, first: int, weights: Tensor) -> None:
            if number == layer and first <= head < first + len(weights):
                result.append(self._map(layer, weights[head - first : head - first + 1].clone()))
                raise _Found  # the layers after it are not needed

        with suppress(_Found):
            self._by_heads(self.read(text, most=self.context), take)
        return result[0]

    def _by_heads(self, source: Tokens, take: TakeHeads) -> None:
        """Run the model on a text, and pass on the weights of a few heads at a time."""
        ids = torch.tensor([source.ids])
        (kind,) = self.fields
        layers = by_heads(self.body, ids, torch.ones_like(ids), take)
        if layers != len(self.head_counts[kind]):
            raise ValueError(
                f"{self.name} ({self.mechanism}) computes attention in a way of its own, so it cannot be reduced as it "
                f"is computed; texts of up to {self.limit} tokens can be shown"
            )

    def _map(self, layer: int, weights: Tensor) -> AttentionMap:
        """weights (H, Q, K) of some heads of a layer."""
        (kind,) = self.fields
        places = self.places.get(kind)
        return self.map_of(kind, places[layer].number if places else layer, weights.float().numpy())

    @property
    def reads_pairs(self) -> bool:
        return not self.causal

    def _pair_notes(self, text: str, source: Tokens) -> tuple[str, ...]:
        """A sentence on how the two texts of a pair, or a text that looks like a pair, were read."""
        separator = self.tokenizer.sep_token
        if not self.reads_pairs:
            return ()
        if tokenization.PAIR in text:
            second, cut = source.segments.count(1), text.index(tokenization.PAIR)
            if second:  # what the tokenizer puts around a text is counted with it
                counts = f"{source.segments.count(0)} and {second} tokens"
            else:
                first = [token.start < cut for token in source.tokens if not token.special]
                counts = f"{sum(first)} and {len(first) - sum(first)} tokens, in one segment"
            return (f"Read as two texts, divided at {tokenization.PAIR}, {counts}.",)
        if separator and separator in text:
            return (
                f"{separator} was typed, and all is read as one text, in one segment. For two texts, type "
                f"{tokenization.PAIR} between them.",
            )
        return ()

    @property
    def body(self) -> nn.Module:
        return self.model.base_model  # without its language-model head: the maps do not need it

    @property
    def causal(self) -> bool:
        return "decoder" in self.fields

    @property
    def predicts(self) -> bool:
        """Does it have a language-model head, for the next token or for a masked one?"""
        masks = self.tokenizer.mask_token_id is not None and self.mechanism not in PERMUTES
        return self._has_head and (self.causal or masks)

    @property
    def _has_head(self) -> bool:
        return self.body is not self.model or "labels" in inspect.signature(self.model.forward).parameters

    @property
    def why_no_log_prob(self) -> str:
        """Why `log_prob` cannot be measured, in a sentence; "" when it can."""
        reason = self._no_prediction
        return "" if self.predicts else f"{reason[0].upper()}{reason[1:]}, so head importance cannot be measured."

    @property
    def _no_prediction(self) -> str:
        """Why no token of a text can be predicted from the others."""
        if not self._has_head:
            return "this model has no language-model head"
        if self.mechanism in PERMUTES:
            return "the language-model head of this model predicts tokens in a random order, which is not done here"
        return "this model predicts masked tokens, and its tokenizer has no token that masks"

    @torch.inference_mode()
    def predictions(self, text: str) -> tuple[Prediction, ...]:
        """One for each token that can be predicted; () without a language-model head.

        A causal model predicts each token from those before it. Another predicts each token when it alone is masked
        (Salazar et al. 2020); in a text of more than `MASKED` tokens only every second, third, … token, so that there
        are at most `MASKED`.

        Raises TextError as `trace` does.
        """
        source = self.read(text)
        if not self.predicts:
            return ()
        rows = (self._next if self.causal else self._masked)(source)
        return tuple(self._prediction(position, source.ids[position], logits) for position, logits in rows)

    def log_prob(self, text: str, target: str | None = None) -> float:
        """Natural log-probability of the tokens of the text, each as in `predictions`: a pseudo-log-likelihood where
        they are masked. Raises what `predictions` raises, and TextError if no token can be predicted."""
        self._refuse_target(target)
        predictions = self.predictions(text)
        if not predictions:
            reason = "no token comes before its only token" if self.predicts else self._no_prediction
            raise TextError(f"{self.name} cannot predict this text: {reason}")
        return sum(prediction.log_prob for prediction in predictions)

    def _prediction(self, position: int, number: int, logits: Tensor) -> Prediction:
        """logits (V) of the token at `position`, whose id is `number`."""
        token_probabilities = probabilities.of_sentence(
            logits.unsqueeze(0), [number], partial(tokenization.name, self.tokenizer)
        )
        return Prediction(position, token_probabilities.log_probs[0], token_probabilities.alternatives[0])

    def _next(self, source: Tokens) -> Iterator[tuple[int, Tensor]]:
        """Position and logits (V) of each token but the first."""
        ids = torch.tensor([source.ids])
        logits = self.model(**self.inputs(ids, source.segments)).logits[0, :-1]
        yield from enumerate(logits, start=1)

    def _masked(self, source: Tokens) -> Iterator[tuple[int, Tensor]]:
        """Position and logits (V) of each token that is masked."""
        positions = [position for position, token in enumerate(source.tokens) if not token.special]
        positions = positions[:: -(-len(positions) // MASKED)] if positions else []
        for batch in (positions[first : first + BATCH] for first in range(0, len(positions), BATCH)):
            rows, ids = range(len(batch)), torch.tensor([source.ids] * len(batch))
            ids[rows, batch] = self.tokenizer.mask_token_id
            logits = self.model(**self.inputs(ids, source.segments)).logits[rows, batch]
            yield from zip(batch, logits)

    def check_beam(self, beam: int) -> None:
        """ValueError for any beam but 1."""
        if beam != 1:
            raise ValueError(self._no_text)

    def _refuse_target(self, target: str | None) -> None:
        if target is not None:  # of this text: in a file, others go on
            raise TextError(self._no_text)

    @property
    def _no_text(self) -> str:
        pairs = f"; for two texts, type {tokenization.PAIR} between them" if self.reads_pairs else ""
        return f"{self.name} reads a text and produces none, so it takes no target and no beam{pairs}"


class OpenedWriter(Copied):
    """The network of a causal model with the interface of `DecoderOnly`; its readouts are logits already.

    reweigh : changes the weights (B, H, T, t) of each layer; () for none. on_step : called once per pass; an exception
    that it raises ends the pass. Both also apply to passes of `network`. inputs, seen : layer -> the last inputs of its
    attention, and what each row sees, bool (B, 1, T, t), or None for all tokens up to its own. first : the place of the
    first token of the last pass. layers, heads : of its attention. longest : tokens of the longest text.
    why_no_scores : why the scores before the softmax are not known; "" if they are.
    """

    def __init__(self, network: Any, layers: int, heads: int, longest: int):
        """ValueError, with the reason, if attention is computed in an unsupported way."""
        super().__init__(network)
        self.layers, self.heads, self.longest, self.why_no_scores = layers, heads, longest, ""
        self.reweigh: Sequence[Reweigh] = ()
        self.on_step: Callable[[], None] = lambda: None
        self.inputs: dict[int, LayerInputs] = {}
        self.seen: dict[int, Tensor | None] = {}
        self.first = 0
        self._numbers: dict[int, int] = {}  # id of a module of attention -> its layer
        self.network.register_forward_pre_hook(self._before, with_kwargs=True)
        self._check(network)

    @property
    def embedding(self) -> nn.Module:
        return self.network.get_input_embeddings()

    @torch.inference_mode()
    def _check(self, network: Any) -> None:
        """ValueError, with the reason, unless passes of all kinds reproduce the logits of the model."""
        pad = network.config.get_text_config().pad_token_id  # some families hide it
        ids = torch.tensor([[number for number in range(_TRIED + 1) if number != pad][:_TRIED]])
        whole = self.read(ids)
        if len(self._numbers) != self.layers:
            raise ValueError("some of its layers compute attention in code of their own, which takes no other weights")
        for layer, weights in enumerate(whole.maps):
            read, seen = self.inputs[layer], self.seen[layer]
            scores = read.query @ read.key.mT * read.scaling
            seen = torch.ones_like(scores, dtype=torch.bool).tril() if seen is None else seen
            if not _close(scores.masked_fill(~seen, -torch.inf).softmax(-1), weights):
                self.why_no_scores = "its weights are not the softmax of products of queries and keys"
        steps, state = [], ()
        for token in ids.unbind(1):
            steps.append(self.read(token[:, None], state, [lambda weights, _mask: weights.clone()] * self.layers))
            state = steps[-1].state
        for reason, logits in (
            ("its output does not follow from weights times values", whole.readouts),
            ("its steps one by one are not those of one pass", torch.cat([step.readouts for step in steps], dim=1)),
            ("it reads no rows of the embedding in place of tokens", self.readouts_of(self.embedding(ids))),
        ):
            if not _close(network(input_ids=ids, use_cache=False).logits.float(), logits):
                raise ValueError(reason)

    def read(self, tokens: Tensor, state: Sequence = (), reweigh: Sequence[Reweigh] = ()) -> Reading:
        """As of `DecoderOnly`."""
        from transformers import DynamicCache

        cache, before = DynamicCache(list(state) or None), self.reweigh
        self.reweigh = reweigh or before
        try:
            options = {cache_name(self.network): cache, "use_cache": True, "output_attentions": True}
            output = self.network(input_ids=tokens, **options)
        finally:
            self.reweigh = before
        states = tuple((layer.keys, layer.values) for layer in cache.layers)
        return Reading(output.logits.float(), states, tuple(output.attentions))

    def last_row(self, tokens: Tensor, layer: int, head: int, whose: str) -> tuple[LayerInputs, Tensor | None, Tensor]:
        """The attention of the last of the tokens (1, t) in one head: query (d,), key and value (t, …); what it sees
        (t,), None for all; the logits (V). ValueError, which begins with `whose`, if the scores are not known."""
        if self.why_no_scores:
            raise ValueError(f"{whose}: {self.why_no_scores}, so its scores cannot be shown, only its weights")
        logits = self.read(tokens).readouts[0, -1]
        read, seen = self.inputs[layer], self.seen[layer]
        row = LayerInputs(read.query[0, head, -1], read.key[0, head], read.value[0, head], read.scaling)
        return row, None if seen is None else seen[0, 0, -1], logits

    def readouts(self, tokens: Tensor) -> Tensor:
        """As of `DecoderOnly`."""
        return self.network(input_ids=tokens, use_cache=False).logits.float()

    def readouts_of(self, vectors: Tensor) -> Tensor:
        """As of `DecoderOnly`."""
        return self.network(inputs_embeds=vectors, use_cache=False).logits.float()

    def logits(self, readouts: Tensor) -> Tensor:
        return readouts

    def _before(self, _module: nn.Module, _inputs: tuple, given: dict) -> None:
        mask = given.get("attention_mask")  # of the whole text, where tokens are read one by one
        self.first = 0 if mask is None else mask.shape[1] - given["input_ids"].shape[1]

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options
    ) -> tuple[Tensor, Tensor]:
        """Attention with the library's signature -> context (B, T, H, v), weights (B, H, T, t)."""
        context, weights = family_attention(module)(module, query, key, value, mask, **options)
        layer = self._numbers.setdefault(id(module), len(self._numbers))
        if layer == 0:
            self.on_step()
        if options.get("softcap") is not None:
            self.why_no_scores = "it caps its scores before the softmax"
        self.inputs[layer] = inputs_of(query, key, value, options)
        seen = None if mask is None else mask[..., : weights.shape[-1]]
        if seen is not None and seen.dtype != torch.bool:
            seen = seen > torch.finfo(seen.dtype).min / 2
        self.seen[layer] = seen
        change = self.reweigh[layer] if self.reweigh else None
        if change is None:
            return context, weights
        weights = change(weights, seen)
        return (weights @ self.inputs[layer].value).transpose(1, 2).contiguous(), weights


def _close(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, CLOSE, CLOSE)
