"""The subject of an explanation: one text, and the probability of each token of the output (or of the label).

The output is always the same and the input varies: other source tokens, or other rows in place of their embeddings.
Letters: N inputs, T target tokens (1 for a label), S source tokens, E embedding width, V vocabulary or labels.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnviz import intervene
from attnviz.arguments import brief, checked
from attnviz.data.batching import pad
from attnviz.data.tokenizer import BOS, PAD
from attnviz.intervene import Change, StepEffect
from attnviz.intervene.changed import network_of
from attnviz.intervene.run import effects_on_labels, effects_together
from attnviz.models.classifier import Classifier
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel
from attnviz.models.huggingface.writing import WritingModel
from attnviz.models.model import TextError
from attnviz.models.translator import Translator
from attnviz.models.writer import Writer
from attnviz.networks import decode
from attnviz.networks.cpu import OneDNN
from attnviz.trace import Trace

# The last two where their family can be opened.
Explained = Translator | Classifier | Writer | EncoderDecoderModel | WritingModel
ROWS = 128  # inputs read at once; a few more or fewer take as long for each


def nothing() -> None:
    """The default of `on_step`: report nothing."""


@dataclass(frozen=True, eq=False)
class Subject:
    """source (S,), target (T,) : ids; of a classifier the target is the label's number, of a model that writes
    they are the prompt and what it wrote.

    trace : of the same text and output, for tokens and kinds of words. attention (T, S) : the mean over all heads and
    layers of cross-attention; of a classifier the pooling; of a model that writes the weights on the prompt, whose rows
    sum to less than 1. on_step : called repeatedly during long computations; an
    exception that it raises stops them.

    >>> faithfulness.subject(model, "The black dog runs.").attention.shape
    (6, 6)
    """

    model: Explained
    source: tuple[int, ...]
    target: tuple[int, ...]
    trace: Trace
    attention: np.ndarray
    on_step: Callable[[], None] = nothing

    __repr__ = brief

    @functools.cached_property
    def network(self) -> Any:
        """That of the model."""
        return self.model.model

    @property
    def vectors(self) -> Tensor:
        """(1, S, E): rows of the embedding that stand for the source."""
        return self.network.embedding(torch.tensor([self.source]))

    def best(self, logits: Tensor) -> Tensor:
        """logits (..., V) -> the first choice (...)."""
        return decode.best(0, logits.flatten(0, -2)).unflatten(0, logits.shape[:-1])

    @torch.inference_mode()
    def log_probs(self, sources: Sequence[Sequence[int]]) -> Tensor:
        """Other sources (N of them, ids, of any lengths) -> log-probabilities of the target's tokens (N, T)."""
        count = len(self.target)
        rows, steps = np.divmod(np.arange(len(sources) * count), count)
        return self.log_probs_at(sources, rows.tolist(), steps.tolist()).reshape(-1, count)

    @torch.inference_mode()
    def log_probs_at(self, sources: Sequence[Sequence[int]], rows: Sequence[int], steps: Sequence[int]) -> Tensor:
        """Other sources (of any lengths) -> (N,) log-probability of the target token `steps[n]` given source `rows[n]`.

        Sources with early steps come first, so that no batch is decoded further than needed.
        """
        last: dict[int, int] = {}
        for row, step in zip(rows, steps, strict=True):
            last[row] = max(step, last.get(row, 0))
        order = sorted(last, key=last.__getitem__)
        place = {row: number for number, row in enumerate(order)}
        places = torch.tensor([place[row] for row in rows])
        chosen, result = torch.tensor(steps), torch.empty(len(places), dtype=self.vectors.dtype)
        for start in range(0, len(order), ROWS):
            self.on_step()
            together = [list(sources[row]) for row in order[start : start + ROWS]]
            ids = pad(together)
            mask = torch.arange(ids.shape[1]) < torch.tensor([[len(row)] for row in together])
            here = (places >= start) & (places < start + ROWS)
            at = places[here] - start, chosen[here]
            with OneDNN():
                vectors = self.network.embedding(ids)
                result[here] = self._log_probs(vectors, None if mask.all() else mask, *at)
        return result

    def of_vectors(self, vectors: Tensor, steps: int | Tensor) -> Tensor:
        """Rows in place of the source's embeddings (N, S, E), each with a step (N,), or all with the same one ->
        log-probability of that target token (N,); differentiable."""
        count = len(vectors)
        steps = torch.full((count,), steps) if isinstance(steps, int) else steps
        return self._log_probs(vectors, None, torch.arange(count), steps)

    def _log_probs(self, vectors: Tensor, mask: Tensor | None, rows: Tensor, steps: Tensor) -> Tensor:
        """(N,): log-probabilities of the target's tokens `steps` (N,) when the source is that of `rows` (N,)."""
        logits = self.logits(vectors, mask, rows, steps)
        target = torch.tensor(self.target)[steps]
        return logits.log_softmax(-1).gather(-1, target.unsqueeze(-1)).squeeze(-1)

    def logits(self, vectors: Tensor, mask: Tensor | None, rows: Tensor, steps: Tensor) -> Tensor:
        """vectors (B, S, E), mask (B, S), rows and steps (N,) -> logits (N, V) of these rows at these steps."""
        raise TypeError(f"{type(self).__name__} must say what its model makes of a source")

    @staticmethod
    def produced(model: Any, sources: Sequence[Sequence[int]], traces: Sequence[Trace]) -> list[tuple[int, ...]]:
        """The target of each source."""
        raise TypeError("a subject must say what its model produces")

    @staticmethod
    def effects_together(subjects: Sequence[Any], change: Change, rows: int = 1) -> Iterator[StepEffect]:
        """Attention changed at each step alone, as in `intervene.effects`; for a classifier its pooling, the
        only step. The subjects must be of one model, with sources of one length."""
        raise TypeError("a subject must say how its attention is changed")

    def effects(self, change: Change, rows: int = 1) -> Iterator[StepEffect]:
        """The same for this subject alone, as in `intervene.effects`."""
        for step, weights, plain, changed in self.effects_together([self], change, rows):
            self.on_step()
            yield StepEffect(step, tuple(layer[0] for layer in weights), plain[0], changed[:, 0])


