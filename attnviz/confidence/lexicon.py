"""The usual translations of each word, learnt from the training sentences: a content word of a source none of whose
usual translations is in the translation was probably left out, changed, or spelt wrongly.

The alignment is IBM model 1 (Brown et al. 1993, "The mathematics of statistical machine translation", sec. 4.4), which
confidence estimation has long used (Blatz et al. 2004; Specia et al. 2013, QuEst). checkpoints/<pair>/lexicon.txt.gz
"""

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnviz import arguments
from attnviz.confidence.between import in_digits
from attnviz.confidence.training_words import read_lines, write_lines
from attnviz.data.styles import UNSPACED
from attnviz.function_words import is_content
from attnviz.models.checkpoint_files import unreadable
from attnviz.trace.visible import WORD, plain

FILE = "lexicon.txt.gz"
SOURCE_STEM, TARGET_STEM = 6, 5  # first letters of a word, which its inflected forms share
ROUNDS = 4  # of expectation maximisation
LEAST, MOST = 0.02, 12  # the probability of a translation, and how many of them a word has
LIFT = 4  # a translation is this many times as frequent beside the word as elsewhere
FEWEST = 3  # sentences that have the word
RARE = 2.0  # nats; a word none of whose usual translations, or sources, is there is named where that is so rare (14 %)
COMMON = 40  # sentences that have a word of the translations; rarer ones need twice the room (docs/models.md)
_LETTERS = re.compile(r"[^\W\d_]+")
_NO_SPACES = re.compile(f"[{UNSPACED}]")
Pairs = Sequence[tuple[str, str]]


class Entry(NamedTuple):
    """translations : one form of each usual translation. sentences : number of training sentences with the word.
    translated : number of these whose translation has a usual translation of the word."""

    translations: tuple[str, ...]
    sentences: int
    translated: int

    @property
    def surprise(self) -> float:
        """-ln of the probability that a right translation has none of the usual ones (nats); half a sentence is added
        to both counts."""
        return -math.log(1 - (self.translated + 0.5) / (self.sentences + 1))


class Unsaid(NamedTuple):
    """A word of a source, its usual translations, and `Entry.surprise`."""

    text: str
    translations: tuple[str, ...]
    surprise: float


