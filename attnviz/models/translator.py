"""A trained translation model with its tokenizer and card: text in, Trace out."""

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import repeat

import torch

from attnviz.arguments import within
from attnviz.data import MOST_PIECES
from attnviz.data.batching import pad
from attnviz.data.tokenizer import BOS, PAD, SubwordTokenizer
from attnviz.data.tokenizer_rules import TokenizerError, contained
from attnviz.models import batches, measured, probabilities
from attnviz.models.batches import Job
from attnviz.models.measured import TraceStatistics
from attnviz.models.model import TextError, Trained
from attnviz.models.probabilities import TokenProbabilities
from attnviz.networks import Network, decode
from attnviz.networks.cpu import OneDNN
from attnviz.networks.decode import Unrolled
from attnviz.trace import BOS as START
from attnviz.trace import KINDS, AttentionMap, Hypothesis, Token, Trace

BEAMS = 20  # hypotheses beam search may keep
MOST_SAMPLES = 1000  # translations that may be drawn of a text


def check_beam(beam: int) -> None:
    """ValueError unless the number of hypotheses is from 1 to BEAMS."""
    within("beam", beam, 1, BEAMS)


@functools.lru_cache(8)  # of a sentence, for each model that guesses from it
def _pieces(tokenizer: SubwordTokenizer, guess: str) -> tuple[int, ...]:
    """The pieces of a guess, without <eos>; () for a text that cannot be read."""
    try:
        with contained():
            return tuple(tokenizer.ids(guess)[:-1])
    except TokenizerError:
        return ()