class Translated(Subject):
    """A translation."""

    model: Translator

    @property
    def first(self) -> int:
        """Id of the token that the decoder reads first."""
        return BOS

    @staticmethod
    def produced(model: Translator, sources: Sequence[Sequence[int]], traces: Sequence[Trace]) -> list[tuple[int, ...]]:
        """The ids of each target: the forced text, or the greedy translation."""
        if traces and traces[0].forced:
            return [tuple(model.read(trace.translation, "target").ids) for trace in traces]
        ids = []
        for start in range(0, len(sources), ROWS):
            source = pad([list(row) for row in sources[start : start + ROWS]])
            mask = source != PAD
            translations = decode.greedy(
                model.model, source, None if mask.all() else mask, end_loops=True
            ).tokens.tolist()
            ids += [tuple(row[: len(trace.target)]) for row, trace in zip(translations, traces[start : start + ROWS])]
        return ids

    def logits(self, vectors, mask, rows, steps):
        network = self.network
        inputs = torch.tensor([[self.first, *self.target[: int(steps.max())]]]).expand(len(vectors), -1)
        readouts = network.readouts(network.encode_vectors(vectors, mask), inputs)
        return network.logits(readouts[rows, steps])

    @staticmethod
    def effects_together(subjects, change, rows=1):
        sources, targets = zip(*((subject.source, subject.target) for subject in subjects))
        return effects_together(subjects[0].network, sources, targets, change, rows)


class Foreign(Translated):
    """The output of an encoder–decoder of the transformers library."""

    model: Any  # an EncoderDecoderModel

    @functools.cached_property
    def network(self):
        return self.model.opened_network()

    @property
    def first(self):
        return self.network.bos

    def best(self, logits):
        return logits.argmax(-1)

    @staticmethod
    def produced(model, sources, traces):
        return [tuple(model.target_ids(trace)) for trace in traces]


class Labelled(Subject):
    """A label."""

    model: Classifier

    @staticmethod
    def produced(model: Classifier, sources: Sequence[Sequence[int]], traces: Sequence[Trace]) -> list[tuple[int, ...]]:
        """The number of each label."""
        return [(model.labels.index(trace.translation),) for trace in traces]

    def best(self, logits):
        return logits.argmax(-1)

    def logits(self, vectors, mask, rows, steps):
        return self.network.judge_vectors(vectors, mask).logits[rows]

    @staticmethod
    def effects_together(subjects, change, rows=1):
        sources = [subject.source for subject in subjects]
        yield effects_on_labels(subjects[0].network, sources, change, rows)


