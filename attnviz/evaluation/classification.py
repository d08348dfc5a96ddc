"""How often a classifier is right: accuracy, and which labels it takes for which; and its part of the model card."""

import statistics
import time
from collections import Counter
from collections.abc import Sequence

from attnviz.data import corpora
from attnviz.data.limits import LONGEST
from attnviz.evaluation import metrics
from attnviz.mechanisms import LABELS
from attnviz.models import classifier as classify
from attnviz.models.classifier import Classifier
from attnviz.models.trained import TextError

TIMED = 100  # sentences that are timed for the card
REMARK = "The epoch that ships and the settings were chosen on dev, the set that is scored: it flatters the model by a point or so."


def score(classifier: Classifier, sentences: Sequence[str], labels: Sequence[str]) -> dict:
    """Classify `sentences` and compare with `labels` (aligned), each one of LABELS.

    accuracy   share of right labels (%), and its `_signature`
    confusion  true label -> label given -> number of sentences
    seconds, sentences_per_second   of tokenising and classifying, in batches

    Raises ValueError for no sentence at all and for labels that are not aligned, TextError for a sentence that is too long.
    """
    if not sentences or len(sentences) != len(labels):
        raise ValueError(f"sentences must be some, and as many as labels; got {len(sentences)} and {len(labels)}")
    for number, sentence in enumerate(sentences, start=1):
        if (size := len(classifier.text.ids(sentence))) > LONGEST:
            raise TextError(
                f"sentence {number} is too long: {size} pieces with the end mark, and the models read at most "
                f"{LONGEST}; shorten it or leave it out"
            )
    started = time.perf_counter()
    found = classify.labels(classifier.model, classifier.text, sentences)
    seconds = time.perf_counter() - started
    counts = Counter(zip(labels, found))
    confusion = {true: {given: counts[true, given] for given in LABELS} for true in LABELS}
    return {
        "model": classifier.name,
        "sentences": len(sentences),
        **metrics.score(classifier.pair, found, labels),
        "confusion": confusion,
        "seconds": round(seconds, 3),
        "sentences_per_second": round(len(sentences) / seconds, 2),
    }


def figures(classifier: Classifier, corpus: corpora.Corpus, progress: bool = False) -> dict:
    """What the card says beside the run: the score on dev, and the median time (ms) of one sentence with its trace."""
    scores = {"dev": score(classifier, *zip(*corpus.val))}
    times = []
    for sentence, _ in corpus.val[:TIMED]:
        started = time.perf_counter()
        classifier.trace(sentence)
        times.append(1000 * (time.perf_counter() - started))
    return {"scores": scores, "ms_per_sentence": round(statistics.median(times), 2), "remark": REMARK}
