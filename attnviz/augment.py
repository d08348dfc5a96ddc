"""Sentences as people type them: each pass reads the pairs with small changes that keep the translation right.

A share of the pairs loses its final mark or its capitals, or has English contractions instead of full forms; names and
numbers that stand on both sides become others, so that a model learns to copy what it has never seen.
"""

import random
import re
from dataclasses import dataclass, fields

from attnviz import names

Pair = tuple[str, str]
SHORT = {
    "do not": "don't", "does not": "doesn't", "did not": "didn't", "is not": "isn't", "are not": "aren't", "was not": "wasn't",
    "were not": "weren't", "have not": "haven't", "has not": "hasn't", "had not": "hadn't", "will not": "won't",
    "would not": "wouldn't", "should not": "shouldn't", "could not": "couldn't", "cannot": "can't", "I am": "I'm", "I have": "I've",
    "I will": "I'll", "you are": "you're", "we are": "we're", "they are": "they're", "you have": "you've", "we have": "we've",
    "they have": "they've", "you will": "you'll", "we will": "we'll", "they will": "they'll", "he will": "he'll", "she will": "she'll",
}  # fmt: skip
_STARTS = [(full[0].upper() + full[1:], short[0].upper() + short[1:]) for full, short in SHORT.items()]
CONTRACT = SHORT | dict(_STARTS)
EXPAND = {short: full for full, short in CONTRACT.items()}
_FULL = re.compile(r"\b(?:" + "|".join(CONTRACT) + r")(?= \w)")  # "Yes, I am." stays
_SHORT = re.compile(r"\b(?:" + "|".join(EXPAND) + r")\b")
_AUXILIARY = re.compile(r"\w+n't (?:I|you|he|she|it|we|they|this|that|there|the|Tom|anyone|anybody|someone)\b")  # "Don't you know?"
_STOPS = ".。"
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Shares:
    """The share of the pairs that can take a change which get it."""

    names: float = 0.4
    numbers: float = 0.4
    forms: float = 0.15  # contractions or full forms
    stop: float = 0.1
    question: float = 0.1
    first: float = 0.06  # the first letter of the source small
    small: float = 0.04  # all of the source small


# Few names are known in English and Japanese, and what stands in one's place is often no person.
JAPANESE = Shares(names=0.1)


def for_pairs(pairs: list[Pair], pair: str, factor: float, seed: int = 1) -> "Augmenter":
    """What suits the pairs of sentences of a language pair such as en-fr; the names are those of the pairs. factor : on all shares."""
    language = pair.rpartition("-")[2]
    shares = JAPANESE if language == "ja" else Shares()
    scaled = Shares(**{field.name: factor * getattr(shares, field.name) for field in fields(Shares)})
    found = names.transliterated(pairs, seed) if language == "ja" else names.copied(pairs, seed)
    return Augmenter(found, language, seed, scaled)


class Augmenter:
    """names : those that may take each other's place. language : of the targets. The same seed and pass give the same pairs."""

    def __init__(self, names: names.Names, language: str, seed: int = 1, shares: Shares = Shares()):
        self.names, self.language, self.seed, self.shares = names, language, seed, shares

    def __call__(self, pairs: list[Pair], epoch: int) -> list[Pair]:
        """The pairs as pass number `epoch` reads them."""
        chance = random.Random(f"augment/{self.seed}/{epoch}")
        return [self._changed(pair, chance) for pair in pairs]

    def _changed(self, pair: Pair, chance: random.Random) -> Pair:
        shares = self.shares
        if chance.random() < shares.names:
            pair = self.names.exchanged(pair, self.language, chance)
        if chance.random() < shares.numbers:
            pair = other_numbers(pair, chance)
        source, target = pair
        if chance.random() < shares.forms:
            source = other_form(source, chance)
        if source[-1:] == "." and target[-1:] in _STOPS and chance.random() < shares.stop:
            source, target = without_stop(source), without_stop(target)
        if source[-1:] == "?" and chance.random() < shares.question:
            source = source[:-1].rstrip() or source
        case = chance.random()
        if case < shares.small:
            source = source.lower()
        elif case < shares.small + shares.first and not source.startswith(("I ", "I'")):
            source = source[:1].lower() + source[1:]
        return source, target


def other_form(english: str, chance: random.Random) -> str:
    """Contractions instead of full forms, or the other way round."""
    if chance.random() < 0.5:
        return _FULL.sub(lambda match: CONTRACT[match.group()], english)
    if _AUXILIARY.search(english):  # "Do not you know?" is wrong
        return english
    return _SHORT.sub(lambda match: EXPAND[match.group()], english)


def without_stop(text: str) -> str:
    """The text without its one full stop; dots of an ellipsis, and of a sentence that has no other letter, stay."""
    bare = text.rstrip(_STOPS + " ")
    return bare if bare and len(text.rstrip()) - len(bare.rstrip()) <= 2 and not text.endswith("..") else text


def other_numbers(pair: Pair, chance: random.Random) -> Pair:
    """Numbers that stand in digits on both sides become others, of as many digits; 1, and numbers from 0 on, stay.

    Full-width digits stay full-width.
    """
    runs = [sorted(str(int(run)) for run in _DIGITS.findall(side)) for side in pair]
    if not runs[0] or runs[0] != runs[1]:
        return pair
    new = {number: _drawn(number, chance) for number in runs[0]}
    return tuple(_DIGITS.sub(lambda match: _written(new, match.group()), side) for side in pair)


def _drawn(number: str, chance: random.Random) -> str:
    if number in ("0", "1"):
        return number
    first = chance.choice("23456789") if len(number) == 1 else chance.choice("123456789")
    return first + "".join(chance.choice("0123456789") for _ in number[1:])


def _written(new: dict[str, str], run: str) -> str:
    """The new number for a run of digits, in digits as wide as the run's, with its zeros before."""
    text = new[str(int(run))].zfill(len(run))
    return text if run.isascii() else "".join(chr(ord("０") + int(digit)) for digit in text)
