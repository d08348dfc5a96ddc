"""Knowledge distillation: a classifier that learns what the mean of trained ones says, of sentences and of parts of them.

Hinton, Vinyals & Dean 2015, at a temperature of 1. The parts stand for text without labels, of which a small model needs
much (Tang et al. 2019, sec. 3.3). The teachers speak once, before training, without dropout.
Letters: M teachers, N texts, B texts of a batch, C labels.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from attnviz import checkpoints, classify, corpora, files
from attnviz.label_run import LabelRun
from attnviz.mechanisms import CLASSIFIERS, LABELS
from attnviz.recipes import Settings
from attnviz.text import Text

Teacher = tuple[nn.Module, Text]  # in evaluation mode, with the tokenizer that it reads by


def load(folder: Path) -> Teacher:
    """The classifier in a folder root/pair/mechanism. Raises CheckpointError, and ValueError when it is no classifier."""
    name, root = files.place(folder)
    model, config = checkpoints.load_model(name, root)
    if config["mechanism"] not in CLASSIFIERS:
        raise ValueError(f"a teacher must be a classifier ({', '.join(CLASSIFIERS)}); {folder} holds {config['mechanism']}")
    return model.eval(), checkpoints.load_text(name.split("/")[0], root)


def parts(sentences: Sequence[str], count: int, seed: int) -> list[str]:
    """Up to `count` runs of words out of each sentence, drawn at random, short ones more often; none twice, no whole sentence."""
    draw, found = random.Random(f"parts/{seed}"), {}
    for words in map(str.split, sentences):
        for _ in range(count if len(words) > 1 else 0):
            length = int(len(words) ** draw.random())
            first = draw.randrange(len(words) - length + 1)
            found[" ".join(words[first : first + length])] = None
    whole = set(sentences)
    return [part for part in found if part not in whole]


def said(teachers: Sequence[Teacher], texts: Sequence[str]) -> Tensor:
    """The labels' probabilities by the mean of the teachers' logits: (N, C).

    The logits of each are first brought to the spread that all have in the mean, so that a sure teacher has no more say.
    """
    speaking = tqdm(teachers, desc="teachers", unit="model", leave=False)
    logits = torch.stack([classify.logits(model, text, texts) for model, text in speaking])  # (M, N, C)
    logits = logits - logits.mean(dim=-1, keepdim=True)
    spread = logits.square().mean(dim=(1, 2), keepdim=True).sqrt()  # (M, 1, 1)
    return (logits * spread.mean() / spread).mean(dim=0).softmax(dim=-1)


class TaughtRun(LabelRun):
    """A run that learns from what teachers say of the sentences and of parts of them; which label they have, it is not told.

    ValueError when the settings ask for consistency, which is between two passes on labels.
    """

    def __init__(self, plan: Settings, text: Text, pairs: corpora.Pairs, device: str, compile: bool = True, teachers: Sequence[Teacher] = ()):
        if plan.consistency:
            raise ValueError(f"consistency must be 0 with teachers; got {plan.consistency}")
        sentences = [sentence for sentence, _ in pairs]
        texts = sentences + parts(sentences, plan.parts, plan.seed)
        shares = said(teachers, texts)
        labels = [LABELS[i] for i in shares.argmax(dim=-1).tolist()]
        super().__init__(plan, text, list(zip(texts, labels)), device, compile)
        self.shares = shares.to(device)

    def objective(self, batch: list[int]) -> Tensor:
        """The cross-entropy (nats a text) between what the teachers say and what the model says. Hinton et al. 2015, eq. 2."""
        source, _ = self.tensors(batch)
        logits = self.logits(self.working, source, source).squeeze(1)  # (B, C)
        return F.cross_entropy(logits.float(), self.shares[batch], label_smoothing=self.plan.label_smoothing)
