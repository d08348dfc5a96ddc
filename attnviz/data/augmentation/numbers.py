"""Numbers in digits, and their exchange for others on both sides of a pair, so that a model learns to copy any; numbers
written as words, put in digits, so that digits stand in more kinds of sentence.

The digits of a corpus stand in few kinds of sentence: times, years, prices. In other sentences a model that has
seen only those writes the beginning of a number as a word ("34" as "drei4").
"""

import random
import re
from functools import cache

from attnviz.data.readers import SentencePair

_DIGITS = re.compile(r"\d+")
_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


def random_number(digits: int, chance: random.Random) -> str:
    """A number of so many digits: 2 to 9, 10 to 99, ... One further digit in three is made to repeat the one before it,
    which is the hardest to copy."""
    text = chance.choice("23456789" if digits == 1 else "123456789")
    while len(text) < digits:
        text += text[-1] if chance.random() < 1 / 3 else chance.choice("0123456789")
    return text


def other_numbers(pair: tuple[str, str], chance: random.Random) -> tuple[str, str]:
    """Numbers that stand in digits on both sides become others, of as many digits. 0 and 1 stay.

    Full-width digits stay full-width. A pair whose two sides hold different numbers stays as it is.
    """
    numbers = [sorted(str(int(run)) for run in _DIGITS.findall(side)) for side in pair]
    if not numbers[0] or numbers[0] != numbers[1]:
        return pair
    new = {number: _drawn(number, chance) for number in numbers[0]}
    return tuple(_DIGITS.sub(lambda match: _written(new, match.group()), side) for side in pair)


def _drawn(number: str, chance: random.Random) -> str:
    """Another number of as many digits; never 0 or 1, which change the words around them."""
    new = number
    while new == number and number not in ("0", "1"):
        new = random_number(len(number), chance)
    return new


def _written(new: dict[str, str], run: str) -> str:
    """The new number for a run of digits: with the zeros before it, in digits of the same width."""
    text = new[str(int(run))].zfill(len(run))
    return text if run.isascii() else full_width(text)


def full_width(text: str) -> str:
    """The text with its digits as wide as Japanese characters."""
    return text.translate(_FULL_WIDTH)


# From two: in German and French, one is also the indefinite article.
_UNITS = "two three four five six seven eight nine"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ENGLISH = tuple(f"{_UNITS} ten eleven twelve {_TENS}".split())
_TARGETS = {
    "de": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf "
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze "
    "vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
}
# Where a word is a part of a number or of a time: two hundred, twenty one, half past two ("halb drei"), ten o'clock.
PART_OF_ANOTHER = re.compile(
    r"\b(?:hundred|thousand|\w+illion|dozen|half|quarter|past|o'clock)"
    rf"|\b(?:{_TENS.replace(' ', '|')}) (?:one|{_UNITS.replace(' ', '|')})\b",
    re.IGNORECASE,
)
DIGIT_COUNTS = (1, 1, 2, 2, 2, 2, 3, 4)  # one of these is drawn for each new number


def in_digits(pair: SentencePair, language: str, chance: random.Random) -> SentencePair:
    """The pair with another number, in digits, for each number word that stands once on both sides.

    language : of the target. Only German and French have a table; any other pair stays as it is, and so does a pair
    with larger numbers or a time of day.
    """
    source, target = pair
    if language not in _TARGETS or PART_OF_ANOTHER.search(source):
        return pair
    for english, word in zip(ENGLISH, _TARGETS[language].split()):
        places = _place(english), _place(word)
        if all(len(place.findall(side)) == 1 for place, side in zip(places, (source, target))):
            number = random_number(chance.choice(DIGIT_COUNTS), chance)
            source, target = places[0].sub(number, source), places[1].sub(number, target)
    return source, target


@cache
def _place(word: str) -> re.Pattern:
    """Where a word stands, alone: not as a part of twenty-two."""
    return re.compile(rf"(?<![\w-]){word}(?![\w-])", re.IGNORECASE)
