"""A trained model that writes, with its tokenizer and card: text in, Trace out."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from attnviz.arguments import within
from attnviz.data.styles import SPACE
from attnviz.data.tokenizer import BOS, EOS, Tokens
from attnviz.models import batches, probabilities
from attnviz.models.model import TextError, Trained
from attnviz.models.probabilities import TokenProbabilities
from attnviz.networks import decoder_only, writing
from attnviz.networks.decode import NEVER
from attnviz.networks.decoder_only import Contributions, DecoderOnly
from attnviz.networks.writing import Candidate, Sampling, Written
from attnviz.trace import AttentionMap, Token, Trace


class Writer(batches.OneByOne, Trained):
    """A checkpoint that continues a text, token by token.

    In its traces the target is the whole text, and the source is the prompt: the target's first tokens. So a row of a
    map is the attention that produced a token of the prompt or the continuation, and every token has its
    log-probability.
    """

    model: DecoderOnly

    @property
    def limit(self) -> int:
        """Tokens of the longest text."""
        return self.model.longest

    def read(self, text: str, what: str = "text") -> Tokens:
        """The pieces of a text, without <eos>, because the text may be continued. Raises TextError for an empty or too
        long one."""
        whole = self._divided(text, what)
        ids, tokens = whole.ids[:-1], whole.tokens[:-1]
        if not ids:
            raise TextError(f"the {what} has no visible character; type how a text begins")
        if len(ids) > self.limit:
            raise TextError(
                f"the {what} is too long: {len(ids)} {self.task.piece}s, and {self.name} reads at most {self.limit}; "
                "shorten it"
            )
        return Tokens(ids, tokens)

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Read a text without writing: the probability of each token given those before it, its alternatives, and all
        attention weights. Raises TextError for an empty or too long text.

        target : must be None, and beam 1 (ValueError): a model that writes has no separate target.
        """
        self.check_beam(beam)
        self._refuse_target(target)
        source = self.read(text)
        return self._trace(text, source, writing.write(self.model, source.ids, 0, _never))

    def write(
        self,
        prompt: str,
        steps: int = 40,
        temperature: float = 1.0,
        *,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1,
        choices: Mapping[int, int] | None = None,
    ) -> Trace:
        """Continue `prompt`: a trace of the whole text, `complete` if the model ended it with <eos>.

        steps : the most tokens to write, within the room that the prompt leaves in the context (`limit`). choices :
        chosen tokens, which are not drawn: step after the prompt (from 0) -> id of the token. The other arguments : see
        `Sampling`; the same ones give the same text. Raises TextError for an empty or too long prompt, ValueError for a
        number out of range.
        """
        how = Sampling(temperature, top_k, top_p, seed)
        writing.check_steps(steps)
        taken = writing.checked_choices(choices or {}, self._writes, self.name)
        source = self.read(prompt, "prompt")
        room = self.limit - len(source.ids)
        if not room:
            raise TextError(
                f"the prompt is too long to write on: {self.limit} {self.task.piece}s fill the context of {self.name}; "
                "shorten it"
            )
        written = writing.write(self.model, source.ids, min(steps, room), self._spelling(how, source.ids[-1], taken))
        return self._trace(prompt, source, written)

    @torch.inference_mode()
    def candidates(self, trace: Trace, place: int | None, how: Sampling, count: int = 8) -> tuple[Candidate, ...]:
        """The `count` most probable tokens at a place of the trace's target, from 0; None for the token that
        would come next. () if the text has ended or the context is full. ValueError as in `lens`, and for a place out
        of range."""
        ids = self.ids(trace)
        place = len(ids) if place is None else place
        within("place", place, 0, len(ids))
        if place >= self.limit or EOS in ids[:place]:
            return ()
        readouts = self.model.readouts(torch.tensor([[BOS, *ids[:place]]]))
        logits = self.model.logits(readouts[0, -1])
        scores = writing.allowed(self._readable(logits, ids[place - 1] if place else None), how)
        return writing.candidates(logits, scores, self.tokenizer.choice, count)

    def check_beam(self, beam: int) -> None:
        """ValueError for any beam but 1."""
        if beam != 1:
            raise ValueError(f"beam must be 1 for {self.name}, which writes on after a text; got {beam}")

    @torch.inference_mode()
    def log_prob(self, text: str, target: str | None = None) -> float:
        """Natural log of the probability of the text: `trace(text).log_prob`, without attention weights."""
        self._refuse_target(target)
        ids = list(self.read(text).ids)
        logits = self.model.logits(self.model.readouts(torch.tensor([[BOS, *ids[:-1]]])))
        return probabilities.total(logits[0], ids)

    @torch.inference_mode()
    def again(self, trace: Trace, prompt: str | None = None) -> tuple[Trace, torch.Tensor]:
        """The text of a trace read again in one pass, and the logits (T, V) of its tokens. prompt : another text in
        place of the prompt; the continuation is unchanged. Raises TextError for a prompt that leaves no room,
        ValueError as of `ids`."""
        text, ids = trace.text if prompt is None else prompt, self.ids(trace)
        source = self.read(text, "prompt")
        whole = [*source.ids, *ids[trace.given :]]
        if len(whole) > self.limit:
            raise TextError(
                f"the prompt is too long: with what was written it has {len(whole)} {self.task.piece}s, and "
                f"{self.name} reads at most {self.limit}"
            )
        reading = self.model.read(torch.tensor([[BOS, *whole[:-1]]]))
        logits = self.model.logits(reading.readouts[0])
        return self._trace(text, source, Written(whole, logits, [weights[0] for weights in reading.maps])), logits

    def lens(self, trace: Trace) -> tuple[TokenProbabilities, ...]:
        """The predictions before the first layer and after each: for every token of the trace's target its
        log-probability and the most probable tokens in its place (`decoder_only.lens`). The last are the model's own.

        ValueError for a trace of another model's vocabulary.
        """
        ids = self.ids(trace)
        layers = decoder_only.lens(self.model, torch.tensor([BOS, *ids[:-1]]))
        return tuple(probabilities.of_sentence(logits, ids, self.tokenizer.choice) for logits in layers)

    def contributions(self, trace: Trace) -> Contributions:
        """The direct contribution of the embedding, each head, each bias and each feed-forward network to the logit of
        every token of the trace's target (networks/decoder_only.py). ValueError as of `lens`."""
        ids = torch.tensor(self.ids(trace))
        return decoder_only.contributions(self.model, torch.cat([ids.new_tensor([BOS]), ids[:-1]]), ids)

    @torch.inference_mode()
    def logit(self, trace: Trace) -> float:
        """The logit of the last token of the trace's target, in a pass of its own. ValueError as of `lens`."""
        ids = self.ids(trace)
        return float(self.model.logits(self.model.readouts(torch.tensor([[BOS, *ids[:-1]]])))[0, -1, ids[-1]])

    def ids(self, trace: Trace) -> list[int]:
        """The ids of a trace's target. ValueError if the ids do not spell it, because the trace is of another model."""
        given, written = self.read(trace.text, "text of the trace"), trace.target[trace.given :]
        before = trace.target[trace.given - 1 : -1]
        numbers = [number for number in map(self._number, before, written) if number is not None]
        if (
            given.tokens != trace.source
            or len(numbers) < len(written)
            or trace.target[: len(given.ids)] != given.tokens
        ):
            raise ValueError(
                f"trace must be of a model with this vocabulary; it divides {trace.translation!r:.80} otherwise"
            )
        return [*given.ids, *numbers]

    def read_for(self, trace: Trace) -> list[int]:
        """The ids that the model reads to produce the tokens of a trace's target. ValueError as of `ids`."""
        return [BOS, *self.ids(trace)[:-1]]

    def _writes(self, number: int) -> bool:
        """Is it the id of a token that may be written?"""
        return 0 <= number < len(self.tokenizer) and number not in NEVER

    def _readable(self, logits: torch.Tensor, last: int | None) -> torch.Tensor:
        """logits (V) after the piece `last`, with -inf for pieces that would be tokenised differently in the text:
        after a line break those that do not begin a word."""
        within = self.tokenizer.within_words if last is not None and last == self.tokenizer.line_break else ()
        return logits.index_fill(0, torch.tensor(within, dtype=torch.long), -torch.inf)

    def _spelling(self, how: Sampling, last: int, taken: Mapping[int, int]) -> Callable[[torch.Tensor], int]:
        """A function that chooses tokens after the piece `last`. taken : step -> token. Taken tokens consume a random
        number too, so that another choice does not change the random numbers of later steps."""
        choose, step = writing.chooser(how), -1

        def next_piece(logits: torch.Tensor) -> int:
            nonlocal last, step
            step += 1
            sampled = choose(self._readable(logits, last))
            last = taken.get(step, sampled)
            return last

        return next_piece

    def _number(self, before: Token, token: Token) -> int | None:
        """The id of a written token: of the piece with a mark if it follows a space or begins a line."""
        if token.special:
            return EOS
        marked = token.start > before.end or before.text.endswith("\n")
        spellings = (SPACE + token.text, token.text) if marked else (token.text.replace(" ", SPACE), token.text)
        numbers = map(self.tokenizer.backend.token_to_id, spellings)
        return next((number for number in numbers if number is not None), None)

    def _trace(self, text: str, source: Tokens, written: Written) -> Trace:
        """The trace of a text with the prompt `source`."""
        count = len(source.ids)
        begun = text[: source.tokens[-1].end] if len(written.ids) > count else text
        whole, tokens = self.tokenizer.spell_on(begun, source.tokens[-1], written.ids[count:])
        token_probabilities = probabilities.of_sentence(written.logits, written.ids, self.tokenizer.choice)
        return Trace(
            model=self.name,
            mechanism=self.mechanism,
            text=text,
            translation=whole,
            forced=len(written.ids) == count,
            complete=written.ids[-1] == EOS or len(written.ids) == count,
            source=source.tokens,
            target=(*source.tokens, *tokens),
            log_probs=token_probabilities.log_probs,
            alternatives=token_probabilities.alternatives,
            maps=tuple(AttentionMap("decoder", layer, weights.numpy()) for layer, weights in enumerate(written.maps)),
        )

    def _refuse_target(self, target: str | None) -> None:
        if target is not None:  # of this text: in a file, others go on
            raise TextError(f"{self.name} writes on after a text, so it takes no target")


def beginning(trace: Trace, count: int) -> Trace:
    """The trace of the first `count` tokens of a written target, at least those of the prompt. Later tokens do not
    affect earlier rows."""
    if count >= len(trace.target):
        return trace
    return replace(
        trace,
        translation=trace.translation[: trace.target[count - 1].end],
        target=trace.target[:count],
        log_probs=trace.log_probs[:count],
        alternatives=trace.alternatives[:count],
        complete=False,
        maps=tuple(_cut(m, count) for m in trace.maps),
    )


def _cut(attention: AttentionMap, count: int) -> AttentionMap:
    """The first `count` rows and columns of a causal map."""
    mask = None if attention.mask is None else attention.mask[:count, :count]
    return replace(attention, weights=attention.weights[:, :count, :count], mask=mask)


def _never(logits: torch.Tensor) -> int:
    raise ValueError("a text that is only read has no next token to choose")
