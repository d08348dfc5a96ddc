"""New names that look like given ones: a Markov chain of letters."""

import random
from collections import defaultdict
from collections.abc import Sequence

_ACCENTS = str.maketrans("acelnosuyz", "áçéłñöšüýž")
_SHORTEST, _LONGEST = 3, 11  # letters


class NameMaker:
    """Each letter is drawn as it follows two others in `names`."""

    def __init__(self, names: Sequence[str]):
        self._following = defaultdict(list)
        for name in names:
            text = f"^^{name.lower()}$"
            for place in range(2, len(text)):
                self._following[text[place - 2 : place]].append(text[place])

    def name(self, chance: random.Random) -> str:
        """A name in small letters. A fifth get an accent somewhere."""
        text = "^^"
        while not text.endswith("$") and len(text) < 16:
            text += chance.choice(self._following[text[-2:]])
        word = text.strip("^$")
        if chance.random() < 0.2:
            place = chance.randrange(1, max(2, len(word)))
            word = word[:place] + word[place : place + 1].translate(_ACCENTS) + word[place + 1 :]
        return word


def made_up(names: list[str], count: int, seed: int = 1) -> list[str]:
    """At most `count` names that are not in `names`. The same arguments give the same names."""
    chance, maker, made = random.Random(f"names/{seed}"), NameMaker(names), {}
    for _ in range(20 * count):
        word = maker.name(chance)
        if _SHORTEST <= len(word) <= _LONGEST and word.capitalize() not in names and word.isalpha():
            made[word.capitalize()] = None
        if len(made) == count:
            break
    return list(made)
