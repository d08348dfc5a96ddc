"""A trained classifier with its tokenizer and card: text in, Trace out; and the labels of many sentences."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from attnviz.data import batching
from attnviz.data.tokenizer import PAD, SubwordTokenizer
from attnviz.models import batches, checkpoint_files, probabilities
from attnviz.models.model import TextError, Trained
from attnviz.networks.classifier import SelfAttention
from attnviz.trace import AttentionMap, Token, Trace

BATCH = 4000  # pieces classified at once, padding included


class Classifier(batches.OneByOne, Trained):
    """A checkpoint that gives a sentence one of the labels of its task."""

    model: SelfAttention

    @classmethod
    def load(cls, name: str, root: Path | None = None, tokenizer: SubwordTokenizer | None = None) -> Self:
        """As `Trained.load`. Raises CheckpointError also where its task does not have as many labels."""
        classifier = super().load(name, root, tokenizer)
        if (count := classifier.model.output.out_features) != len(classifier.labels):
            raise checkpoint_files.CheckpointError(
                f"{name}: the model chooses from {count} labels and the task {classifier.pair} has "
                f"{len(classifier.labels)}; they do not belong together"
            )
        return classifier

    def trace(self, text: str, target: str | None = None) -> Trace:
        """Classify a text, with all attention weights. The target of the trace is one token, the label: the most
        probable one, or `target`.

        translation, log_probs   the label, and the log of its probability; `alternatives` has every label's
        cross map                the pooling: how much of each token is in the vector that decides
        encoder maps             each layer's self-attention

        Raises TextError for an empty or too long text, and for an unknown label.
        """
        if target not in (None, *self.labels):
            raise TextError(f"target must be one of {', '.join(self.labels)}; got {target!r:.80}")
        source = self.read(text)
        with torch.inference_mode():
            verdict = self.model(torch.tensor([source.ids]))
        given = int(verdict.logits.argmax()) if target is None else self.labels.index(target)
        token_probabilities = probabilities.of_sentence(verdict.logits, [given], self.output, len(self.labels))
        maps = [AttentionMap("cross", 0, verdict.pooling.numpy())]  # (1, 1, S): one head, one query
        maps += [AttentionMap("encoder", layer, weights[0].numpy()) for layer, weights in enumerate(verdict.maps)]
        label = Token(self.labels[given], 0, len(self.labels[given]), word=0)
        return Trace(
            model=self.name,
            mechanism=self.mechanism,
            text=text,
            translation=label.text,
            forced=target is not None,
            source=source.tokens,
            target=(label,),
            log_probs=token_probabilities.log_probs,
            alternatives=token_probabilities.alternatives,
            maps=tuple(maps),
        )

    def check_beam(self, beam: int) -> None:
        """ValueError for any beam but 1."""
        if beam != 1:
            raise ValueError(f"beam must be 1 for {self.name}, which chooses a label and writes no text; got {beam}")


@torch.inference_mode()
def logits(model: SelfAttention, tokenizer: SubwordTokenizer, sentences: Sequence[str]) -> Tensor:
    """The logits of a network in evaluation mode for `sentences`, on the CPU: (number of sentences, labels)."""
    ids, device = tokenizer.batch_ids(list(sentences)), next(model.parameters()).device
    result = torch.empty(len(ids), model.output.out_features)
    for chosen in batching.batches([len(row) for row in ids], BATCH, random.Random(0)):
        source = batching.pad([ids[i] for i in chosen]).to(device)
        result[chosen] = model(source, source != PAD).logits.float().cpu()
    return result


def predict(
    model: SelfAttention, tokenizer: SubwordTokenizer, labels: Sequence[str], sentences: Sequence[str]
) -> list[str]:
    """The most probable of `labels` for each sentence."""
    return [labels[i] for i in logits(model, tokenizer, sentences).argmax(dim=-1).tolist()]
