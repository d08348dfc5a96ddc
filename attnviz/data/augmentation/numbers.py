"""Numbers in digits, and their exchange for others on both sides of a pair, so that a model learns to copy any."""

import random
import re

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
