"""The tests on many sentences, for every shipped model that attends and whose data are there.

One part after the other, each for all models: what is quick is there first, for most sentences. Models whose weights
are those of the results that are there already are not measured again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.progress import bar as progress_bar
from attnviz import faithfulness, loading
from attnviz.data import corpora
from attnviz.faithfulness.sentence import CHANGED, PARTS, QUANTILES
from attnviz.mechanisms import find
from attnviz.models import checkpoints
from attnviz.models.model import TextError
from attnviz.models.names import ModelName
from attnviz.studies.faithfulness.earlier import Earlier
from attnviz.studies.faithfulness.kept import Kept
from attnviz.studies.measured_models import MeasuredModel, StudyConfig, record

SAMPLES = 1000  # of the sentences, with replacement
SENTENCES = 500  # unless the caller says how many
BATCH = 32  # sentences translated at once


@dataclass(frozen=True, eq=False)
class Measuring:
    """A model with the texts that it is measured on, and what has been measured. earlier : its rows, where an earlier
    run has them."""

    model: MeasuredModel
    texts: tuple[str, ...]
    kept: Kept
    earlier: list[dict]


def measure(config: StudyConfig) -> dict:
    """rows: a model and measure each. value : over all target tokens. low, high : between them are 95 % of the values
    of SAMPLES samples of the sentences. sentences : how many have a value. quantiles : of the sentences' own values, at
    QUANTILES, for one sentence to be placed among them. sentences : of each model.
    """
    models = list(_models(config))
    for part in PARTS:
        for measuring in models:
            if not measuring.earlier:
                _measure(measuring, part)
    rows = [row for measuring in models for row in measuring.earlier or _rows(measuring)]
    measured = [measuring.model for measuring in models]
    counts = {"sentences": config.sentences or SENTENCES, "samples": SAMPLES}
    return {"rows": rows, **counts, **record(config, measured)}


def _measure(measuring: Measuring, part: str) -> None:
    """The texts of a part that have not been measured."""
    translator = measuring.model.translator
    for batch in progress_bar(_batches(translator, measuring.texts), desc=f"{part} {translator.name}"):
        _measure_batch(measuring, part, batch)


def _measure_batch(measuring: Measuring, part: str, batch: Sequence[str]) -> None:
    """A batch is always translated whole, and changed whole, so that a run that goes on gives the same numbers."""
    kept = measuring.kept
    left = [text for text in batch if (part, text) not in kept.sums]
    if not left:
        return
    sound = []
    for text, subject in zip(batch, faithfulness.subjects(measuring.model.translator, batch), strict=True):
        if isinstance(subject, TextError):  # it cannot be read, or has no output
            kept.add(part, text, None)
        elif text in left or part == CHANGED:
            sound.append((text, subject))
    if sound:
        texts, subjects = zip(*sound)
        for text, sums in zip(texts, PARTS[part](subjects), strict=True):
            kept.add(part, text, sums)


def _batches(translator, texts: Sequence[str]) -> list[list[str]]:
    """The texts by the number of their pieces, at most BATCH at once."""
    by_length: dict[int, list[str]] = {}
    for text in texts:
        by_length.setdefault(len(translator.tokenizer.encode(text).ids), []).append(text)
    groups = [by_length[length] for length in sorted(by_length)]
    return [group[start : start + BATCH] for group in groups for start in range(0, len(group), BATCH)]


def _rows(measuring: Measuring) -> Iterator[dict]:
    label = {**measuring.model.label, "pair": measuring.model.translator.pair}
    for part in PARTS:
        sentences = [sums for text in measuring.texts if (sums := measuring.kept.sums[part, text])]
        for name in sorted({name for sums in sentences for name in sums}):
            yield {**label, "measure": name, **summary([sums[name] for sums in sentences if name in sums])}


def _models(config: StudyConfig) -> Iterator[Measuring]:
    """The models, and the first source sentences of a test of each (validation, where there is no test)."""
    texts: dict[str, tuple[str, ...]] = {}
    earlier = Earlier(config, config.sentences or SENTENCES, SAMPLES)
    for name in checkpoints.names(config.root):
        parsed = ModelName.parse(name)
        if not find(parsed.mechanism).kinds or (parsed.pair not in texts and not _readable(config, parsed.pair, texts)):
            continue
        model, sha256 = loading.load_checkpoint(name, config.root), checkpoints.fingerprint(name, config.root)
        measured = MeasuredModel(model, model.card.get("seed"), sha256)
        kept = Kept(config.out / "faithfulness", name, sha256)
        yield Measuring(measured, texts[parsed.pair], kept, earlier.of(name, sha256))


def _readable(config: StudyConfig, pair: str, texts: dict[str, tuple[str, ...]]) -> bool:
    """Put the sentences of a pair into `texts`; False where its data are not in the folder."""
    try:
        corpus = config.corpus if pair == config.pair else corpora.load(pair, config.data)
    except (ValueError, OSError, TypeError):  # no such corpus, or its files are not there
        return False
    sentences = next(iter(corpus.tests.values()), corpus.val)
    different = dict.fromkeys(source for source, _ in sentences)
    texts[pair] = tuple(different)[: config.sentences or SENTENCES]
    return True


def summary(counted: Sequence[tuple[float, int]]) -> dict:
    """(sum, number) of each sentence -> value, interval, number of tokens and sentences, quantiles of the sentences."""
    sums, numbers = np.array([value for value, _ in counted]), np.array([number for _, number in counted])
    total = int(numbers.sum())
    if not total:
        return {"value": None, "low": None, "high": None, "tokens": 0, "sentences": 0, "quantiles": []}
    chosen = np.random.default_rng(0).integers(len(counted), size=(SAMPLES, len(counted)))
    drawn = numbers[chosen].sum(1)
    values = sums[chosen].sum(1)[drawn > 0] / drawn[drawn > 0]
    low, high = np.percentile(values, (2.5, 97.5))
    each = np.quantile(sums[numbers > 0] / numbers[numbers > 0], QUANTILES)
    shares = dict(zip(("value", "low", "high"), (float(sums.sum()) / total, low, high)))
    return {name: round(float(value), 4) for name, value in shares.items()} | {
        "tokens": total,
        "sentences": int((numbers > 0).sum()),
        "quantiles": [round(float(value), 4) for value in each],
    }
