"""The subject of an explanation: one text, and the probability of each token of the output (or of the label).

The output is always the same and the input varies: other source tokens, or other rows in place of their embeddings.
Letters: N inputs, T target tokens (1 for a label), S source tokens, E embedding width, V vocabulary or labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnviz.arguments import checked
from attnviz import intervene
from attnviz.data.batching import pad
from attnviz.data.tokenizer import BOS, PAD
from attnviz.intervene import Change, StepEffect
from attnviz.models.classifier import Classifier
from attnviz.models.model import TextError
from attnviz.models.translator import Translator
from attnviz.networks import decode
from attnviz.trace import Trace

ROWS = 64  # inputs read at once


@dataclass(frozen=True, eq=False)
class Subject:
    """source (S,), target (T,) : ids; of a classifier the target is the label's number.

    trace : of the same text and output, for tokens and kinds of words. attention (T, S) : the mean over all heads and
    layers of cross-attention; of a classifier the pooling.
    """

    model: Translator | Classifier
    source: tuple[int, ...]
    target: tuple[int, ...]
    trace: Trace
    attention: np.ndarray

    @property
    def vectors(self) -> Tensor:
        """(1, S, E): rows of the embedding that stand for the source."""
        return self.model.model.embedding(torch.tensor([self.source]))

    @torch.inference_mode()
    def log_probs(self, sources: Sequence[Sequence[int]]) -> Tensor:
        """Other sources (N of them, ids, of any lengths) -> log-probabilities of the target's tokens (N, T)."""
        parts = []
        for start in range(0, len(sources), ROWS):
            ids = pad([list(row) for row in sources[start : start + ROWS]])
            mask = None if all(len(row) == ids.shape[1] for row in sources[start : start + ROWS]) else ids != PAD
            parts.append(self._chosen(self.model.model.embedding(ids), mask, len(self.target)))
        return torch.cat(parts)

    def of_vectors(self, vectors: Tensor, step: int) -> Tensor:
        """Rows in place of the source's embeddings (N, S, E) -> log-probability of target token `step` (N,);
        differentiable."""
        return self._chosen(vectors, None, step + 1)[:, step]

    def _chosen(self, vectors: Tensor, mask: Tensor | None, steps: int) -> Tensor:
        """Log-probabilities (N, steps) of the first target tokens."""
        logits = self.logits(vectors, mask, steps)
        target = torch.tensor(self.target[:steps]).expand(len(vectors), -1)
        return logits.log_softmax(-1).gather(-1, target.unsqueeze(-1)).squeeze(-1)

    def logits(self, vectors: Tensor, mask: Tensor | None, steps: int) -> Tensor:
        """(N, steps, V)."""
        raise TypeError(f"{type(self).__name__} must say what its model makes of a source")

    def effects(self, change: Change, rows: int = 1) -> Iterator[StepEffect]:
        """Attention changed at each step alone, as `intervene.effects`; the pooling, where there is one step."""
        raise TypeError(f"{type(self).__name__} must say how its attention is changed")


class Translated(Subject):
    """A translation."""

    @staticmethod
    def produced(model: Translator, source: Sequence[int], trace: Trace) -> tuple[int, ...]:
        """The ids of the target: of the text that was forced, or of the greedy translation."""
        if trace.forced:
            return tuple(model.read(trace.translation, "target").ids)
        return tuple(decode.greedy(model.model, torch.tensor([source]), end_loops=True).tokens[0].tolist())

    def logits(self, vectors, mask, steps):
        network = self.model.model
        inputs = torch.tensor([[BOS, *self.target[: steps - 1]]]).expand(len(vectors), -1)
        return network.force(network.encode_vectors(vectors, mask), inputs)[0]

    def effects(self, change, rows=1):
        return intervene.effects(self.model.model, self.source, self.target, change, rows)


class Labelled(Subject):
    """A label."""

    @staticmethod
    def produced(model: Classifier, source: Sequence[int], trace: Trace) -> tuple[int, ...]:
        """The number of the label."""
        return (model.labels.index(trace.translation),)

    def logits(self, vectors, mask, steps):
        return self.model.model.judge_vectors(vectors, mask).logits.unsqueeze(1)

    def effects(self, change, rows=1):
        yield intervene.effect_on_label(self.model.model, self.source, change, rows)


@checked
def subject(model: Translator | Classifier, text: str, target: str | None = None) -> Subject:
    """The subject for a text. target : the output to explain; None for the model's own (greedy translation, best
    label).

    ValueError for a model without attention, errors as of `trace`, TextError when the output is empty.
    """
    source = model.read(text).ids
    trace, kind = model.trace(text, target), Labelled if model.labels else Translated
    if not trace.translation.strip():
        raise TextError(f"{model.name} says nothing of this text that could be explained; give it a target")
    cross = [attention.weights for attention in trace.maps if attention.kind == "cross"]
    if not cross:
        raise ValueError(f"model must attend; {model.name} has no attention to judge")
    return kind(
        model,
        tuple(source),
        kind.produced(model, source, trace),
        trace,
        np.concatenate(cross).mean(0, dtype=np.float64),
    )