@dataclass(frozen=True, eq=False, repr=False)
class Continued(Subject):
    """What a model wrote after a prompt. Only the prompt varies. written : the trace of both."""

    model: Writer | WritingModel
    written: Trace = field(kw_only=True)

    @functools.cached_property
    def network(self):
        return network_of(self.model)

    @property
    def begun(self) -> list[int]:
        """The ids that the model reads before the prompt."""
        return [BOS] if isinstance(self.model, Writer) else []

    def best(self, logits):
        never = decode.NEVER if isinstance(self.model, Writer) else ()
        return logits.index_fill(-1, torch.tensor(never, dtype=torch.long), -torch.inf).argmax(-1)

    def logits(self, vectors, mask, rows, steps):
        """Prompts of one length are read together."""
        lengths = torch.full((len(vectors),), vectors.shape[1]) if mask is None else mask.sum(1)
        begun, wrote = (
            self.network.embedding(torch.tensor([ids], dtype=torch.long))
            for ids in (self.begun, self.target[: int(steps.max())])
        )
        parts, places = [], []
        for length in lengths.unique().tolist():
            texts_here, rows_here = (torch.nonzero(which == length)[:, 0] for which in (lengths, lengths[rows]))
            if len(rows_here):
                texts = [part.expand(len(texts_here), -1, -1) for part in (begun, vectors[texts_here, :length], wrote)]
                readouts = self.network.readouts_of(torch.cat(texts, dim=1))
                at = torch.searchsorted(texts_here, rows[rows_here])
                parts.append(self.network.logits(readouts[at, len(self.begun) + length - 1 + steps[rows_here]]))
                places.append(rows_here)
        return torch.cat(parts)[torch.cat(places).argsort()]

    @staticmethod
    def effects_together(subjects, change, rows=1):
        """Of one subject: its self-attention is changed in the row of each token that was written, alone."""
        (subject,) = subjects
        given = subject.written.given
        effects = intervene.written_effects(subject.model, subject.written, change, rows=rows, first=given)
        for step, weights, plain, changed in effects:
            yield StepEffect(step - given, tuple(layer[None] for layer in weights), plain[None], changed[:, None])


@checked
def subject(model: Explained, text: str, target: str | Trace | None = None) -> Subject:
    """The subject for a text. target : the output to explain; None for the model's own (greedy translation, best
    label). For a model that writes it is the trace of what it wrote after the text.

    ValueError for a model without attention, errors as of `trace`, TextError when the output is empty.

    >>> faithfulness.subject(model, "The black dog runs.").trace.translation
    'Le chien noir court.'
    """
    if isinstance(model, Writer | WritingModel):
        return _continued(model, target)
    if isinstance(target, Trace):
        raise ValueError(f"target must be a text for {model.name}, which does not write on; got a trace")
    source, trace = model.read(text).ids, model.trace(text, target)
    return _subject(model, source, _kind(model).produced(model, [source], [trace])[0], trace)


@checked
def subjects(model: Explained, texts: Sequence[str]) -> list[Subject | TextError]:
    """`subject` of each text, with the model's own output; a text without a subject yields its TextError.

    The texts are translated in batches, so the numbers agree with `subject` up to rounding.

    >>> [subject.trace.translation for subject in faithfulness.subjects(model, ["The dog runs.", "A man reads."])]
    ['Le chien court.', 'Un homme lit.']
    """
    traces = list(model.traces(texts))
    sound = [trace for trace in traces if isinstance(trace, Trace)]
    sources = [model.read(trace.text).ids for trace in sound]
    outputs = zip(sound, sources, _kind(model).produced(model, sources, sound))
    made = {id(trace): (source, produced) for trace, source, produced in outputs}
    return [_subject_or_error(model, trace, made.get(id(trace))) for trace in traces]


def _subject_or_error(model: Explained, trace: Any, ids: tuple | None) -> Subject | TextError:
    """ids : of source and target; None where the trace is a TextError."""
    try:
        return trace if ids is None else _subject(model, ids[0], ids[1], trace)
    except TextError as error:
        return error


def _kind(model: Explained) -> type[Subject]:
    if isinstance(model, EncoderDecoderModel):
        return Foreign
    return Labelled if model.labels else Translated


def _continued(model: Writer | WritingModel, wrote: Any) -> Subject:
    """TextError if nothing was written."""
    if not isinstance(wrote, Trace):
        raise ValueError(f"target must be a trace of what {model.name} wrote; got {type(wrote).__name__}")
    ids, given, count = model.ids(wrote), wrote.given, len(wrote.source)
    if len(wrote.target) == given or count < 2:
        raise TextError(f"{model.name} needs a prompt of two tokens, and one that it wrote after it, to be tested")
    weights = np.concatenate([attention.weights for attention in wrote.maps]).mean(0, dtype=np.float64)
    trace = replace(
        wrote,
        target=wrote.target[given:],
        log_probs=wrote.log_probs[given:],
        alternatives=wrote.alternatives[given:],
        maps=(),
    )
    return Continued(
        model,
        tuple(ids[:count]),
        tuple(ids[count:]),
        trace,
        weights[given:, given + 1 - count :][:, :count],
        written=wrote,
    )


def _subject(model, source: Sequence[int], produced: tuple[int, ...], trace: Trace) -> Subject:
    """TextError if the output is empty; ValueError if the model has no attention."""
    if not trace.translation.strip():
        raise TextError(f"{model.name} produces no text here, so there is nothing to explain; give it a target")
    if len(source) < 2:
        raise TextError(f"{model.name} reads the text as one token, and none can be left out; type a longer text")
    cross = [attention.weights for attention in trace.maps if attention.kind == "cross"]
    if not cross:
        raise ValueError(f"model must have attention; {model.name} has none to test")
    return _kind(model)(model, tuple(source), produced, trace, np.concatenate(cross).mean(0, dtype=np.float64))
