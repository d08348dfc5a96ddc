"""A number in an English sentence and its Japanese translation becomes another number, in digits on both sides.

English has it in words or in digits, Japanese in characters (三) or in digits. numbers.py says what this is for,
and does the same for German and French.
"""

import random
import re

from attnviz.data.augmentation.numbers import ENGLISH, PART_OF_ANOTHER, full_width, random_number
from attnviz.data.readers import Pairs, SentencePair

REPEATS = 5  # how many more times a pass reads each pair with such a number: there are fewer than in German and French

_VALUES = dict(zip(ENGLISH, (*range(2, 13), *range(20, 100, 10))))
_ENGLISH = re.compile(
    rf"(?<![\w-])(?:{'|'.join(ENGLISH)})(?![\w-])|(?<![\w:.,-])[1-9]\d{{0,3}}(?![\w:-]|[.,]\d)", re.IGNORECASE
)
# One of these is drawn for each new number; a number of three digits or more keeps its own.
_DIGIT_COUNTS = (1, 2, 2, 2, 3, 3, 4, 4)
_UNITS, _POWERS = "一二三四五六七八九", {"十": 10, "百": 100, "千": 1000}
_CHARACTERS = rf"[{_UNITS}十百千]"
# A number at the beginning of a word, and つ behind it, which counts things up to nine. Not a part of a larger number,
# of a date or of a time of day.
_JAPANESE = re.compile(
    rf"(?<![^\s「（])(?<!月 )(?P<number>{_CHARACTERS}+(?: {_CHARACTERS}+)*|[0-9０-９]+)"
    rf"(?! ?(?:{_CHARACTERS}|[0-9０-９月半万億：:、，,.．〜]|時(?! ?間))) ?(?P<counter>つ)?"
)


def in_digits(pair: SentencePair, chance: random.Random) -> SentencePair:
    """The pair with another number, in digits, in place of each number from two on that stands once on both sides.

    Its target must have spaces between words.
    """
    source, target = pair
    new = {value: _new(value, chance) for value in _shared(pair)}
    source = _ENGLISH.sub(lambda match: new.get(_english_value(match.group()), match.group()), source)
    return source, _JAPANESE.sub(lambda match: _counted(match, new), target)


def repeated(pairs: Pairs) -> Pairs:
    """The pairs, and after them those that `in_digits` changes, REPEATS times."""
    return pairs + REPEATS * [pair for pair in pairs if _shared(pair)]


def _shared(pair: SentencePair) -> list[int]:
    """The numbers from two on that stand once on both sides."""
    source, target = pair
    if PART_OF_ANOTHER.search(source):
        return []
    numbers = [_english_value(match.group()) for match in _ENGLISH.finditer(source)]
    counted = [_japanese_value(match["number"]) for match in _JAPANESE.finditer(target)]
    return [value for value in numbers if value > 1 and numbers.count(value) == counted.count(value) == 1]


def _new(value: int, chance: random.Random) -> str:
    digits = len(str(value))
    return random_number(digits if digits > 2 else chance.choice(_DIGIT_COUNTS), chance)


def _english_value(text: str) -> int:
    return int(text) if text.isdigit() else _VALUES[text.lower()]


def _japanese_value(text: str) -> int:
    """The value of a number in digits or in characters: 二千三百四十五 is 2345."""
    text = text.replace(" ", "")
    if text.isdecimal():
        return int(text)
    total = unit = 0
    for character in text:
        if character in _UNITS:
            unit = _UNITS.index(character) + 1
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
