"""What a card says about sentences that visitors type: names and numbers that are copied, and confidence.

Copying is measured on sentences that were made for it (gold/copying.tsv). Names count only where the target language
keeps them in Latin letters. Japanese writes them by sound, in katakana: that is a translation, and which spelling is
right is often a matter of custom. Numbers count in digits, half or full width, in every language: a number in words or
in Chinese characters may be right, but it is not a copy.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnviz import storage
from attnviz.confidence.agreement import SAMPLES
from attnviz.confidence.calibration import Calibration, calibrate
from attnviz.confidence.signs import signs
from attnviz.confidence.training_words import TrainingWords
from attnviz.data.readers import Pairs
from attnviz.evaluation import BEAM
from attnviz.evaluation.metrics import METRICS
from attnviz.gold import FOLDER, LARGEST
from attnviz.models.model import TextError
from attnviz.models.translator import Translator

CASES = FOLDER / "copying.tsv"


@dataclass(frozen=True)
class Case:
    """A sentence, and the names and numbers that every translation of it must hold as they are."""

    text: str
    wanted: tuple[str, ...]


@dataclass(frozen=True)
class Copied:
    """Of the names, and of the numbers, that count: how many there are, and how many came out as they went in.

    missed : each name or number that did not, with the translation.
    """

    names: int
    names_right: int
    numbers: int
    numbers_right: int
    missed: tuple[tuple[str, str], ...]

    @property
    def share(self) -> float:
        """The right ones of all names and numbers."""
        return (self.names_right + self.numbers_right) / (self.names + self.numbers)


def read_cases(path: Path = CASES) -> list[Case]:
    """Cases from lines of sentence<TAB>names and numbers, separated by spaces."""
    rows = (line.split("\t") for line in storage.read(path, LARGEST).decode().splitlines() if line)
    return [Case(text, tuple(wanted.split())) for text, wanted in rows]


def count_copied(cases: Sequence[Case], translations: Sequence[str], names: bool = True) -> Copied:
    """Count what came out. translations : as a reader sees them. names : do names count? ValueError unless each case
    has one translation."""
    if len(cases) != len(translations):
        raise ValueError(f"there must be a translation of each of the {len(cases)} sentences; got {len(translations)}")
    right, total, missed = {True: 0, False: 0}, {True: 0, False: 0}, []
    for case, translation in zip(cases, translations):
        for word in case.wanted:
            is_number, copied = word[0].isdigit(), _stands_in(word, translation)
            if not (is_number or names):
                continue
            total[is_number] += 1
            right[is_number] += copied
            missed += [] if copied else [(word, translation)]
    return Copied(total[False], right[False], total[True], right[True], tuple(missed))


def _stands_in(word: str, translation: str) -> bool:
    """Does it stand there, not as a part of another? A number may have its thousands divided ("1 250", "1.250")."""
    plain = unicodedata.normalize("NFKC", translation)
    if word.isdigit():
        plain = re.sub(r"(?<=\d)[ .,](?=\d{3}(?!\d))", "", plain)
    if word[0].isdigit():  # telephone numbers too; in Japanese, words stand before and behind without a space
        return re.search(rf"(?<!\d){re.escape(word)}(?!\d)", plain) is not None
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", plain) is not None


def copied(translator: Translator) -> dict:
    """Of the names and numbers of gold/copying.tsv, those that came out as they went in: greedy, and with a beam.

    Names are left out where the target language does not copy them, see copying.py.
    """
    cases, result = read_cases(), {}
    for beam in (1, BEAM):
        traces = translator.traces((case.text for case in cases), beam=beam, keep=("statistics",))
        counts = count_copied(cases, [trace.translation for trace in traces], translator.task.copies_names)
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
    samplers: Sequence[Translator] = (),
    target_words: TrainingWords | None = None,
) -> Calibration:
    """The scale of the model's confidence, fitted to the chrF (without spaces) of its greedy translations of `val`.

    samplers : draw other translations of each sentence. Sentences that the model cannot read are left out. ValueError
    for fewer than `calibration.FEWEST`.
    """
    chrf, rows, scores = METRICS["chrf"], [], []
    traces = translator.traces(source for source, _ in val)
    for result, (_, target) in zip(traces, val, strict=True):
        if not isinstance(result, TextError):
            samples = [sample for sampler in samplers for sample in sampler.samples(result.text, SAMPLES)]
            rows.append(signs(result, known_words, samples, target_words))
            scores.append(chrf(["".join(result.translation.split())], ["".join(target.split())]))
    return calibrate(rows, scores)
