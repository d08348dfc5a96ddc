"""The part of a model card that is measured after training: scores, speed, alignment, confidence, and whether names and
numbers are copied unchanged.

Copying is measured on sentences that were made for it (gold/copying.tsv). Names count only where the target language
keeps them in Latin letters. Japanese transliterates them into katakana, often with several accepted spellings. Numbers
count in digits, half or full width, in every language: a number in words or in Chinese characters may be right, but it
is not a copy.
"""

import re
import statistics
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from attnviz import alignment, gold, storage
from attnviz.confidence.calibration import Calibration, calibrate
from attnviz.confidence.lexicon import Lexicon
from attnviz.confidence.signs import signs
from attnviz.confidence.training_words import TrainingWords
from attnviz.data import corpora
from attnviz.data.readers import Pairs
from attnviz.evaluation import language, metrics, translation
from attnviz.evaluation.metrics import METRICS
from attnviz.gold import FOLDER, LARGEST
from attnviz.models import classifier as classify
from attnviz.models.classifier import Classifier
from attnviz.models.model import TextError, Trained
from attnviz.models.translator import Translator
from attnviz.models.writer import Writer

BEAM = 5  # hypotheses of the second score on each test, as in papers
TIMED = 100  # sentences of validation on which the speed is measured
CASES = FOLDER / "copying.tsv"
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
    sources, references = zip(*corpus.val)
    scores = {"val": translation.score(translator, sources, references, progress=progress)}
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
    translation.check_lengths(map(classifier.tokenizer.ids, sentences))
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


_EVALUATE: dict[type[Trained], Callable[..., dict]] = {
    Translator: _evaluate_translator,
    Classifier: _evaluate_classifier,
    Writer: _evaluate_writer,
}


@dataclass(frozen=True)
class Case:
    """A sentence, and the names and numbers that every translation of it must hold as they are."""

    text: str
    wanted: tuple[str, ...]


@dataclass(frozen=True)
class Copied:
    """The number of names and of numbers, and how many of them were copied unchanged.

    missed : each name or number that was not, with the translation.
    """

    names: int
    names_right: int
    numbers: int
    numbers_right: int
    missed: tuple[tuple[str, str], ...]

    @property
    def share(self) -> float:
        """The share of names and numbers that were copied."""
        return (self.names_right + self.numbers_right) / (self.names + self.numbers)


def read_cases(path: Path = CASES) -> list[Case]:
    """Cases from lines of sentence<TAB>names and numbers, separated by spaces."""
    rows = (line.split("\t") for line in storage.read(path, LARGEST).decode().splitlines() if line)
    return [Case(text, tuple(wanted.split())) for text, wanted in rows]


def count_copied(cases: Sequence[Case], translations: Sequence[str], names: bool = True) -> Copied:
    """Count the copied names and numbers. translations : as a reader sees them. names : do names count? ValueError
    unless every case has one translation."""
    if len(cases) != len(translations):
        raise ValueError(f"there must be a translation of each of the {len(cases)} sentences; got {len(translations)}")
    right, total, missed = {True: 0, False: 0}, {True: 0, False: 0}, []
    for case, output in zip(cases, translations):
        for word in case.wanted:
            is_number, is_copied = word[0].isdigit(), _stands_in(word, output)
            if not (is_number or names):
                continue
            total[is_number] += 1
            right[is_number] += is_copied
            missed += [] if is_copied else [(word, output)]
    return Copied(total[False], right[False], total[True], right[True], tuple(missed))


def _stands_in(word: str, text: str) -> bool:
    """Is the name or number in the translation, not as a part of another? A number may have thousands separators ("1
    250", "1.250")."""
    plain = unicodedata.normalize("NFKC", text)
    if word.isdigit():
        plain = re.sub(r"(?<=\d)[ .,](?=\d{3}(?!\d))", "", plain)
    if word[0].isdigit():  # telephone numbers too; in Japanese, words stand before and behind without a space
        return re.search(rf"(?<!\d){re.escape(word)}(?!\d)", plain) is not None
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", plain) is not None


def copied(translator: Translator) -> dict:
    """How many names and numbers of gold/copying.tsv are copied unchanged: greedy, and with a beam.

    Names are left out if the target language does not copy them (see the top of this file).
    """
    cases, result = read_cases(), {}
    for beam in (1, BEAM):
        traces = translator.traces((case.text for case in cases), beam=beam, keep=("statistics",))
        outputs = [trace.translation for trace in traces if not isinstance(trace, TextError)]
        counts = count_copied(cases, outputs, translator.task.copies_names)
        result[f"beam_{beam}"] = {
            "names": counts.names,
            "names_right": counts.names_right,
            "numbers": counts.numbers,
            "numbers_right": counts.numbers_right,
            "share": round(counts.share, 4),
        }
    return result


def confidence(
    translator: Translator,
    val: Pairs,
    known_words: TrainingWords,
    draw: Callable[[str], Sequence[str]] = lambda text: (),
    target_words: TrainingWords | None = None,
    lexicon: Lexicon | None = None,
) -> Calibration:
    """The scale of the model's confidence, fitted to the chrF (without spaces) of its greedy translations of `val`.

    draw : text -> its sampled translations, SAMPLES per sampling model. Sentences that the model cannot read are
    left out. ValueError for fewer than `calibration.FEWEST`.
    """
    chrf, rows, scores = METRICS["chrf"], [], []
    traces = translator.traces(source for source, _ in val)
    for result, (_, target) in zip(traces, val, strict=True):
        if not isinstance(result, TextError):
            rows.append(signs(result, known_words, draw(result.text), target_words, lexicon))
            scores.append(chrf(["".join(result.translation.split())], ["".join(target.split())]))
    return calibrate(rows, scores)
