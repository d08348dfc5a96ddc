"""Sentences as people type them: in every pass the pairs get small changes that keep the translation right.

A share of the pairs loses its final mark or its capitals, or has English contractions instead of full forms. Names and
numbers on both sides are exchanged, and some are added beside a sentence, so that a model learns to copy unseen ones.
Number words become digits.
"""

import random
import re
from dataclasses import dataclass, fields

from attnviz.data.augmentation import numbers
from attnviz.data.augmentation.names import NameMaker, Names, copied, transliterated
from attnviz.data.augmentation.numbers import full_width, other_numbers, random_number
from attnviz.data.readers import Pairs, SentencePair

CONTRACTIONS = {
    "do not": "don't",
    "does not": "doesn't",
    "did not": "didn't",
    "is not": "isn't",
    "are not": "aren't",
    "was not": "wasn't",
    "were not": "weren't",
    "have not": "haven't",
    "has not": "hasn't",
    "had not": "hadn't",
    "will not": "won't",
    "would not": "wouldn't",
    "should not": "shouldn't",
    "could not": "couldn't",
    "cannot": "can't",
    "I am": "I'm",
    "I have": "I've",
    "I will": "I'll",
    "you are": "you're",
    "we are": "we're",
    "they are": "they're",
    "you have": "you've",
    "we have": "we've",
    "they have": "they've",
    "you will": "you'll",
    "we will": "we'll",
    "they will": "they'll",
    "he will": "he'll",
    "she will": "she'll",
}


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


CONTRACT = CONTRACTIONS | {_capital(full): _capital(short) for full, short in CONTRACTIONS.items()}
EXPAND = {short: full for full, short in CONTRACT.items()}
_FULL = re.compile(r"\b(?:" + "|".join(CONTRACT) + r")(?= \w)")  # "Yes, I am." stays
_SHORT = re.compile(r"\b(?:" + "|".join(EXPAND) + r")\b")
_SUBJECTS = "I you he she it we they this that there the Tom anyone anybody someone"
_QUESTION = re.compile(rf"\w+n't (?:{'|'.join(_SUBJECTS.split())})\b")  # "Don't you know?"


def other_form(english: str, generator: random.Random) -> str:
    """Contractions instead of full forms, or the other way round."""
    if generator.random() < 0.5:
        return _FULL.sub(lambda match: CONTRACT[match.group()], english)
    if _QUESTION.search(english):  # "Do not you know?" is wrong
        return english
    return _SHORT.sub(lambda match: EXPAND[match.group()], english)


_LETTERS = "aaaabcdeeeefghiiijklmnooopqrstuuvwxyzáäåçéèíłñóöøšüž"
_NUMBERS = 0.55  # of the words: numbers, telephone numbers among them
_MOST = 3  # copied words in an aside; twice as many where they are the whole text


class Asides:
    """Words to copy beside a sentence: names and numbers that both languages write alike. Text that is the same on both
    sides teaches copying (Currey, Miceli Barone & Heafield 2017, "Copied monolingual data improves low-resource neural
    machine translation"). A corpus has so few names that a model would memorise them, so these are made up.

    names : examples that the made-up names resemble. japanese : are the targets Japanese? Then only numbers are copied,
    in full-width digits in the target."""

    def __init__(self, names: list[str], japanese: bool = False):
        self._maker, self._japanese = NameMaker(names) if names and not japanese else None, japanese

    def beside(self, pair: SentencePair, generator: random.Random) -> SentencePair:
        """The pair with words to copy in brackets, after a dash or before it; in one of four cases these words alone.

        Japanese text has them in brackets or before it only, because a model that reads text ending with numbers learns
        to stop after any number.
        """
        form = generator.choice(("brackets", "before") if self._japanese else ("brackets", "dash", "before", "alone"))
        words = [self._word(generator) for _ in range(generator.randint(1, _MOST * (1 + (form == "alone"))))]
        text = generator.choice((" ", ", ")).join(words)
        target_text = full_width(text) if self._japanese else text
        return _together(form, pair[0], text), _together(form, pair[1], target_text)

    def _word(self, generator: random.Random) -> str:
        kind = generator.random() * (_NUMBERS if self._japanese else 1)
        if kind < 0.45:
            return random_number(generator.choice((1, 2, 2, 3, 3, 4, 4, 4, 5, 6)), generator)
        if kind < _NUMBERS:
            return f"{random_number(3, generator)}-{random_number(4, generator)}"
        if kind < 0.85 and self._maker:
            return self._maker.name(generator).capitalize()
        return "".join(generator.choice(_LETTERS) for _ in range(generator.randint(3, 10))).capitalize()


