"""Scores of models, and the part of a model card that is measured after training: scores, speed, alignment."""

import statistics
import time
from collections import Counter
from collections.abc import Sequence

from tqdm import tqdm

from attnviz import alignment, gold
from attnviz.data import MOST_PIECES, corpora
from attnviz.data.readers import Pairs
from attnviz.evaluation import language, metrics, translation
from attnviz.models import classifier as classify
from attnviz.models.classifier import Classifier
from attnviz.models.model import TextError
from attnviz.models.trained import Trained
from attnviz.models.translator import Translator
from attnviz.models.writer import Writer


def score_classifier(classifier: Classifier, sentences: Sequence[str], labels: Sequence[str]) -> dict:
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
        if (size := len(classifier.tokenizer.ids(sentence))) > MOST_PIECES:
            raise TextError(
                f"sentence {number} is too long: {size} pieces with <eos>, and the models read at most "
                f"{MOST_PIECES}; shorten it or leave it out"
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


BEAM = 5  # hypotheses of the second score on each test, as in papers
TIMED = 100  # sentences of validation on which the speed is measured
REMARK = (
    "The best epoch and the settings were chosen on dev, and the score is on dev too: it is about a point too high."
)


def evaluate(model: Trained, corpus: corpora.Corpus, progress: bool = False) -> dict:
    """Scores and speed of a model on a corpus. progress : show a bar on standard error."""
    return _EVALUATE[type(model)](model, corpus, progress)


def _evaluate_translator(translator: Translator, corpus: corpora.Corpus, progress: bool) -> dict:
    """scores : greedy on validation and on each test, and with a beam of 5 on each test (`..._beam_5`). `unseen` is the
    score on the test sentences that are not among the training sources, when some are. alignment : see
    `alignment.report`.
    ms_per_sentence : median over 100 sentences of validation, one at a time, greedy.
    """
    training_sources = {source for source, _ in corpus.train}
    scores = {"val": translation.score(translator, *zip(*corpus.val), progress=progress)}
    for split, pairs in corpus.tests.items():
        for beam, suffix in ((1, ""), (BEAM, f"_beam_{BEAM}")):
            scores[split + suffix] = _score_test(translator, pairs, training_sources, beam, progress)
    return {
        "scores": scores,
        "ms_per_sentence": latency(translator, [source for source, _ in corpus.val[:TIMED]]),
        "alignment": alignment.report(translator, gold.shipped(translator.pair)),
    }


def _score_test(translator: Translator, pairs: Pairs, training_sources: set[str], beam: int, progress: bool) -> dict:
    """`translation.score` on a test, and the metrics on the sentences that are not in the training data."""
    sources, references = zip(*pairs)
    hypotheses, measured = translation.translations(translator, sources, beam, progress)
    result = translation.scores(translator, hypotheses, references, beam) | measured
    unseen = [i for i, source in enumerate(sources) if source not in training_sources]
    if 0 < len(unseen) < len(pairs):
        texts = ([side[i] for i in unseen] for side in (hypotheses, references))
        result["unseen"] = {"sentences": len(unseen), **metrics.score(translator.pair, *texts)}
    return result


def latency(translator: Translator, sentences: Sequence[str]) -> float:
    """Median time (ms) to translate one sentence, greedy, with the attention weights kept."""
    return _median_ms(lambda sentence: translation.translations(translator, [sentence]), sentences)


def _evaluate_classifier(classifier: Classifier, corpus: corpora.Corpus, progress: bool) -> dict:
    """scores : on dev. ms_per_sentence : median time of a trace."""
    return {
        "scores": {"dev": score_classifier(classifier, *zip(*corpus.val))},
        "ms_per_sentence": _median_ms(classifier.trace, [sentence for sentence, _ in corpus.val[:TIMED]]),
        "remark": REMARK,
    }


def _evaluate_writer(writer: Writer, corpus: corpora.Corpus, progress: bool) -> dict:
    """scores : on each part of validation and on each test, see `language.score`. ms_per_token : mean time of a token
    that is written after the first word of an example, all weights kept.
    """
    parts = dict.fromkeys(part for _, part in corpus.val)
    splits = {f"val_{part}": [pair for pair in corpus.val if pair[1] == part] for part in parts} | corpus.tests
    texts = {name: [text for text, _ in pairs] for name, pairs in splits.items()}
    scores = {name: language.score(writer, texts[name]) for name in tqdm(texts, disable=not progress)}
    started = time.perf_counter()
    steps = len(writer.write(writer.task.first.split()[0], TIMED).target)
    return {"scores": scores, "ms_per_token": round(1000 * (time.perf_counter() - started) / steps, 2)}


def _median_ms(function, sentences: Sequence[str]) -> float:
    times = []
    for sentence in sentences:
        started = time.perf_counter()
        function(sentence)
        times.append(1000 * (time.perf_counter() - started))
    return round(statistics.median(times), 2)


_EVALUATE = {Translator: _evaluate_translator, Classifier: _evaluate_classifier, Writer: _evaluate_writer}