@dataclass(frozen=True)
class Lexicon:
    """entries : the first letters of a source word -> its translations. sources : the first letters of a word of the
    translations -> the source words that it usually translates, for common words that are RARE without one of them;
    empty in a language without spaces.

    >>> lexicon = confidence.Judge.load("en-fr/bahdanau").lexicon
    >>> lexicon.unsaid("The dog runs.", "Le chat court.", "en", "fr")[0].translations
    ('chien',)
    """

    entries: dict[str, Entry] = field(repr=False)
    sources: dict[str, Entry] = field(default_factory=dict, repr=False)

    @classmethod
    def learn(cls, pairs: Pairs, source: str, target: str) -> "Lexicon":
        """Learn from training pairs of these languages; a repeated pair counts once."""
        pairs = list(dict.fromkeys(pairs))
        spaced = [(text, translation) for text, translation in pairs if not _NO_SPACES.search(translation)]
        entries = _entries([(_source(text, source), _target(translation, target)) for text, translation in pairs])
        sources = _entries([(_produced(translation, target), _asked(text, source)) for text, translation in spaced])
        return cls(
            entries,
            {word: entry for word, entry in sources.items() if entry.sentences >= COMMON and entry.surprise >= RARE},
        )

    @classmethod
    def load(cls, path: Path) -> "Lexicon":
        """Read what `save` wrote. Raises CheckpointError."""
        path = arguments.path("path", path)
        parts: list[dict[str, Entry]] = [{}, {}]
        lines = read_lines(path)
        try:
            end = lines.index("") if "" in lines else len(lines)
            for number, line in enumerate(lines[:end] + lines[end + 1 :]):
                word, sentences, translated, *translations = line.split()
                entry = Entry(tuple(translations), int(sentences), int(translated))
                entry.surprise  # noqa: B018  a damaged count raises here
                parts[number >= end][word] = entry
        except (ValueError, ArithmeticError) as error:
            raise unreadable(path, error) from None
        return cls(*parts)

    def save(self, path: Path) -> None:
        """Write a line a word: the word, its counts, its translations; then, after an empty line, those of
        `sources`."""
        parts = [
            [" ".join((word, f"{e.sentences} {e.translated}", *e.translations)) for word, e in sorted(part.items())]
            for part in (self.entries, self.sources)
        ]
        write_lines(path, [*parts[0], "", *parts[1]])

    def unsaid(self, text: str, translation: str, source: str, target: str) -> tuple[Unsaid, ...]:
        """The content words of a text whose usual translations are all missing, the most surprising first."""
        return self.compared(text, translation, source, target)[0]

    def compared(
        self, text: str, translation: str, source: str, target: str
    ) -> tuple[tuple[Unsaid, ...], tuple[str, ...]]:
        """`unsaid`, and the content words of a text that have a usual translation in the translation."""
        stems, plain = _target(translation, target), _plain(translation).replace(" ", "")
        looked_up = list(_looked_up(self.entries, _source(text, source), stems, plain))
        return _missing(looked_up), tuple(word for word, _, is_translated in looked_up if is_translated)

    def unfounded(self, text: str, translation: str, source: str, target: str) -> tuple[Unsaid, ...]:
        """The content words of a translation of which the text has none of the words that they usually translate, nor
        another word of which they are a usual translation, nor digits for a number word; the most surprising first."""
        words, stems = _produced(translation, target), _asked(text, source)
        missing = _missing(_looked_up(self.sources, words, stems, _plain(text).replace(" ", "")))
        return tuple(
            word
            for word in missing
            if not (self._translates(word.text, text, source) or in_digits(word.translations, text))
        )

    def _translates(self, word: str, text: str, source: str) -> bool:
        """Is the word a usual translation of a word of the text?"""
        entries = (self.entries[stem] for stem in _source(text, source) if stem in self.entries)
        forms = (form for entry in entries for form in entry.translations)
        return any(_stem(form, TARGET_STEM) == _stem(word, TARGET_STEM) for form in forms)


def _looked_up(
    entries: dict[str, Entry], words: dict[str, str], stems: dict[str, str], plain: str
) -> Iterator[tuple[str, Entry, bool]]:
    """The words (stem -> word) that have an entry, and whether the other side has a usual translation of it. stems,
    plain : the other side's stems, and its text without spaces."""
    for stem, word in words.items():
        if entry := entries.get(stem):
            yield word, entry, any(_is_in(_stem(form, TARGET_STEM), stems, plain) for form in entry.translations)


def _missing(looked_up: Iterable[tuple[str, Entry, bool]]) -> tuple[Unsaid, ...]:
    words = (Unsaid(word, entry.translations, entry.surprise) for word, entry, is_there in looked_up if not is_there)
    return tuple(sorted(words, key=lambda word: -word.surprise))


def _entries(sides: Sequence[tuple[dict[str, str], dict[str, str]]]) -> dict[str, Entry]:
    """The entries of the words of the first sides; both sides are stem -> word."""
    listed = _usual([(list(words), list(translations)) for words, translations in sides])
    have, translated = Counter[str](), Counter[str]()
    forms: dict[tuple[str, str], Counter[str]] = {}
    for words, translations in sides:
        have.update(words.keys())
        for word in words:
            stems = [stem for stem in listed.get(word, ()) if stem in translations]
            translated[word] += bool(stems)
            for stem in stems:
                forms.setdefault((word, stem), Counter())[translations[stem]] += 1
    return {
        word: Entry(tuple(forms[word, stem].most_common(1)[0][0] for stem in stems), have[word], translated[word])
        for word, stems in listed.items()
    }


def _is_in(stem: str, stems: dict[str, str], plain: str) -> bool:
    """Is the translation in the text? Also inside a longer word (a compound), and anywhere in a text without spaces."""
    return stem in stems or ((len(stem) == TARGET_STEM or bool(_NO_SPACES.search(stem))) and stem in plain)


