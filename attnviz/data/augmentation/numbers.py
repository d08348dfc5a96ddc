"""Exchange numbers in digits for others on both sides of a pair, so that a model learns to copy any number; and put
number words in digits, so that digits occur in more kinds of sentence.

A corpus has digits in few kinds of sentence: times, years, prices. A model trained on these alone writes the beginning
of a number as a word in other sentences ("34" as "drei4"). Japanese numbers in characters (三) or digits, paired with
English words or digits, become digits on both sides.
"""

import random
import re
from functools import cache

from attnviz.data.readers import Pairs, SentencePair

_DIGITS = re.compile(r"\d+")
_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


def random_number(digits: int, generator: random.Random) -> str:
    """A random number with this number of digits: 2 to 9, 10 to 99, ... A third of the further digits repeat the digit
    before them, which is the hardest case to copy."""
    text = generator.choice("23456789" if digits == 1 else "123456789")
    while len(text) < digits:
        text += text[-1] if generator.random() < 1 / 3 else generator.choice("0123456789")
    return text


def other_numbers(pair: tuple[str, str], generator: random.Random) -> tuple[str, str]:
    """Exchange numbers that both sides have in digits for others with the same number of digits. 0 and 1 are unchanged.

    Full-width digits stay full-width. A pair whose sides have different numbers is unchanged.
    """
    numbers = [sorted(str(int(run)) for run in _DIGITS.findall(side)) for side in pair]
    if not numbers[0] or numbers[0] != numbers[1]:
        return pair
    new = {number: _other_number(number, generator) for number in numbers[0]}
    source, target = (_DIGITS.sub(lambda match: _written(new, match.group()), side) for side in pair)
    return source, target


def _other_number(number: str, generator: random.Random) -> str:
    """Another number of as many digits; never 0 or 1, which change the words around them."""
    new = number
    while new == number and number not in ("0", "1"):
        new = random_number(len(number), generator)
    return new


def _written(new: dict[str, str], run: str) -> str:
    """The new number for a run of digits, with the same leading zeros and width of digits."""
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


def in_digits(pair: SentencePair, language: str, generator: random.Random) -> SentencePair:
    """The pair with another number, in digits, for each number word that stands once on both sides.

    language : of the target. Only German and French have a table. Pairs of other languages, with larger numbers, or
    with a time of day are unchanged.
    """
    source, target = pair
    if language not in _TARGETS or PART_OF_ANOTHER.search(source):
        return pair
    for english, word in zip(ENGLISH, _TARGETS[language].split()):
        places = _place(english), _place(word)
        if all(len(place.findall(side)) == 1 for place, side in zip(places, (source, target))):
            number = random_number(generator.choice(DIGIT_COUNTS), generator)
            source, target = places[0].sub(number, source), places[1].sub(number, target)
    return source, target


@cache
def _place(word: str) -> re.Pattern:
    """A pattern that finds a word alone, not as a part of a compound such as twenty-two."""
    return re.compile(rf"(?<![\w-]){word}(?![\w-])", re.IGNORECASE)


REPEATS = 5  # how many more times a pass reads each pair with such a number: there are fewer than in German and French

_VALUES = dict(zip(ENGLISH, (*range(2, 13), *range(20, 100, 10))))
_ENGLISH = re.compile(
    rf"(?<![\w-])(?:{'|'.join(ENGLISH)})(?![\w-])|(?<![\w:.,-])[1-9]\d{{0,3}}(?![\w:-]|[.,]\d)", re.IGNORECASE
)
# One of these is drawn for each new number; a number of three digits or more keeps its own.
_DIGIT_COUNTS = (1, 2, 2, 2, 3, 3, 4, 4)
_CHARACTER_UNITS, _POWERS = "一二三四五六七八九", {"十": 10, "百": 100, "千": 1000}
_CHARACTERS = rf"[{_CHARACTER_UNITS}十百千]"
# A number at the beginning of a word, and つ behind it, which counts things up to nine. Not a part of a larger number,
# of a date or of a time of day.
_JAPANESE = re.compile(
    rf"(?<![^\s「（])(?<!月 )(?P<number>{_CHARACTERS}+(?: {_CHARACTERS}+)*|[0-9０-９]+)"
    rf"(?! ?(?:{_CHARACTERS}|[0-9０-９月半万億：:、，,.．〜]|時(?! ?間))) ?(?P<counter>つ)?"
)


def japanese_in_digits(pair: SentencePair, generator: random.Random) -> SentencePair:
    """The pair with another number, in digits, in place of each number from two on that stands once on both sides.

    Its target must have spaces between words.
    """
    source, target = pair
    new = {value: _new(value, generator) for value in _shared(pair)}
    source = _ENGLISH.sub(lambda match: new.get(_english_value(match.group()), match.group()), source)
    return source, _JAPANESE.sub(lambda match: _counted(match, new), target)


def repeated_japanese(pairs: Pairs) -> Pairs:
    """The pairs, followed by REPEATS copies of those that `in_digits` changes."""
    return pairs + REPEATS * [pair for pair in pairs if _shared(pair)]


def _shared(pair: SentencePair) -> list[int]:
    """The numbers from two on that stand once on both sides."""
    source, target = pair
    if PART_OF_ANOTHER.search(source):
        return []
    numbers = [_english_value(match.group()) for match in _ENGLISH.finditer(source)]
    counted = [_japanese_value(match["number"]) for match in _JAPANESE.finditer(target)]
    return [value for value in numbers if value > 1 and numbers.count(value) == counted.count(value) == 1]


def _new(value: int, generator: random.Random) -> str:
    digits = len(str(value))
    return random_number(digits if digits > 2 else generator.choice(_DIGIT_COUNTS), generator)


def _english_value(text: str) -> int:
    return int(text) if text.isdigit() else _VALUES[text.lower()]


def _japanese_value(text: str) -> int:
    """The value of a number in digits or in characters: 二千三百四十五 is 2345."""
    text = text.replace(" ", "")
    if text.isdecimal():
        return int(text)
    total = unit = 0
    for character in text:
        if character in _CHARACTER_UNITS:
            unit = _CHARACTER_UNITS.index(character) + 1
        else:
            total, unit = total + (unit or 1) * _POWERS[character], 0
    return total + unit


def _counted(match: re.Match, new: dict[int, str]) -> str:
    """The text of the match, with its new number if it has one. From ten on, 個 takes the place of つ."""
    number = new.get(_japanese_value(match["number"]))
    if number is None:
        return match.group()
    counter = match["counter"] or ""
    return f"{full_width(number)} {'個' if counter and len(number) > 1 else counter}"