class Translator(Trained):
    """A checkpoint that translates."""

    model: Network

    def check_beam(self, beam: int) -> None:
        """ValueError for a beam that is not from 1 to BEAMS."""
        check_beam(beam)

    def trace(self, text: str, target: str | None = None, beam: int = 1) -> Trace:
        """Translate a text, or force the model to produce `target`; the trace has all attention weights.

        Text in capitals is read as a normal sentence: `Trace.read_as`. A text longer than those of training is read
        nevertheless (see `Trace.longest`). beam : hypotheses kept; 1 is greedy decoding, 5 translates better. The trace
        is of the best hypothesis. Raises TextError for an empty or too long text, ValueError for a beam out of range.
        """
        check_beam(beam)
        source = self.read(text)
        job = Job(text, source, target, None if target is None else self.read(target, "target"))
        unrolled = self._unroll([job], beam)
        ids = unrolled.tokens[0].tolist()
        token_probabilities = probabilities.of_sentence(unrolled.rows()[0], ids, self.tokenizer.choice)
        return self._trace(job, unrolled, self._output(job, ids), token_probabilities)

    def traces(
        self,
        texts: Iterable[str],
        targets: Iterable[str | None] | None = None,
        *,
        batch_size: int = batches.BATCH,
        beam: int = 1,
        keep: Collection[str] = ("maps",),
        guesses: Sequence[str] = (),
    ) -> Iterator[Trace | TraceStatistics | TextError]:
        """`trace` of each text (and target: None leaves it to the model) in the order given, in batches of
        similar lengths.

        The tokens are the same as one by one, and the numbers agree up to rounding. The number of texts is not limited,
        because a few hundred are read at a time. A text that cannot be read yields its TextError in its place. keep :
        ("maps",) yields Trace; ("statistics",) TraceStatistics, without weights, which is faster; both, TraceStatistics
        with its trace. guesses : likely translations of a text, such as other models', the likeliest first; they speed
        up greedy decoding of a single text and change nothing but rounding. Raises ValueError for a beam, batch_size or
        keep out of range, and when there are more texts than targets or fewer.
        """
        check_beam(beam)
        batches.check_size(batch_size)
        wanted = batches.parts_kept(keep)
        if isinstance(guesses, str):
            raise ValueError("guesses must be a list of texts; got one text")
        jobs = batches.jobs(self.read, texts, targets)
        return batches.in_order(jobs, lambda batch: self._run(batch, beam, wanted, guesses), batch_size)

    def samples(self, text: str, count: int) -> tuple[str, ...]:
        """Other translations of a text, drawn at random (networks/decode.py); the same text and count give the same
        samples. Long samples are cut off.

        Raises TextError for a text that cannot be read, ValueError for a count that is not from 0 to MOST_SAMPLES.
        """
        within("count", count, 0, MOST_SAMPLES)
        source = torch.tensor([self.read(text).ids])
        sampled = decode.sample(self.model, source, count) if count else ()
        return tuple(self.tokenizer.spell(ids)[0] for ids in sampled)

    def hypotheses(self, text: str, beam: int = 5) -> tuple[Hypothesis, ...]:
        """The final hypotheses of beam search, at most `beam`, sorted by log-probability over length. The first is that
        of `trace(text, beam=beam)`. Two may have the same text in different pieces.

        Raises TextError for a text that cannot be read, ValueError for a beam out of range.
        """
        check_beam(beam)
        ended = decode.beams(self.model, torch.tensor([self.read(text).ids]), beam, end_loops=True)
        return tuple(Hypothesis(self.tokenizer.spell(ids)[0], log_prob) for log_prob, ids in ended)

    @torch.inference_mode()
    def log_prob(self, text: str, target: str | None = None) -> float:
        """`trace(text, target).log_prob`, up to rounding; for a given target in one pass of the network, without
        attention."""
        if target is None:
            return super().log_prob(text)
        source, wanted = torch.tensor([self.read(text).ids]), torch.tensor([self.read(target, "target").ids])
        inputs = torch.cat([wanted.new_tensor([[BOS]]), wanted[:, :-1]], dim=1)
        return probabilities.total(self.model(source, inputs)[0][0], wanted[0].tolist())

    def _unroll(self, jobs: Sequence[Job], beam: int, guesses: Sequence[str] = ()) -> Unrolled:
        """Decode a batch of texts, either all forced or none. For several forced texts, the logits are not yet
        computed."""
        source = pad([list(job.source.ids) for job in jobs])
        mask = source != PAD if len({len(job.source.ids) for job in jobs}) > 1 else None
        if wanted := [list(job.wanted.ids) for job in jobs if job.wanted is not None]:
            target = wanted
        elif beam > 1:
            target = [decode.beam(self.model, torch.tensor([job.source.ids]), beam, end_loops=True) for job in jobs]
        else:
            pieces = [_pieces(self.tokenizer, guess) for guess in guesses] if len(jobs) == 1 else ()
            return decode.greedy(self.model, source, mask, end_loops=True, guesses=pieces)
        if len(jobs) == 1:
            return decode.forced(self.model, source, pad(target))
        with OneDNN():
            return decode.forced(self.model, source, pad(target), mask, project=False)

    def _output(self, job: Job, ids: list[int]) -> tuple[str, tuple[Token, ...]]:
        """The target's text and tokens."""
        if job.target is None or job.wanted is None:
            return self.tokenizer.spell(ids)
        return job.target, job.wanted.tokens

    def _run(
        self, jobs: Sequence[Job], beam: int, keep: Collection[str], guesses: Sequence[str]
    ) -> Sequence[Trace | TraceStatistics]:
        unrolled = self._unroll(jobs, beam, guesses)
        ends = [decode.limit(len(job.source.ids)) if job.wanted is None else MOST_PIECES for job in jobs]
        steps = [min(pair) for pair in zip(unrolled.lengths(), ends)]  # each text has its own limit in a batch
        outputs = [self._output(job, row[:n]) for job, row, n in zip(jobs, unrolled.tokens.tolist(), steps)]
        weightless = replace(unrolled, cross=[], encoder=[], decoder=[])  # while log-probabilities are awaited
        read_out = partial(self._probabilities, weightless, steps, "maps" in keep)
        if "maps" not in keep:
            later = unrolled.logits is None  # readouts may wait for whoever reads: they are small
            log_probs: Sequence = (
                probabilities.when_read(read_out, len(jobs)) if later else [row.log_probs for row in read_out()]
            )
            return self._measured(jobs, unrolled, outputs, log_probs)
        of_sentences = read_out()
        alone = (unrolled.sentence(i, n, len(job.source.ids)) for i, (job, n) in enumerate(zip(jobs, steps)))
        traces = [self._trace(*parts) for parts in zip(jobs, alone, outputs, of_sentences)]
        if "statistics" not in keep:
            return traces
        return self._measured(jobs, unrolled, outputs, [row.log_probs for row in of_sentences], traces)

    def _probabilities(self, unrolled: Unrolled, steps: Sequence[int], alternatives: bool) -> list[TokenProbabilities]:
        """The probabilities in the traces of each sentence of a batch."""
        project = self.model.logits if unrolled.logits is None else lambda logits: logits
        spell = self.tokenizer.choice if alternatives else None
        mode: AbstractContextManager = OneDNN() if unrolled.logits is None else nullcontext()
        with mode:
            return probabilities.of_batch(unrolled.rows(), unrolled.tokens, steps, project, spell)

    def _measured(
        self,
        jobs: Sequence[Job],
        unrolled: Unrolled,
        outputs: Sequence[tuple],
        log_probs: Sequence,
        traces: Sequence[Trace | None] = (),
    ) -> list[TraceStatistics]:
        maps = {kind: [weights.numpy() for weights in getattr(unrolled, kind)] for kind in KINDS}
        statistics = measured.of_batch(maps, [(job.source.tokens, target) for job, (_, target) in zip(jobs, outputs)])
        return [
            TraceStatistics(
                **self._outline(job, *spelt), start=START, maps=shapes, values=values, probabilities=p, trace=trace
            )
            for job, spelt, (shapes, values), p, trace in zip(
                jobs, outputs, statistics, log_probs, traces or repeat(None)
            )
        ]

    def _trace(self, job: Job, unrolled: Unrolled, output: tuple, token_probabilities: TokenProbabilities) -> Trace:
        layers = ((kind, weights) for kind in KINDS if (weights := getattr(unrolled, kind)))
        maps = (AttentionMap.of_layers(kind, torch.cat(weights).numpy()) for kind, weights in layers)
        return Trace.of_model(
            **self._outline(job, *output),
            log_probs=token_probabilities.log_probs,
            alternatives=token_probabilities.alternatives,
            maps=tuple(itertools.chain.from_iterable(maps)),
        )

    def _outline(self, job: Job, translation: str, target: tuple[Token, ...]) -> dict:
        """The fields that `Trace` and `TraceStatistics` share, by name."""
        return dict(
            model=self.name,
            mechanism=self.mechanism,
            text=job.text,
            translation=translation,
            forced=job.wanted is not None,
            complete=target[-1].special,
            source=job.source.tokens,
            target=target,
            read_as=job.source.read_as,
            longest=self.longest if len(job.source.ids) > self.longest else 0,
        )
