"""The trainers of a classifier: each sentence has one label, or the mean output of trained classifiers (distillation).

Distillation is of Hinton, Vinyals & Dean 2015, sec. 2, on sentences and on n-grams of them. The n-grams serve as
unlabelled text; a small model needs much of it (n-gram sampling, Tang et al. 2019, sec. 3.3). The teachers run once,
before training, without dropout. Letters: B sentences, S pieces, C labels; M teachers, N texts.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from attnviz import mechanisms
from attnviz.data.corpora import fits
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import PAD, SubwordTokenizer
from attnviz.models import checkpoint_files, classifier
from attnviz.models.classifier import Classifier
from attnviz.training.recipes import TrainingConfig
from attnviz.training.trainer import Example, Trainer


class ClassifierTrainer(Trainer):
    """Trains a classifier on pairs of a sentence and its label. Letters: B sentences, S pieces, C labels.

    labels : those of the task, in the order of the network's outputs.
    """

    padding = -1  # every target is one label, and none is missing

    def __init__(
        self,
        config: TrainingConfig,
        tokenizer: SubwordTokenizer,
        pairs: Pairs,
        device: str,
        compile: bool = True,
        *,
        labels: Sequence[str],
    ):
        self.labels = tuple(labels)
        super().__init__(config, tokenizer, pairs, device, compile)

    def encode(self, pairs: Pairs, tokenizer: SubwordTokenizer) -> list[Example]:
        """Each pair as the ids of its sentence and, alone in a list, the index of its label."""
        sentences = tokenizer.batch_ids([sentence for sentence, _ in pairs])
        return [(ids, [self.labels.index(label)]) for ids, (_, label) in zip(sentences, pairs)]

    @staticmethod
    def logits(model: Any, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S) -> logits (B, 1, C) of the labels; the target is not used."""
        return model(source, source != PAD).logits.unsqueeze(1)

    def predict(self, model: Any, tokenizer: SubwordTokenizer, sentences: list[str]) -> list[str]:
        """The most probable label of each sentence."""
        return classifier.predict(model, tokenizer, self.labels, sentences)


def check_teachers(config: TrainingConfig, teachers: Sequence[Path]) -> None:
    """Can a model with this configuration learn from these checkpoints? ValueError, CheckpointError when it cannot."""
    kinds = ", ".join(name for name, mechanism in mechanisms.ALL.items() if mechanism.classifies)
    if config.ngrams and not teachers:
        raise ValueError(f"ngrams must be 0 without teachers; got {config.ngrams}")
    if teachers and not mechanisms.find(config.mechanism).classifies:
        raise ValueError(f"only a classifier ({kinds}) can learn from teachers; {config.mechanism} is not one")
    if teachers and config.consistency:
        raise ValueError(f"consistency must be 0 with teachers; got {config.consistency}")
    for folder in teachers:
        mechanism = checkpoint_files.read_config(*checkpoint_files.locate(folder)).mechanism
        if not mechanisms.find(mechanism).classifies:
            raise ValueError(f"a teacher must be a classifier ({kinds}); {folder} holds {mechanism}")


def ngrams(sentences: Sequence[str], count: int, seed: int) -> list[str]:
    """Up to `count` n-grams of words from each sentence, drawn at random, short ones more often.

    No n-gram comes twice, and none is a whole sentence.
    """
    generator, different, whole = random.Random(f"parts/{seed}"), {}, set(sentences)  # the seed of the shipped model
    for words in map(str.split, sentences):
        for _ in range(count if len(words) > 1 else 0):
            length = int(len(words) ** generator.random())
            first = generator.randrange(len(words) - length + 1)
            different[" ".join(words[first : first + length])] = None
    return [ngram for ngram in different if ngram not in whole]


def soft_targets(teachers: Sequence[Classifier], texts: Sequence[str]) -> Tensor:
    """Probabilities (N, C) of the labels: softmax of the mean of the teachers' logits, that is the normalised geometric
    mean.

    All teachers' logits are first scaled to their mean root mean square, so that a confident teacher does not count
    more. This amounts to one temperature per teacher.
    """
    bar = tqdm(teachers, desc="teachers", unit="model", leave=False)
    logits = torch.stack([classifier.logits(teacher.model, teacher.tokenizer, texts) for teacher in bar])  # (M, N, C)
    logits = logits - logits.mean(dim=-1, keepdim=True)
    scale = logits.square().mean(dim=(1, 2), keepdim=True).sqrt()  # (M, 1, 1)
    scaled = logits / scale.clamp_min(torch.finfo(scale.dtype).tiny) * scale.mean()  # 0 for a teacher with no opinion
    return scaled.mean(dim=0).softmax(dim=-1)


class DistillationTrainer(ClassifierTrainer):
    """Trains a classifier on its teachers' soft targets for the sentences and their n-grams. It never sees the labels.

    ValueError if no sentence is short enough for all teachers, or a teacher has other labels.
    """

    def __init__(
        self,
        config: TrainingConfig,
        tokenizer: SubwordTokenizer,
        pairs: Pairs,
        device: str,
        compile: bool = True,
        *,
        labels: Sequence[str],
        teachers: Sequence[Classifier],
    ):
        for teacher in teachers:
            if tuple(teacher.labels) != tuple(labels):
                raise ValueError(
                    f"a teacher must choose from the labels of the task, {', '.join(labels)}; {teacher.name} chooses "
                    f"from {', '.join(teacher.labels)}"
                )
        sentences = [sentence for sentence, _ in pairs]
        texts = sentences + ngrams(sentences, config.ngrams, config.seed)
        texts = _readable_by_all(texts, [tokenizer, *(teacher.tokenizer for teacher in teachers)])
        unused = [(text, labels[0]) for text in texts]
        super().__init__(config, tokenizer, unused, device, compile, labels=labels)
        self.targets = soft_targets(teachers, texts).to(device)

    def loss(self, indices: list[int]) -> Tensor:
        """Cross-entropy (nats a text) with the soft targets. Its gradient is Hinton et al. 2015, eq. 2, with T = 1."""
        source, target = self.batches.tensors(indices, self.device)
        logits = self.logits(self.optimizer.working, source, target).squeeze(1)  # (texts of the batch, C)
        targets = self.targets[torch.tensor(indices, device=self.device)]
        return F.cross_entropy(logits.float(), targets, label_smoothing=self.config.label_smoothing)


def _readable_by_all(texts: list[str], tokenizers: Sequence[SubwordTokenizer]) -> list[str]:
    """The texts that have at least one and not too many pieces in every tokenizer; prints how many are left out."""
    fitting = [all(row) for row in zip(*(fits(texts, tokenizer) for tokenizer in tokenizers))]
    readable = [text for text, fit in zip(texts, fitting) if fit]
    left_out = [text for text, fit in zip(texts, fitting) if not fit]
    if not readable:
        raise ValueError("no training sentence is short enough for all teachers; give shorter sentences")
    if left_out:
        tqdm.write(
            f"{len(left_out)} of {len(texts)} sentences and n-grams are left out: too long for a teacher, or without a "
            f"visible character; the first is {left_out[0][:80]!r}",
            file=sys.stderr,
        )
    return readable
