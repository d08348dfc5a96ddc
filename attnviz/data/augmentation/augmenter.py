"""Sentences as people type them: each pass reads the pairs with small changes that keep the translation right.

A share of the pairs loses its final mark or its capitals, or has English contractions instead of full forms. Names and
numbers that stand on both sides become others, and some stand beside a sentence, so that a model learns to copy what it
has never seen. Number words become digits.
"""

import random
from dataclasses import dataclass, fields

from attnviz.data.augmentation import japanese_numbers, numbers
from attnviz.data.augmentation.english_forms import other_form
from attnviz.data.augmentation.names import NameMaker, Names, copied, transliterated
from attnviz.data.augmentation.numbers import full_width, other_numbers, random_number
from attnviz.data.readers import Pairs, SentencePair

_LETTERS = "aaaabcdeeeefghiiijklmnooopqrstuuvwxyzáäåçéèíłñóöøšüž"
_NUMBERS = 0.55  # of the words: numbers, telephone numbers among them
_MOST = 3  # copied words in an aside; twice as many where they are the whole text


class Asides:
    """Copied words beside a sentence: names and numbers that both languages write alike. Text that is the same on both
    sides teaches copying (Currey, Miceli Barone & Heafield 2017, "Copied monolingual data improves low-resource neural
    machine translation"). The names of a corpus are too few: a model learns them by heart. So these are made up.

    names : those that made-up ones are to look like. japanese : whether the targets are Japanese; then the copied
    words are numbers only, and the target has them in full-width digits."""

    def __init__(self, names: list[str], japanese: bool = False):
        self._maker, self._japanese = NameMaker(names) if names and not japanese else None, japanese

    def beside(self, pair: SentencePair, chance: random.Random) -> SentencePair:
        """The pair with copied words in brackets, after a dash, before it, or, of one in four, these words alone.

        Japanese text has them in brackets or before it only: from text that ends with a number a model learns to stop
        after any number.
        """
        form = chance.choice(("brackets", "before") if self._japanese else ("brackets", "dash", "before", "alone"))
        words = [self._word(chance) for _ in range(chance.randint(1, _MOST * (1 + (form == "alone"))))]
        text = chance.choice((" ", ", ")).join(words)
        target_text = full_width(text) if self._japanese else text
        return _together(form, pair[0], text), _together(form, pair[1], target_text)

    def _word(self, chance: random.Random) -> str:
        kind = chance.random() * (_NUMBERS if self._japanese else 1)
        if kind < 0.45:
            return random_number(chance.choice((1, 2, 2, 3, 3, 4, 4, 4, 5, 6)), chance)
        if kind < _NUMBERS:
            return f"{random_number(3, chance)}-{random_number(4, chance)}"
        if kind < 0.85 and self._maker:
            return self._maker.name(chance).capitalize()
        return "".join(chance.choice(_LETTERS) for _ in range(chance.randint(3, 10))).capitalize()


def _together(form: str, side: str, text: str) -> str:
    if form == "brackets":
        end = side[-1:] if side[-1:] in ".。!?" else ""
        return f"{side.removesuffix(end).rstrip() if end else side} ({text}){end}"
    return {"dash": f"{side} - {text}", "before": f"{text} - {side}", "alone": text}[form]


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
    find = transliterated if language == "ja" else copied
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
        return numbers.in_digits(pair, self.language, chance)

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
