"""A model of the transformers library with an encoder and a decoder, such as T5, BART or Marian. It produces a text."""

from functools import partial

import torch

from attnviz.models import probabilities
from attnviz.models.huggingface import tokenization
from attnviz.models.huggingface.base import HuggingFaceModel
from attnviz.models.huggingface.errors import LIBRARY_ERRORS, one_line
from attnviz.models.model import TextError
from attnviz.trace import Token, Trace

PRODUCED = 200  # tokens that a model may produce


class EncoderDecoderModel(HuggingFaceModel):
    """An encoder that reads a text and a decoder that produces one."""

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Produce a text, or force the model to produce `target`; the trace has all attention weights.

        The model generates as its own settings say, except that the length is limited and nothing is sampled.
        Raises TextError for an empty or too long text, ValueError for a beam out of range.
        """
        self.check_beam(beam)
        source = self.read(text)
        if target is None:
            ids = self._generated(source.ids, beam)
            translation, tokens = tokenization.spell(self.tokenizer, ids)
        else:
            wanted = self.read(target, target=True)
            ids, translation, tokens = list(wanted.ids), target, wanted.tokens
        output = self.run(source.ids, decoder_input_ids=torch.tensor([[self.start, *ids[:-1]]]))
        token_probabilities = probabilities.of_sentence(
            output.logits[0], ids, partial(tokenization.name, self.tokenizer)
        )
        return Trace(
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
            complete=target is not None or len(ids) < self.most_steps,
            start=Token(tokenization.name(self.tokenizer, self.start), 0, 0, special=True),
        )

    @property
    def start(self) -> int:
        """Id of the token that the decoder reads first. A model that does not say it is not loaded."""
        settings = self.model.generation_config
        return settings.bos_token_id if settings.decoder_start_token_id is None else settings.decoder_start_token_id

    @property
    def most_steps(self) -> int:
        """Tokens that it may produce. A text of this length was cut, whatever its last token is."""
        return min(PRODUCED, self.limit)

    @property
    def _caches(self) -> bool:
        """May the decoder use its key/value cache? The library makes one with as many layers as the encoder has."""
        return len(self.head_counts["decoder"]) <= len(self.head_counts["encoder"])

    def _generated(self, ids: tuple[int, ...], beam: int) -> list[int]:
        try:
            return self._ended(self._generate(ids, beam))
        except (*LIBRARY_ERRORS, ValueError) as error:  # the settings for generation are the model's own
            raise TextError(f"{self.name} can produce no text with its own settings: {one_line(error)}") from None

    def _ended(self, ids: list[int]) -> list[int]:
        """The output without what follows its end: a model whose settings name no end adds special tokens to the
        limit."""
        end, special = self.tokenizer.eos_token_id, set(self.tokenizer.all_special_ids)
        words = [place for place, number in enumerate(ids) if number not in special]
        after = words[-1] + 1 if words else 0
        return ids[: ids.index(end, after) + 1] if end in ids[after:] else ids

    @torch.inference_mode()
    def _generate(self, ids: tuple[int, ...], beam: int) -> list[int]:
        source = torch.tensor([ids])
        produced = self.model.generate(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            do_sample=False,
            num_beams=beam,
            num_return_sequences=1,
            max_new_tokens=self.most_steps,
            return_dict_in_generate=False,
            use_cache=self._caches,
        )
        return produced[0, 1:].tolist()

    @torch.inference_mode()
    def log_prob(self, text: str, target: str | None = None) -> float:
        """`trace(text, target).log_prob`, to rounding; of a target without attention. Raises what that raises."""
        if target is None:
            return sum(self.trace(text).log_probs)
        source, wanted = torch.tensor([self.read(text).ids]), self.read(target, target=True).ids
        logits = self.model(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            decoder_input_ids=torch.tensor([[self.start, *wanted[:-1]]]),
        ).logits[0]
        return probabilities.total(logits, wanted)
