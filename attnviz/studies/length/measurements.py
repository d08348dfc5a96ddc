"""The numbers of the study of sentence length."""

import statistics

import numpy as np

from attnviz.evaluation import metrics, translation
from attnviz.evaluation.attention_metrics import EntropyBySentence
from attnviz.mechanisms import MECHANISMS
from attnviz.studies.length import buckets
from attnviz.studies.length.buckets import BucketTexts
from attnviz.studies.measured_models import MeasuredModel, StudyConfig, models, record
from attnviz.training.validation import mean_loss

BATCH = 32  # texts whose loss is computed at once


def measure(config: StudyConfig) -> dict:
    """rows: by model and bucket. fits: by model. points: by model and number of source pieces. signatures: of the
    scores."""
    measured, rows, fits, points, signatures = [], [], [], [], {}
    for model in models(config, MECHANISMS):
        measured.append(model)
        sentences = []
        for texts in buckets.texts(config.corpus.tests, model.translator.tokenizer):
            row, entropies = measure_bucket(model, texts)
            signatures |= {key: row.pop(key) for key in list(row) if key.endswith("_signature")}  # the same in all rows
            rows.append(row)
            sentences += entropies
        if sentences:
            points += [{**model.label, **point} for point in by_pieces(sentences)]
            fits.append({**model.label, **fit(sentences)})
    results = {"rows": rows, "fits": fits, "points": points, "signatures": signatures}
    return results | record(config, measured, MECHANISMS)


def measure_bucket(model: MeasuredModel, texts: BucketTexts) -> tuple[dict, list[tuple[int, float]]]:
    """The row of a model and a bucket, and the pieces and entropy of each text (see `EntropyBySentence`).

    loss : nats a token of the reference, with forced decoding. length_ratio : words of the translations, divided by
    those of the references.
    """
    row = {
        **model.label,
        **texts.bucket.key,
        "texts": len(texts.pairs),
        "sentences": texts.sentences,
        "left_out": texts.left_out,
    }
    if not texts.pairs:
        return row, []
    translator, (sources, references) = model.translator, zip(*texts.pairs)
    hypotheses, attention = translation.translations(translator, sources, progress=True, also=(EntropyBySentence,))
    source_words, words, reference_words = (_words(side) for side in (sources, hypotheses, references))
    row |= {
        "words": round(source_words / len(sources), 2),
        **metrics.score(translator.pair, hypotheses, references),
        "length_ratio": round(words / reference_words, 4),
        "loss": round(mean_loss(translator.model, translator.tokenizer, texts.pairs, "cpu", BATCH), 4),
    }
    sentences = attention["by_sentence"] or []
    if sentences:
        pieces, entropies = zip(*sentences)
        row["pieces"] = round(statistics.geometric_mean(pieces), 2)
        row["entropy_nats"] = round(statistics.fmean(entropies), 4)
    return row, sentences


def _words(texts: list[str]) -> int:
    return sum(len(text.split()) for text in texts)


def by_pieces(sentences: list[tuple[int, float]]) -> list[dict]:
    """(pieces, entropy) of sentences -> the mean entropy of sentences with the same number of pieces, shortest
    first."""
    groups: dict[int, list[float]] = {}
    for pieces, entropy in sorted(sentences):
        groups.setdefault(pieces, []).append(entropy)
    return [
        {"pieces": pieces, "sentences": len(entropies), "entropy_nats": round(statistics.fmean(entropies), 4)}
        for pieces, entropies in groups.items()
    ]


def fit(sentences: list[tuple[int, float]]) -> dict:
    """Least squares of entropy (nats) on ln(pieces): slope, intercept, and the share of the variance that is explained.

    All three are None for sentences of a single length. Uniform attention has slope 1 and intercept 0.
    """
    pieces, entropy = np.array(sentences, dtype=float).T
    size = {"sentences": len(sentences), "from": int(pieces.min()), "to": int(pieces.max())}
    if len(set(pieces)) < 2:
        return {**size, "slope": None, "intercept": None, "explained": None}
    slope, intercept = np.polyfit(np.log(pieces), entropy, 1)
    residual, centred = entropy - intercept - slope * np.log(pieces), entropy - entropy.mean()
    explained = float(1 - (residual @ residual) / (centred @ centred)) if centred.any() else None
    return {**size, "slope": float(slope), "intercept": float(intercept), "explained": explained}
