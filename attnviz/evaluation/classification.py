"""The accuracy of a classifier, and which labels it confuses."""

import time
from collections import Counter
from collections.abc import Sequence

from attnviz.data.limits import LONGEST
from attnviz.evaluation import metrics
from attnviz.models import classifier as classify
from attnviz.models.classifier import Classifier
from attnviz.models.model import TextError


def score(classifier: Classifier, sentences: Sequence[str], labels: Sequence[str]) -> dict:
    """Classify `sentences` and compare with the correct `labels`, each one of `classifier.labels`.

    accuracy   share of correct labels (%), and its `_signature`
    confusion  correct label -> predicted label -> number of sentences
    seconds, sentences_per_second   of tokenizing and classifying, in batches

    Raises ValueError for no sentences and for labels that are not aligned, TextError for a sentence that is too long.
    """
    if not sentences or len(sentences) != len(labels):
        raise ValueError(
            f"there must be at least one sentence, and one label for each; got {len(sentences)} and {len(labels)}"
        )
    for number, sentence in enumerate(sentences, start=1):
        if (size := len(classifier.tokenizer.ids(sentence))) > LONGEST:
            raise TextError(
                f"sentence {number} is too long: {size} pieces with <eos>, and the models read at most "
                f"{LONGEST}; shorten it or leave it out"
            )
    started = time.perf_counter()
    predictions = classify.predict(classifier.model, classifier.tokenizer, classifier.labels, sentences)
    seconds = time.perf_counter() - started
    counts = Counter(zip(labels, predictions))
    return {
        "model": classifier.name,
        "sentences": len(sentences),
        **metrics.score(classifier.pair, predictions, labels),
        "confusion": {
            correct: {label: counts[correct, label] for label in classifier.labels} for correct in classifier.labels
        },
        "seconds": round(seconds, 3),
        "sentences_per_second": round(len(sentences) / seconds, 2),
    }
