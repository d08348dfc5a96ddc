"""A model of the transformers library with an encoder and a decoder, such as T5, BART or Marian. It produces a text."""

import contextlib
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor

from attnviz import function_words
from attnviz.data.tokenizer import Tokens
from attnviz.models import probabilities
from attnviz.models.huggingface import LIBRARY_ERRORS, one_line, tokenization
from attnviz.models.huggingface.base import HuggingFaceModel
from attnviz.models.huggingface.opened import Openable, Opened
from attnviz.models.model import TextError
from attnviz.models.names import HUGGING_FACE, PREFIX, HuggingFaceName, without_prefix
from attnviz.trace import Token, Trace

PRODUCED = 200  # tokens that a model may produce
_BEAMS = 1, 5  # with which the page and the commands let a model produce a text


class EncoderDecoderModel(Openable[Opened], HuggingFaceModel):
    """An encoder that reads a text and a decoder that produces one."""

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Produce a text, or force the model to produce `target`; the trace has all attention weights.

        The model generates as its own settings say, except that the length is limited and nothing is sampled.
        Raises TextError for an empty or too long text, ValueError for a beam out of range.
        """
        return self.traced(text, target, beam)[0]

    def traced(self, text: str, target: str | None = None, beam: int = 1) -> tuple[Trace, Tensor]:
        """`trace`, and the logits (T, V) of its steps."""
        self.check_beam(beam)
        source = self.read(text)
        if target is None:
            ids = self._generated(source.ids, beam)
            translation, tokens = tokenization.spell(self.tokenizer, ids)
        else:
            wanted = self.read(target, target=True)
            ids, translation, tokens = list(wanted.ids), target, wanted.tokens
        output = self.run(source.ids, decoder_input_ids=torch.tensor([[self.start, *ids[:-1]]]))
        token_probabilities = probabilities.of_sentence(output.logits[0], ids, self.output)
        trace = Trace(
            model=self.name,
            mechanism=self.mechanism,
            text=text,
            translation=translation,
            forced=target is not None,
            source=source.tokens,
            target=tokens,
            log_probs=token_probabilities.log_probs,
            alternatives=token_probabilities.alternatives,
            maps=self.maps(output),
            notes=self.notes,
            complete=target is not None or len(ids) < self.most_steps,
            start=Token(self.output(self.start), 0, 0, special=True),
        )
        return trace, output.logits[0]

    def target_ids(self, trace: Trace) -> list[int]:
        """The piece ids of a trace's target. ValueError if the tokenizer gives other pieces for it."""
        texts = [token.text for token in trace.target]
        for beam in () if trace.forced else _BEAMS:
            ids = self._generated(self.read(trace.text).ids, beam)
            if [token.text for token in tokenization.spell(self.tokenizer, ids)[1]] == texts:
                return ids
        with contextlib.suppress(TextError):
            wanted = self.read(trace.translation, target=True)
            if [token.text for token in wanted.tokens] == texts:
                return list(wanted.ids)
        raise ValueError(f"trace must be of {self.name}; it divides {trace.translation!r:.80} otherwise")

    def _open(self) -> Opened:
        heads = self.head_counts["cross"]
        return Opened(self.model, self.start, len(heads), min(heads))

    def _check(self, network: Opened) -> None:
        network.check(self._logits)

    def _logits(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) from the first token on -> logits (B, T, V)."""
        return self.model(**self.inputs(source), decoder_input_ids=target).logits

    @property
    def start(self) -> int:
        """Id of the token that the decoder reads first. A model that does not define it is not loaded."""
        settings = self.model.generation_config
        if self.start_id is not None:
            return self.start_id
        return settings.bos_token_id if settings.decoder_start_token_id is None else settings.decoder_start_token_id

    def read(self, text: str, target: bool = False, most: int | None = None) -> Tokens:
        if self.prefix and not target and text.strip():
            return tokenization.behind(super().read(self.prefix + text, most=most), len(self.prefix))
        tokens = super().read(text, target, most)
        if target and self.start_id is not None and tokens.ids[-1] == self.start_id:  # mBART puts it behind the end
            return replace(tokens, ids=tokens.ids[:-1], tokens=tokens.tokens[:-1])
        return tokens

    def between(self, source: str = "", target: str = "") -> Self:
        """The model, which reads the language `source` and produces `target`; "" for its own. Both are codes of its
        tokenizer, such as `eng_Latn`. ValueError for a code that it does not have."""
        tokenizer, number, first = tokenization.for_languages(self.tokenizer, source, target)
        name = f"{HUGGING_FACE}{HuggingFaceName(without_prefix(self.name)).place}#{source}:{target}"
        ids = (number, None) if first else (None, number)
        model = replace(self, name=name, tokenizer=tokenizer, first_id=ids[0], start_id=ids[1])
        return model.producing(target) if target else model

    def after(self, prefix: str) -> Self:
        """The model, which reads `prefix` and a space before every text, as T5 does to know what is wanted. Traces show
        its tokens as special ones, so that it has no part in alignments."""
        note = f"The model read “{prefix.strip()}” before the text."
        name = f"{self.name}#{PREFIX}{prefix.strip()}"
        return replace(self, name=name, prefix=f"{prefix.strip()} ", notes=(*self.notes, note))

    def producing(self, language: str) -> Self:
        """The model, told that it produces this language (`fr`, or a code such as fra_Latn), so that kinds of words are
        known. Unlike `between`, this does not choose a language of a multilingual model."""
        return replace(self, language=function_words.of_code(language))

    @property
    def languages(self) -> tuple[str, ...]:
        """The codes of the languages that `between` takes."""
        return tokenization.language_codes(self.tokenizer)

    @property
    def most_steps(self) -> int:
        """The largest number of tokens that it may produce. A text of this length counts as cut off."""
        return min(PRODUCED, self.limit)

    @property
    def _caches(self) -> bool:
        """May the decoder use its key/value cache? The library makes one with as many layers as the encoder has."""
        return not self.whole and len(self.head_counts["decoder"]) <= len(self.head_counts["encoder"])

    def _generated(self, ids: tuple[int, ...], beam: int) -> list[int]:
        try:
            return self._ended(self._generate(ids, beam))
        except (*LIBRARY_ERRORS, ValueError) as error:  # the settings for generation are the model's own
            raise TextError(f"{self.name} can produce no text with its own settings: {one_line(error)}") from None

    def _ended(self, ids: list[int]) -> list[int]:
        """The output up to its end. A model whose settings name no end token fills the rest with special tokens."""
        end, special = self.tokenizer.eos_token_id, set(self.tokenizer.all_special_ids)
        words = [place for place, number in enumerate(ids) if number not in special]
        after = words[-1] + 1 if words else 0
        return ids[: ids.index(end, after) + 1] if end in ids[after:] else ids

    @torch.inference_mode()
    def _generate(self, ids: tuple[int, ...], beam: int) -> list[int]:
        produced = self.model.generate(
            **self.inputs(torch.tensor([ids])),
            do_sample=False,
            num_beams=beam,
            num_return_sequences=1,
            max_new_tokens=self.most_steps,
            return_dict_in_generate=False,
            use_cache=self._caches,
            **({} if self.first_id is None else {"forced_bos_token_id": self.first_id}),
            **({} if self.start_id is None else {"decoder_start_token_id": self.start_id}),
        )
        return produced[0, 1:].tolist()

    @torch.inference_mode()
    def log_prob(self, text: str, target: str | None = None) -> float:
        """`trace(text, target).log_prob`, up to rounding; for a given target computed without attention. Raises what
        `trace` raises."""
        if target is None:
            return sum(self.trace(text).log_probs)
        source, wanted = torch.tensor([self.read(text).ids]), self.read(target, target=True).ids
        logits = self._logits(source, torch.tensor([[self.start, *wanted[:-1]]]))[0]
        return probabilities.total(logits, wanted)
