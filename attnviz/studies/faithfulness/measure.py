"""The tests on many sentences, for every shipped model that attends and whose data are there."""

from collections.abc import Iterator

import numpy as np
from tqdm import tqdm

from attnviz import faithfulness, loading
from attnviz.data import corpora
from attnviz.faithfulness.sentence import QUANTILES, Sums, tested
from attnviz.mechanisms import find
from attnviz.models import checkpoints
from attnviz.models.names import ModelName
from attnviz.models.model import TextError
from attnviz.studies.measured_models import MeasuredModel, StudyConfig, record

SAMPLES = 1000  # of the sentences, with replacement


def measure(config: StudyConfig) -> dict:
    """rows: a model and measure each. value : over all target tokens. low, high : between them are 95 % of the values
    of SAMPLES samples of the sentences. quantiles : of the sentences' own values, at QUANTILES, for one sentence to be
    placed among them.
    """
    models, rows = [], []
    for model, texts in _models(config):
        models.append(model)
        sentences = [sums for text in tqdm(texts, desc=model.translator.name) if (sums := _sentence(model, text))]
        for name in sorted({name for sums in sentences for name in sums}):
            counted = [sums[name] for sums in sentences if name in sums]
            rows.append({**model.label, "pair": model.translator.pair, "measure": name, **summary(counted)})
    return {"rows": rows, "sentences": config.sentences, "samples": SAMPLES, **record(config, models)}


def _sentence(model: MeasuredModel, text: str) -> Sums | None:
    """None of a text that the model cannot read, or of which it says nothing."""
    try:
        return tested(faithfulness.subject(model.translator, text)).sums
    except TextError:
        return None


def _models(config: StudyConfig) -> Iterator[tuple[MeasuredModel, list[str]]]:
    """The models, and the first source sentences of a test of each (validation, where there is no test)."""
    texts: dict[str, list[str]] = {}
    for name in checkpoints.names(config.root):
        parsed = ModelName.parse(name)
        if not find(parsed.mechanism).kinds or (parsed.pair not in texts and not _readable(config, parsed.pair, texts)):
            continue
        model = loading.load(name, config.root)
        yield (
            MeasuredModel(model, model.card.get("seed"), checkpoints.fingerprint(name, config.root)),
            texts[parsed.pair],
        )


def _readable(config: StudyConfig, pair: str, texts: dict[str, list[str]]) -> bool:
    """Put the sentences of a pair into `texts`; False where its data are not in the folder."""
    try:
        corpus = config.corpus if pair == config.pair else corpora.load(pair, config.data)
    except (ValueError, OSError, TypeError):  # no such corpus, or its files are not there
        return False
    sentences = next(iter(corpus.tests.values()), corpus.val)
    texts[pair] = [source for source, _ in sentences[: config.sentences]]
    return True


def summary(counted: list[tuple[float, int]]) -> dict:
    """(sum, number) of each sentence -> value, interval, number of tokens, and quantiles of the sentences."""
    sums, numbers = np.array([value for value, _ in counted]), np.array([number for _, number in counted])
    total = int(numbers.sum())
    if not total:
        return {"value": None, "low": None, "high": None, "tokens": 0, "quantiles": []}
    chosen = np.random.default_rng(0).integers(len(counted), size=(SAMPLES, len(counted)))
    drawn = numbers[chosen].sum(1)
    values = sums[chosen].sum(1)[drawn > 0] / drawn[drawn > 0]
    low, high = np.percentile(values, (2.5, 97.5))
    each = np.quantile(sums[numbers > 0] / numbers[numbers > 0], QUANTILES)
    shares = dict(zip(("value", "low", "high"), (float(sums.sum()) / total, low, high)))
    return {name: round(float(value), 4) for name, value in shares.items()} | {
        "tokens": total,
        "quantiles": [round(float(value), 4) for value in each],
    }
