"""Knowledge distillation: a classifier that learns what the mean of trained ones says, of sentences and of n-grams of them.

Hinton, Vinyals & Dean 2015, sec. 2. The n-grams stand for text without labels, of which a small model needs much (n-gram
sampling, Tang et al. 2019, sec. 3.3). The teachers speak once, before training, without dropout.
Letters: M teachers, N texts, C labels.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from attnviz.data.readers import Pairs
from attnviz.data.length_filter import fits
from attnviz.data.tokenizer import Text
from attnviz import mechanisms
from attnviz.mechanisms import LABELS
from attnviz.models import checkpoint_files, classifier
from attnviz.models.classifier import Classifier
from attnviz.training.classifier_trainer import LabelRun
from attnviz.training.recipes import Settings


def check(plan: Settings, teachers: Sequence[Path]) -> None:
    """ValueError for settings that do not go with these folders of checkpoints as teachers, or with none; CheckpointError."""
    if plan.ngrams and not teachers:
        raise ValueError(f"ngrams are what teachers speak of, and there are none; leave ngrams={plan.ngrams} out")
    if teachers and not mechanisms.find(plan.mechanism).classifies:
        raise ValueError(
            f"only classifiers ({', '.join(mechanisms.CLASSIFIERS)}) learn from teachers; {plan.mechanism} is none"
        )
    if teachers and plan.consistency:
        raise ValueError(f"consistency must be 0 with teachers; got {plan.consistency}")
    for folder in teachers:
        mechanism = checkpoint_files.read_config(*checkpoint_files.locate(folder)).mechanism
        if not mechanisms.find(mechanism).classifies:
            raise ValueError(
                f"a teacher must be a classifier ({', '.join(mechanisms.CLASSIFIERS)}); {folder} holds {mechanism}"
            )


def ngrams(sentences: Sequence[str], count: int, seed: int) -> list[str]:
    """Up to `count` n-grams of words out of each sentence, drawn at random, short ones more often; none twice, no whole sentence."""
    draw, found, whole = (
        random.Random(f"parts/{seed}"),
        {},
        set(sentences),
    )  # the draw that the model that ships has seen
    for words in map(str.split, sentences):
        for _ in range(count if len(words) > 1 else 0):
            length = int(len(words) ** draw.random())
            first = draw.randrange(len(words) - length + 1)
            found[" ".join(words[first : first + length])] = None
    return [ngram for ngram in found if ngram not in whole]


def soft_targets(teachers: Sequence[Classifier], texts: Sequence[str]) -> Tensor:
    """The labels' probabilities by the mean of the teachers' logits, (N, C): the normalised geometric mean of what each says.

    The logits of each are first brought to one spread, the mean of all, so that a sure teacher has no more say: a temperature
    for each teacher.
    """
    speaking = tqdm(teachers, desc="teachers", unit="model", leave=False)
    logits = torch.stack([classifier.logits(teacher.model, teacher.text, texts) for teacher in speaking])  # (M, N, C)
    logits = logits - logits.mean(dim=-1, keepdim=True)
    spread = logits.square().mean(dim=(1, 2), keepdim=True).sqrt()  # (M, 1, 1)
    even = logits / spread.clamp_min(torch.finfo(spread.dtype).tiny) * spread.mean()  # 0 of a teacher that says nothing
    return even.mean(dim=0).softmax(dim=-1)


class TaughtRun(LabelRun):
    """A run that learns from what teachers say of the sentences and of n-grams of them; which labels they have, it is not told.

    ValueError when there is nothing that all teachers read.
    """

    def __init__(
        self,
        plan: Settings,
        text: Text,
        pairs: Pairs,
        device: str,
        compile: bool = True,
        teachers: Sequence[Classifier] = (),
    ):
        sentences = [sentence for sentence, _ in pairs]
        texts = _read_by_all(
            sentences + ngrams(sentences, plan.ngrams, plan.seed), [text, *(teacher.text for teacher in teachers)]
        )
        super().__init__(
            plan, text, [(one, LABELS[0]) for one in texts], device, compile
        )  # a label that nothing looks at
        self.targets = soft_targets(teachers, texts).to(device)

    def objective(self, batch: list[int]) -> Tensor:
        """The cross-entropy, nats a text, with the teachers' soft targets. Its gradient is eq. 2 of Hinton et al. 2015, T = 1."""
        logits = self._logits(*self.tensors(batch)).squeeze(1)  # (texts of the batch, C)
        targets = self.targets[torch.tensor(batch, device=self.device)]
        return F.cross_entropy(logits.float(), targets, label_smoothing=self.plan.label_smoothing)


def _read_by_all(texts: list[str], tokenizers: Sequence[Text]) -> list[str]:
    """The texts that are neither nothing nor too long for any of the tokenizers; how many are left out is said."""
    read = [all(row) for row in zip(*(fits(texts, tokenizer) for tokenizer in tokenizers))]
    kept, left_out = ([one for one, fit in zip(texts, read) if fit is wanted] for wanted in (True, False))
    if not kept:
        raise ValueError("no sentence of train is short enough for all teachers; give others, or shorter ones")
    if left_out:
        tqdm.write(
            f"{len(left_out)} of {len(texts)} sentences and n-grams are too long for a teacher, or have nothing visible, and are "
            f"left out; the first is {left_out[0][:80]!r}",
            file=sys.stderr,
        )
    return kept
