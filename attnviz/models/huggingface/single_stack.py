"""A model of the transformers library with one stack: an encoder such as BERT, or a decoder such as GPT. It reads a
text."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from attnviz.data.tokenizer import Tokens
from attnviz.models import probabilities
from attnviz.models.huggingface import tokenization
from attnviz.models.huggingface.base import HuggingFaceModel, TakeHeads, by_heads
from attnviz.models.measured import Reduced, Reducer
from attnviz.models.model import TextError
from attnviz.trace import Alternative, AttentionMap, Trace

MASKED = 64  # tokens of a text that are masked in turn, at most: the model reads the whole text for each
PERMUTES = ("xlnet",)  # families that predict a token from those before it in a random order (Yang et al. 2019)
BATCH = 8  # of these texts read at once


class _Found(Exception):
    """Ends a pass that has made what it was for."""


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
        return f"{self.name} reads a text and produces none, so it takes no target and no beam"
