"""The reference of a model: statistics of its test set, trained, untrained, and with the words in random order.

All are measured on the trained model's own greedy translations (`attnviz.across.reference`).
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from attnviz import across, loading, select, stats, storage
from attnviz.across import reference
from attnviz.across.reference import COMPARED, MODELS, QUANTILES, SHOWN, Reference
from attnviz.models import checkpoint_files
from attnviz.models.measured import TraceStatistics
from attnviz.models.model import TextError
from attnviz.models.translator import Translator
from attnviz.networks import registry

SEED = 1
AT_LEAST = 10  # sentences of a length, for a mean of theirs

Values = dict[str, dict[str, float]]  # kind -> statistic -> of one sentence
Progress = Callable[[Iterable], Iterable]  # such as tqdm


@dataclass(frozen=True)
class _Sentence:
    text: str
    translation: str
    tokens: int
    values: Values


def measure(name: str, root: Path, test: str, texts: Sequence[str], progress: Progress = iter) -> Reference:
    """The reference of a checkpoint that translates, on the source sentences of a test set.

    A sentence that cannot be read, or whose output is empty, is left out. ValueError if no sentence is left.
    """
    model = loading.load_translator(name, root)
    sentences = [
        _Sentence(text, result.translation, len(result.source), _values(result))
        for text, result in zip(texts, progress(_measured(model, texts)), strict=True)
        if isinstance(result, TraceStatistics) and result.translation.strip()
    ]
    if not sentences:
        raise ValueError(f"{test} must hold at least one sentence that {name} can translate; got none")
    lengths = _lengths([sentence.tokens for sentence in sentences])
    targets = [sentence.translation for sentence in sentences]
    mixed = [shuffled(sentence.text) for sentence in sentences]
    values = {
        "trained": [sentence.values for sentence in sentences],
        "untrained": [
            _values(result)
            for result in progress(_measured(untrained(model, root), [s.text for s in sentences], targets))
        ],
        "shuffled": [_values(result) for result in progress(_measured(model, mixed, targets))],
    }
    tokens = np.array([sentence.tokens for sentence in sentences])
    return Reference(
        test,
        len(sentences),
        checkpoint_files.fingerprint(name, root),
        {kind: table for kind, table in _table(values["trained"], _quantiles).items() if kind != SHOWN},
        lengths,
        {model: _table(values[model], lambda numbers: _means(numbers, tokens, lengths)) for model in MODELS},
    )


def untrained(model: Translator, root: Path) -> Translator:
    """The same model with random weights from a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network = registry.build(checkpoint_files.read_config(model.name, root))
    return replace(model, model=network.eval().requires_grad_(False))


def shuffled(text: str) -> str:
    """The words of a text in a random order with a fixed seed."""
    words = text.split()
    random.Random(f"{SEED} {text}").shuffle(words)
    return " ".join(words)


def write(measured: Reference, name: str, root: Path) -> Path:
    """Put a reference beside the weights."""
    path = root / name / reference.FILE
    text = json.dumps(reference.to_dict(measured), separators=(",", ":")) + "\n"
    storage.replace(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return path


def _measured(
    model: Translator, texts: Sequence[str], targets: Sequence[str] | None = None
) -> Iterator[TraceStatistics | TextError]:
    for result in model.traces(texts, targets, keep=("maps", "statistics")):
        if isinstance(result, TraceStatistics | TextError):
            yield result


def _values(measured: TraceStatistics) -> Values:
    """The values of one sentence: for each kind the mean over steps and heads, and for the map that the page shows
    first."""
    columns = measured.columns()
    values = {kind: across.sentence(columns, kind) for kind in dict.fromkeys(kind for kind, *_ in measured.maps)}
    if "cross" in values:
        shown = stats.of_grid(select.select(measured.trace))
        values[SHOWN] = {name: float(shown[name].mean()) for name in COMPARED}
    return values


def _lengths(tokens: Sequence[int]) -> np.ndarray:
    """The lengths with enough sentences; the median length if there are none."""
    lengths, counts = np.unique(tokens, return_counts=True)
    return lengths[counts >= AT_LEAST] if (counts >= AT_LEAST).any() else np.array([int(np.median(tokens))])


def _table(values: Sequence[Values], summarise: Callable[[np.ndarray], np.ndarray]) -> dict:
    """kind -> statistic -> the summary of the sentences' values."""
    return {
        kind: {name: summarise(np.array([sentence[kind][name] for sentence in values])) for name in COMPARED}
        for kind in values[0]
    }


def _quantiles(numbers: np.ndarray) -> np.ndarray:
    return np.nanquantile(numbers, np.linspace(0, 1, QUANTILES))


def _means(numbers: np.ndarray, tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The mean over the sentences of each length; over all sentences if none has one of these lengths."""
    means = [numbers[tokens == length] for length in lengths]
    return np.array([np.nanmean(part if len(part) else numbers) for part in means])