def _usual(sides: Sequence[tuple[list[str], list[str]]]) -> dict[str, list[str]]:
    """The stems of the usual translations of each word that occurs in at least FEWEST sentences, the most probable
    first."""
    sides = [(words, stems) for words, stems in sides if words and stems]
    if not sides:
        return {}
    words, stems, rows, columns, probability, together = _model_1(sides)
    have, frequent = (Counter(word for side in sides for word in side[i]) for i in (0, 1))
    result: dict[str, list[str]] = {}
    for place in np.argsort(-probability, kind="stable").tolist():
        word, stem = words[rows[place]], stems[columns[place]]
        count = together[place]
        if not word or have[word] < FEWEST or probability[place] < LEAST or count < 2:
            continue
        if count / have[word] >= LIFT * frequent[stem] / len(sides):
            result.setdefault(word, []).append(stem)
    return {word: listed[:MOST] for word, listed in result.items()}


def _model_1(sides: Sequence[tuple[list[str], list[str]]]):
    """words, stems : the two vocabularies; the first word is "", which stands for no word. rows, columns : indices of
    each word and stem that occur together in a sentence pair. probability : of the stem, given the word. together :
    number of sentence pairs with both.
    """
    words: dict[str, int] = {"": 0}
    stems: dict[str, int] = {}
    left, right, target, count = [], [], [], 0
    for source, translations in sides:
        sources = np.array([0, *(words.setdefault(word, len(words)) for word in source)])
        answers = np.array([stems.setdefault(stem, len(stems)) for stem in translations], dtype=np.int64)
        left.append(np.repeat(sources, len(answers)))
        right.append(np.tile(answers, len(sources)))
        target.append(np.tile(np.arange(count, count + len(answers)), len(sources)))
        count += len(answers)
    left, right, target = (np.concatenate(parts) for parts in (left, right, target))
    pairs, inverse, together = np.unique(left * len(stems) + right, return_inverse=True, return_counts=True)
    rows, columns = np.divmod(pairs, len(stems))
    probability = np.ones(len(pairs))
    for _ in range(ROUNDS):
        weights = probability[inverse]
        weights /= np.bincount(target, weights, minlength=count)[target]
        expected = np.bincount(inverse, weights, minlength=len(pairs))
        probability = expected / np.bincount(rows, expected)[rows]
    return list(words), list(stems), rows, columns, probability, together


@functools.lru_cache(256)  # several models of a page translate the same text
def _source(text: str, language: str) -> dict[str, str]:
    """The stems of the content words of a source, and the words as typed; both without the part after an apostrophe."""
    words = (match.group() for match in WORD.finditer(plain(text)) if is_content(match.group(), language))
    return {_stem(word, SOURCE_STEM): re.split("['’]", word)[0] for word in words if len(word) > 1}


def _target(text: str, language: str) -> dict[str, str]:
    """The stems of the content words of a translation, and their forms in lower case."""
    return {_stem(word, TARGET_STEM): word.lower() for word in _words(text, language)}


def _produced(text: str, language: str) -> dict[str, str]:
    """As `_target`, but as `_source` has them: stems of SOURCE_STEM letters, and the words as they are written."""
    return {_stem(word, SOURCE_STEM): word for word in _words(text, language) if len(word) > 1}


def _asked(text: str, language: str) -> dict[str, str]:
    """As `_source`, but as `_target` has them: stems of TARGET_STEM letters, and the words in lower case."""
    return {_stem(word, TARGET_STEM): word.lower() for word in _source(text, language).values()}


def _words(text: str, language: str) -> Iterator[str]:
    """The content words of a translation, without what is before an apostrophe."""
    words = (match.group() for match in _LETTERS.finditer(plain(text)))
    return (word for word in words if is_content(word.lower(), language))


@functools.lru_cache(2**17)
def _stem(word: str, letters: int) -> str:
    """The first letters of a word, in lower case and without accents; the whole word in Chinese and Japanese."""
    plain = _plain(re.split("['’]", word)[0])
    return plain if _NO_SPACES.search(plain) else plain[:letters]


def _plain(text: str) -> str:
    """In lower case, and without accents where the text has no Chinese or Japanese characters."""
    lower = text.lower()
    if _NO_SPACES.search(lower):
        return lower
    return "".join(c for c in unicodedata.normalize("NFD", lower) if not unicodedata.combining(c))
