"""New names that look like given ones: a Markov chain of letters."""

import random
from collections import defaultdict

_ACCENTS = str.maketrans("acelnosuyz", "áçéłñöšüýž")
_SHORTEST, _LONGEST = 3, 11  # letters


def made_up(names: list[str], count: int, seed: int = 1) -> list[str]:
    """At most `count` names that are not in `names`: each letter is drawn as it follows two others in `names`.

    A fifth get an accent somewhere. The same arguments give the same names.
    """
    chance, following = random.Random(f"names/{seed}"), defaultdict(list)
    for name in names:
        text = f"^^{name.lower()}$"
        for place in range(2, len(text)):
            following[text[place - 2 : place]].append(text[place])
    made: dict[str, None] = {}
    for _ in range(20 * count):
        word = _drawn(following, chance)
        if chance.random() < 0.2:
            place = chance.randrange(1, max(2, len(word)))
            word = word[:place] + word[place : place + 1].translate(_ACCENTS) + word[place + 1 :]
        if _SHORTEST <= len(word) <= _LONGEST and word.capitalize() not in names and word.isalpha():
            made[word.capitalize()] = None
        if len(made) == count:
            break
    return list(made)


def _drawn(following: dict[str, list[str]], chance: random.Random) -> str:
    text = "^^"
    while not text.endswith("$") and len(text) < 16:
        text += chance.choice(following[text[-2:]])
    return text.strip("^$")
