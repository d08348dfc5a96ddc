"""Sentences as people type them: each pass reads the pairs with small changes that keep the translation right.

A share of the pairs loses its final mark or its capitals, or has English contractions instead of full forms. Names and
numbers that stand on both sides become others, and some stand beside a sentence, so that a model learns to copy what it
has never seen. Number words become digits.
"""

import random
from dataclasses import dataclass, fields

from attnviz.data.augmentation import find_names, japanese_numbers, number_words
from attnviz.data.augmentation.asides import Asides
from attnviz.data.augmentation.english_forms import other_form
from attnviz.data.augmentation.names import Names
from attnviz.data.augmentation.numbers import other_numbers
from attnviz.data.readers import Pairs, SentencePair

_STOPS = ".。"


@dataclass(frozen=True)
class Shares:
    """Of the pairs that a change fits, the share that gets it."""

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
    find = find_names.transliterated if language == "ja" else find_names.copied
    return Augmenter(find(pairs, seed), language, seed, scaled)


def repeated(pairs: Pairs, pair: str) -> Pairs:
    """The sentence pairs of a language pair such as en-ja, and some of them again, where one kind is rare."""
    return japanese_numbers.repeated(pairs) if pair.endswith("-ja") else pairs


class Augmenter:
    """Changes sentence pairs. The same seed and pass give the same pairs.

    names : those that may take each other's place. language : of the targets.
    """

    def __init__(self, names: Names, language: str, seed: int = 1, shares: Shares = Shares()):
        self.names, self.language, self.seed, self.shares = names, language, seed, shares
        self._asides = Asides(list(names.by_source), language == "ja")

    def __call__(self, pairs: list[SentencePair], epoch: int) -> list[SentencePair]:
        """The pairs as pass number `epoch` reads them, in the same order."""
        chance = random.Random(f"augment/{self.seed}/{epoch}")
        return [self._changed(pair, chance) for pair in pairs]

    def _changed(self, pair: SentencePair, chance: random.Random) -> SentencePair:
        shares = self.shares
        if chance.random() < shares.names:
            pair = self.names.exchanged(pair, self.language, chance)
        if chance.random() < shares.numbers:
            pair = other_numbers(pair, chance)
        if chance.random() < shares.number_words:
            pair = self._in_digits(pair, chance)
        source, target = pair
        if chance.random() < shares.forms:
            source = other_form(source, chance)
        if source[-1:] == "." and target[-1:] in _STOPS and chance.random() < shares.stop:
            source, target = without_stop(source), without_stop(target)
        if source[-1:] == "?" and chance.random() < shares.question:
            source = source[:-1].rstrip() or source
        pair = self._other_case(source, chance), target
        return self._asides.beside(pair, chance) if chance.random() < shares.asides else pair

    def _in_digits(self, pair: SentencePair, chance: random.Random) -> SentencePair:
        if self.language == "ja":
            return japanese_numbers.in_digits(pair, chance)
        return number_words.in_digits(pair, self.language, chance)

    def _other_case(self, source: str, chance: random.Random) -> str:
        shares, drawn = self.shares, chance.random()
        if drawn < shares.lower:
            return source.lower()
        if drawn < shares.lower + shares.first and not source.startswith(("I ", "I'")):
            return source[:1].lower() + source[1:]
        return source


def without_stop(text: str) -> str:
    """The text without its one full stop. An ellipsis stays, and so does a text of nothing else."""
    bare = text.rstrip(_STOPS + " ")
    return bare if bare and len(text.rstrip()) - len(bare.rstrip()) <= 2 and not text.endswith("..") else text