def _together(form: str, side: str, text: str) -> str:
    if form == "brackets":
        end = side[-1:] if side[-1:] in ".。!?" else ""
        return f"{side.removesuffix(end).rstrip() if end else side} ({text}){end}"
    return {"dash": f"{side} - {text}", "before": f"{text} - {side}", "alone": text}[form]


_STOPS = ".。"


@dataclass(frozen=True)
class Shares:
    """For each change, the share of the applicable pairs that get it."""

    names: float = 0.4
    numbers: float = 0.4
    number_words: float = 0.4  # in digits
    forms: float = 0.15  # contractions or full forms
    stop: float = 0.1  # without the full stop
    question: float = 0.1  # the source without its question mark
    first: float = 0.06  # the first letter of the source in lower case
    lower: float = 0.04  # all of the source in lower case
    asides: float = 0.1  # with copied words beside it


# Few English names are known with their katakana, and what stands in the place of one is often no person. Fewer pairs
# have numbers than in German and French.
JAPANESE = Shares(names=0.1, number_words=0.6)


def check(pair: str) -> None:
    """ValueError unless the pair translates from English."""
    source, _, target = pair.partition("-")
    if source != "en" or not target:
        raise ValueError(f"augment must be 0 for {pair}: it changes English sentences and their translations only")


def for_pair(pairs: list[SentencePair], pair: str, factor: float, seed: int = 1) -> "Augmenter":
    """The augmenter of a language pair such as en-fr, with the names of its sentence pairs. factor : on all shares.

    Raises what `check` raises.
    """
    check(pair)
    language = pair.partition("-")[2]
    shares = JAPANESE if language == "ja" else Shares()
    scaled = Shares(**{field.name: factor * getattr(shares, field.name) for field in fields(Shares)})
    find = transliterated if language == "ja" else copied
    return Augmenter(find(pairs, seed), language, seed, scaled)


def repeated(pairs: Pairs, pair: str) -> Pairs:
    """The sentence pairs of a language pair such as en-ja, with pairs of a rare kind repeated."""
    return numbers.repeated_japanese(pairs) if pair.endswith("-ja") else pairs


class Augmenter:
    """Changes sentence pairs. The same seed and pass give the same pairs.

    names : the names that may be exchanged. language : of the targets.
    """

    def __init__(self, names: Names, language: str, seed: int = 1, shares: Shares = Shares()):
        self.names, self.language, self.seed, self.shares = names, language, seed, shares
        self._asides = Asides(list(names.by_source), language == "ja")

    def __call__(self, pairs: list[SentencePair], epoch: int) -> list[SentencePair]:
        """The pairs as pass number `epoch` reads them, in the same order."""
        generator = random.Random(f"augment/{self.seed}/{epoch}")
        return [self._changed(pair, generator) for pair in pairs]

    def _changed(self, pair: SentencePair, generator: random.Random) -> SentencePair:
        shares = self.shares
        if generator.random() < shares.names:
            pair = self.names.exchanged(pair, self.language, generator)
        if generator.random() < shares.numbers:
            pair = other_numbers(pair, generator)
        if generator.random() < shares.number_words:
            pair = self._in_digits(pair, generator)
        source, target = pair
        if generator.random() < shares.forms:
            source = other_form(source, generator)
        if source[-1:] == "." and target[-1:] in _STOPS and generator.random() < shares.stop:
            source, target = without_stop(source), without_stop(target)
        if source[-1:] == "?" and generator.random() < shares.question:
            source = source[:-1].rstrip() or source
        pair = self._other_case(source, generator), target
        return self._asides.beside(pair, generator) if generator.random() < shares.asides else pair

    def _in_digits(self, pair: SentencePair, generator: random.Random) -> SentencePair:
        if self.language == "ja":
            return numbers.japanese_in_digits(pair, generator)
        return numbers.in_digits(pair, self.language, generator)

    def _other_case(self, source: str, generator: random.Random) -> str:
        shares, number = self.shares, generator.random()
        if number < shares.lower:
            return source.lower()
        if number < shares.lower + shares.first and not source.startswith(("I ", "I'")):
            return source[:1].lower() + source[1:]
        return source


def without_stop(text: str) -> str:
    """The text without its one full stop. An ellipsis is kept, and a text that is only a full stop is unchanged."""
    bare = text.rstrip(_STOPS + " ")
    return bare if bare and len(text.rstrip()) - len(bare.rstrip()) <= 2 and not text.endswith("..") else text
