"""A model of the transformers library with its tokenizer: text in, Trace out.

Two kinds, whatever the family is called: a Reader has one stack (BERT and GPT alike; which of them may look ahead is seen
in what they attend to), a Writer an encoder and a decoder. Maps are those that the model computed with (eager attention).
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.data.tokenizer import Tokens
from attnviz.models import batches
from attnviz.models.huggingface import tokenization
from attnviz.models.measured import Measured
from attnviz.models.trained import TextError, check
from attnviz.models.translator import BEAMS
from attnviz.networks import projections
from attnviz.networks.projections import Projection
from attnviz.trace import Alternative, AttentionMap, Token, Trace

LONGEST = 512  # tokens of a text, whatever the model could read: every layer and head keeps the square of it
PRODUCED = 200  # tokens that a model may produce
MASKED = 64  # tokens of a text that are masked in turn, at most, for the model reads all of it each time
BATCH = 8  # of these readings at once
CHOICES = 5  # the most probable tokens that are kept


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model and its tokenizer, ready to trace.

    name : `hf:` and the folder or the name on the hub. mechanism : its family, as the model says (`bert`, `t5`).
    kinds : kind of map -> where the output of the model has its layers. limit : tokens that it can be shown.
    counts : kind -> heads of each layer.
    """

    name: str
    mechanism: str
    model: nn.Module
    tokenizer: Any
    kinds: dict[str, str]
    limit: int
    counts: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name for readers."""
        return self.name

    def read(self, text: str, target: bool = False) -> Tokens:
        """The tokens of a text. Raises TextError for one that is empty, or longer than the model can be shown."""
        what = "target" if target else "text"
        check(text, what)
        try:
            tokens = tokenization.encode(self.tokenizer, text, target)
        except ValueError as error:
            raise TextError(
                f"{error}; {self.name} needs one with a tokenizer.json, a fast one, for this {what}"
            ) from None
        if all(token.special for token in tokens.tokens):
            raise TextError(f"the {what} holds no token but special ones; type a sentence")
        if len(tokens.ids) > self.limit:
            raise TextError(
                f"the {what} is too long: {len(tokens.ids)} tokens with those that {self.name} adds, and it can be shown "
                f"at most {self.limit}; shorten it or split it into sentences"
            )
        return tokens

    def projections(self) -> list[Projection]:
        """Where its heads can be switched off. ValueError, with a whole sentence, when that is not known of its family."""
        try:
            return projections.named(self.model, self.counts)
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
    ) -> Iterator[Trace | Measured | TextError]:
        """`trace` of each text, in the order given, as `Translator.traces`; one at a time, whatever the batch_size."""
        batches.check_size(batch_size)
        return batches.one_by_one(partial(self.trace, beam=beam), texts, targets, batches.kept(keep))

    @property
    def body(self) -> nn.Module:
        """The part of the model that attends."""
        return self.model

    def maps(self, output) -> tuple[AttentionMap, ...]:
        """Every layer (1, H, Q, K) of every kind in an output of the model."""
        return tuple(
            AttentionMap(kind, layer, weights[0].numpy())
            for kind, field in self.kinds.items()
            for layer, weights in enumerate(output[field])
        )


@dataclass(frozen=True)
class Prediction:
    """What a model that only reads makes of a token from the others. place : in the text's tokens. log_prob : natural, of the
    token that stands there. alternatives : the most probable ones."""

    place: int
    log_prob: float
    alternatives: tuple[Alternative, ...]


class Reader(Pretrained):
    """One stack, which reads a text: its maps are `encoder` where all tokens are seen, `decoder` where it is causal."""

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Read a text, keeping everything that was attended to: a trace without a target, see trace.py.

        Raises TextError for an empty or too long text, ValueError for a target or a beam: nothing is produced.
        """
        self._alone(target, beam)
        source = self.read(text)
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
            maps=self.maps(self.run(source.ids)),
        )

    @property
    def body(self) -> nn.Module:
        return self.model.base_model  # without what it predicts with: that is many numbers, which no map needs

    @property
    def causal(self) -> bool:
        return "decoder" in self.kinds

    @property
    def predicts(self) -> bool:
        """Has it something to predict tokens with: a head for the next one, or for one that is masked?"""
        return self.body is not self.model and (self.causal or self.tokenizer.mask_token_id is not None)

    @torch.inference_mode()
    def predictions(self, text: str) -> tuple[Prediction, ...]:
        """Of each token that can be predicted: a causal model's of the token after those before it; else of a token that is
        masked, one after the other, and all others seen (Salazar et al. 2020); in a text of more than `MASKED` tokens of every
        second, third, … one, so that they are no more. () when it predicts nothing.

        Raises TextError as `trace` does.
        """
        source = self.read(text)
        if not self.predicts:
            return ()
        return tuple(
            Prediction(place, float(row[source.ids[place]].clamp(max=0)), alternatives(self.tokenizer, row, CHOICES))
            for place, row in (self._next if self.causal else self._masked)(source)
        )

    def log_prob(self, text: str, target: None = None) -> float:
        """Natural log-probability of the tokens of the text, each as in `predictions`: a pseudo-log-likelihood where they were
        masked. Raises what that raises, and TextError when nothing is predicted."""
        self._alone(target)
        found = self.predictions(text)
        if not found:
            raise TextError(
                f"{self.name} predicts nothing of this text: "
                + ("one token has none before it" if self.predicts else "what was read of its files predicts no tokens")
            )
        return sum(one.log_prob for one in found)

    def _next(self, source: Tokens) -> Iterator[tuple[int, Tensor]]:
        """Place and log-probabilities (V)."""
        ids = torch.tensor([source.ids])
        logits = self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, :-1]
        yield from enumerate(torch.log_softmax(logits, -1), start=1)

    def _masked(self, source: Tokens) -> Iterator[tuple[int, Tensor]]:
        places = [place for place, token in enumerate(source.tokens) if not token.special]
        places = places[:: -(-len(places) // MASKED)] if places else []
        for some in (places[first : first + BATCH] for first in range(0, len(places), BATCH)):
            rows, ids = range(len(some)), torch.tensor([source.ids] * len(some))
            ids[rows, some] = self.tokenizer.mask_token_id
            logits = self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[rows, some]
            yield from zip(some, torch.log_softmax(logits, -1))

    def _alone(self, target: str | None, beam: int = 1) -> None:
        if target is not None or beam != 1:
            raise ValueError(f"{self.name} reads a text and produces none: it takes no target and no beam")


class Writer(Pretrained):
    """An encoder that reads a text and a decoder that produces one."""

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Produce a text from a text, or force the model to produce `target`, keeping everything it attended to.

        The model generates as its own settings say, but for the length and for chance: greedily, or with a beam.
        Raises TextError for an empty or too long text, ValueError for a beam out of range.
        """
        if not 1 <= beam <= BEAMS:
            raise ValueError(f"beam must be from 1 to {BEAMS}; got {beam}")
        source = self.read(text)
        if target is None:
            ids = self._generate(source.ids, beam)
            written, tokens = tokenization.spell(self.tokenizer, ids)
        else:
            read = self.read(target, target=True)
            ids, written, tokens = list(read.ids), target, read.tokens
        output = self.run(source.ids, decoder_input_ids=torch.tensor([[self.start, *ids[:-1]]]))
        log_probs = torch.log_softmax(output.logits[0], dim=-1)  # (T, V)
        chosen = log_probs.gather(1, torch.tensor(ids).unsqueeze(1)).squeeze(1)
        return Trace(
            model=self.name,
            mechanism=self.mechanism,
            text=text,
            translation=written,
            forced=target is not None,
            source=source.tokens,
            target=tokens,
            log_probs=tuple(chosen.clamp(max=0).tolist()),
            alternatives=tuple(alternatives(self.tokenizer, row, CHOICES) for row in log_probs),
            maps=self.maps(output),
            complete=target is not None or len(ids) < self.most,
            start=Token(tokenization.name(self.tokenizer, self.start), 0, 0, special=True),
        )

    @property
    def start(self) -> int | None:
        """What the decoder reads first; None when the model does not say (then it is not loaded)."""
        settings = self.model.generation_config
        return settings.bos_token_id if settings.decoder_start_token_id is None else settings.decoder_start_token_id

    @property
    def most(self) -> int:
        """Tokens that it may produce; one that stops there was stopped, whatever it was made to close with."""
        return min(PRODUCED, self.limit)

    @property
    def _caches(self) -> bool:
        """May the decoder keep what it has computed? The library makes room for as many layers as the encoder has."""
        return len(self.counts["decoder"]) <= len(self.counts["encoder"])

    @torch.inference_mode()
    def _generate(self, ids: tuple[int, ...], beam: int) -> list[int]:
        source = torch.tensor([ids])
        produced = self.model.generate(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            do_sample=False,
            num_beams=beam,
            num_return_sequences=1,
            max_new_tokens=self.most,
            return_dict_in_generate=False,
            use_cache=self._caches,
        )
        return produced[0, 1:].tolist()

    @torch.inference_mode()
    def log_prob(self, text: str, target: str) -> float:
        """`trace(text, target).log_prob`, to rounding; nothing is kept. Raises what that raises."""
        source, wanted = torch.tensor([self.read(text).ids]), self.read(target, target=True).ids
        logits = self.model(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            decoder_input_ids=torch.tensor([[self.start, *wanted[:-1]]]),
        ).logits[0]
        return float(
            torch.log_softmax(logits, -1).gather(1, torch.tensor(wanted).unsqueeze(1)).clamp(max=0).double().sum()
        )


def alternatives(tokenizer: Any, log_probs: Tensor, count: int) -> tuple[Alternative, ...]:
    """The most probable tokens of log-probabilities (V)."""
    values, ids = log_probs.topk(min(count, len(log_probs)))
    return tuple(
        Alternative(tokenization.name(tokenizer, number), p) for number, p in zip(ids.tolist(), values.exp().tolist())
    )
