"""Numbers written as words on both sides of a pair, put in digits, so that digits stand in more kinds of sentence.

The digits of a corpus stand in few kinds of sentence: times, years, prices. In other sentences a model that has
seen only those writes the beginning of a number as a word ("34" as "drei4").
"""

import random
import re
from functools import cache

from attnviz.data.augmentation.numbers import random_number
from attnviz.data.readers import SentencePair

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
