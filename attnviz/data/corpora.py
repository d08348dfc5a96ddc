"""The sentences that a model is trained and measured on: those of a task, or a user's own."""

import random
import re
from dataclasses import dataclass, replace
from pathlib import Path

from attnviz.data import everyday, tasks
from attnviz.data.readers import Pairs
from attnviz.data.styles import UNSPACED


@dataclass(frozen=True)
class Corpus:
    """Parallel sentences, or sentences with their labels, and the files (name -> SHA-256) they came from.

    tests : name -> pairs. metric : chooses the best epoch, a key of metrics.METRICS. style : how the text is written,
    one of styles.STYLES. labelled : the second of a pair is a label, or the part of the data that the text is
    from, and no text. parts : the part of the data that each pair of val is from; () when there is one part.
    """

    train: Pairs
    val: Pairs
    tests: dict[str, Pairs]
    files: dict[str, str]
    metric: str = "bleu_lc"
    style: str = "written"
    labelled: bool = False
    parts: tuple[str, ...] = ()

    def texts(self) -> list[str]:
        """All texts of train, for a vocabulary."""
        return [side for pair in self.train for side in (pair[:1] if self.labelled else pair)]


def load(name: str, data: Path | None, repeat: int | None = None) -> Corpus:
    """The corpus of a task from the folder `data`; None will do for a task whose data are generated.

    repeat : how often a pass reads each of the task's own pairs beside everyday ones; None for what the task says.

    Raises ValueError for a pair without a corpus, or `repeat` without everyday sentences; FileNotFoundError when the
    folder lacks a file.
    """
    task = tasks.find(name)
    if task.read is None:
        raise ValueError(
            f"there are no corpora for {name}; choose one of {', '.join(tasks.TASKS)}, or give files of your own"
        )
    splits, metric = task.read(data), task.validation_metric
    if task.everyday is not None:
        splits = everyday.join(task, splits, data, repeat)
        metric = task.everyday.validation_metric if splits.parts else metric
    train, val, tests, files, parts = splits
    if repeat is not None and not parts:
        raise ValueError(f"{name} has no everyday sentences in the data folder, and `repeat` needs them")
    return Corpus(train, val, tests, files, metric, task.style, task.classifies or task.writes, parts)


def own(pairs: Pairs, files: dict[str, str], val_size: int | None = None, style: str = "written") -> Corpus:
    """A user's own sentences. `val_size` of them are val, the same ones every time; by default a twentieth, at most
    1,000, or of few sentences a fifth, at most 20.

    No source sentence of val stays in train. ValueError when train or val would be empty.
    """
    size = max(1, min(20, len(pairs) // 5), min(1000, len(pairs) // 20)) if val_size is None else val_size
    if not 1 <= size < len(pairs):
        raise ValueError(
            f"validation and training need at least one sentence pair each; got {len(pairs)} pairs, "
            f"{size} of them for validation"
        )
    val = [pairs[i] for i in sorted(random.Random(0).sample(range(len(pairs)), size))]
    val_sources = {source for source, _ in val}
    train = [pair for pair in pairs if pair[0] not in val_sources]
    if not train:
        raise ValueError(
            "no sentence is left for training: validation has every source sentence; give more different sentences"
        )
    return Corpus(train, val, {}, files, _metric([b for _, b in val], style), style)


def own_labelled(pairs: Pairs, files: dict[str, str], val_size: int | None = None, style: str = "plain") -> Corpus:
    """`own` for sentences with labels."""
    return replace(own(pairs, files, val_size, style), metric="accuracy", labelled=True)


def _metric(targets: list[str], style: str) -> str:
    """The metric for these targets: BLEU on words where spaces separate them, else on characters."""
    if style != "written":
        return {"tokenised": "bleu_words", "plain": "bleu_words", "symbols": "exact_match"}[style]
    text = "".join(targets)
    return "bleu_char" if len(re.findall(f"[{UNSPACED}]", text)) > len(text) / 2 else "bleu_lc"
