"""Names exchanged for other names on both sides of a pair, so that a model learns to copy names it has never seen.

Names are found in sentence pairs: words that are spelt alike on both sides, or that mostly occur with the same
katakana. More are made up by a Markov chain of letters.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from attnviz.data.readers import SentencePair

_ACCENTS = str.maketrans("acelnosuyz", "áçéłñöšüýž")
_SHORTEST, _LONGEST = 3, 11  # letters


class NameMaker:
    """Draws names letter by letter: a Markov chain of order 2 over the letters of `names`."""

    def __init__(self, names: Sequence[str]):
        self._following = defaultdict(list)
        for name in names:
            text = f"^^{name.lower()}$"
            for place in range(2, len(text)):
                self._following[text[place - 2 : place]].append(text[place])

    def name(self, generator: random.Random) -> str:
        """A name in lower case. One in five gets an accent."""
        text = "^^"
        while not text.endswith("$") and len(text) < 16:
            text += generator.choice(self._following[text[-2:]])
        word = text.strip("^$")
        if generator.random() < 0.2:
            place = generator.randrange(1, max(2, len(word)))
            word = word[:place] + word[place : place + 1].translate(_ACCENTS) + word[place + 1 :]
        return word


def made_up(names: list[str], count: int, seed: int = 1) -> list[str]:
    """At most `count` names that are not in `names`. The same arguments give the same names."""
    generator, maker, made = random.Random(f"names/{seed}"), NameMaker(names), {}
    for _ in range(20 * count):
        word = maker.name(generator)
        if _SHORTEST <= len(word) <= _LONGEST and word.capitalize() not in names and word.isalpha():
            made[word.capitalize()] = None
        if len(made) == count:
            break
    return list(made)


WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
MADE_UP = 6000  # names
_FRENCH_VOWELS = "aeiouyàâäéèêëîïôöûüœæ"


@dataclass(frozen=True)
class Name:
    """A name in both languages. woman : is it a woman's name? None if unknown."""

    source: str
    target: str
    woman: bool | None = None


class Names:
    """Names that may be exchanged for each other. copied : both languages spell them alike; then some made-up names are
    added."""

    def __init__(self, names: Iterable[Name], copied: bool, seed: int = 1):
        self.by_source = {name.source: name for name in names}
        self.copied = copied
        spellings = _made_up(tuple(self.by_source), seed) if copied and self.by_source else ()
        pool = [*self.by_source.values(), *(Name(text, text, text[-1] in "aei") for text in spellings)]
        self.pools: dict[bool | None, list[Name]] = {None: pool}
        for woman in (True, False):
            self.pools[woman] = [name for name in pool if name.woman in (woman, None)] or pool

    def exchanged(self, pair: SentencePair, language: str, generator: random.Random) -> SentencePair:
        """The pair with its names exchanged. A name that occurs unequally often on the two sides is unchanged."""
        source, target = pair
        for word in sorted(_words(source)):
            name = self.by_source.get(word if self.copied else word.capitalize())
            if name is None or not self._in_as_many_places(pair, word, name.target):
                continue
            new = self._random_name(name, generator)
            source = _place(word, True).sub(lambda match: new.source + (match.group(1) or ""), source)
            target = _put(target, name.target, new.target, language, self.copied)
        return source, target

    def _in_as_many_places(self, pair: SentencePair, source: str, target: str) -> bool:
        """Does the name occur in the pair, equally often on both sides?"""
        places = [len(_place(source, True).findall(pair[0])), len(_place(target, self.copied).findall(pair[1]))]
        return places[0] == places[1] > 0

    def _random_name(self, name: Name, generator: random.Random) -> Name:
        new = generator.choice(self.pools[name.woman])
        if self.copied and generator.random() < 0.1:  # with a family name
            last = generator.choice(self.pools[None]).source
            new = Name(f"{new.source} {last}", f"{new.target} {last}")
        return new


@lru_cache(maxsize=8)
def _made_up(names: tuple[str, ...], seed: int) -> tuple[str, ...]:
    """MADE_UP names like these. Cached, because they take a quarter of a second and are often needed again."""
    return tuple(made_up(list(names), MADE_UP, seed))


def _words(source: str) -> set[str]:
    """The words of a text, with and without the ending of a genitive."""
    words = set(WORD.findall(source))
    return words | {word.removesuffix("'s") for word in words}


@cache
def _place(name: str, spaced: bool) -> re.Pattern:
    """A pattern that finds a name as a whole word; its group is the genitive ending. In katakana a word is a run of
    characters."""
    if not spaced:
        return re.compile(rf"(?<![ァ-ヺー]){re.escape(name)}(?![ァ-ヺー])()")
    return re.compile(rf"(?<![\w-]){re.escape(name)}('s|'|s)?(?![\w-])")


def _put(text: str, old: str, new: str, language: str, spaced: bool) -> str:
    """The text with `new` in place of `old`, and with the elisions or endings that the language requires."""
    if language == "de":
        return _place(old, spaced).sub(lambda match: new + _german_genitive(new, match.group(1) or ""), text)
    text = _place(old, spaced).sub(lambda match: new + (match.group(1) or ""), text)
    return _french_elision(text, new) if language == "fr" else text


def _french_elision(text: str, name: str) -> str:
    """« de » and « que » elided according to the name's first letter: de Tom, d'Anna. No elision before h."""
    vowel = name[0].lower() in _FRENCH_VOWELS
    before, after = (r"\b([DdQq](?:u)?)e ", r"\1'") if vowel else (r"\b([Dd]|[Qq]u)'", r"\1e ")
    return re.sub(rf"{before}(?={re.escape(name)}(?!\w))", after, text)


def _german_genitive(name: str, ending: str) -> str:
    """Toms, but Max'."""
    if not ending:
        return ""
    return "'" if name[-1].lower() in "sxzß" else "s"


_KATAKANA = re.compile("[ァ-ヺー]{2,}")
_SHE, _HE = {"she", "her", "herself"}, {"he", "his", "him", "himself"}
LOWER_CASE = 0.02  # a name is written in lower case at most so often for each time with a capital
TOGETHER = 3  # pairs, at least, in which a name and its katakana stand together


def copied(pairs: list[SentencePair], seed: int = 1) -> Names:
    """The names that are capitalised and spelt alike on both sides, and rarely in lower case in English."""
    capital, lower, shared, genders = Counter(), Counter(), Counter(), defaultdict(Counter)
    for source, target in pairs:
        words = [word.removesuffix("'s") for word in WORD.findall(source)]
        capital.update(word for word in words if word[:1].isupper())
        lower.update(word for word in words if word[:1].islower())
        both = {word for word in words if _capitalised(word)} & _target_forms(target)
        shared.update(both)
        if len(both) == 1:
            small = {word.lower() for word in words}
            genders[both.pop()].update({True: bool(small & _SHE), False: bool(small & _HE)})
    names = sorted(word for word in shared if _rarely_lower(word, lower, capital))
    return Names((Name(word, word, _is_woman(genders[word])) for word in names), copied=True, seed=seed)


def transliterated(pairs: list[SentencePair], seed: int = 1) -> Names:
    """English names with their katakana: the two nearly always occur together, and the name is rarely in lower case."""
    capital, lower, kana, together = Counter(), Counter(), Counter(), Counter()
    for source, target in pairs:
        if source == source.lower():  # nothing tells names in it
            continue
        words = {word.removesuffix("'s") for word in WORD.findall(source)}
        runs = set(_KATAKANA.findall(target))
        capital.update(word for word in words if _capitalised(word))
        lower.update(word for word in words if word[:1].islower())
        kana.update(runs)
        together.update((word, run) for word in words if word[:1].isupper() for run in runs)
    names: dict[str, Name] = {}
    for (word, run), count in sorted(together.items(), key=lambda item: (item[1], item[0])):
        nearly_always = count >= TOGETHER and count > 0.5 * capital[word] and count > 0.5 * kana[run]
        if nearly_always and _rarely_lower(word, lower, capital):
            names[word] = Name(word, run)  # the katakana that stands with it most often comes last
    return Names(names.values(), copied=False, seed=seed)


def _capitalised(word: str) -> bool:
    """Three letters or more, of which only the first is a capital."""
    return word[:1].isupper() and word[1:].islower() and len(word) > 2


def _rarely_lower(word: str, lower: Counter, capital: Counter) -> bool:
    return lower[word.lower()] <= LOWER_CASE * capital[word]


def _target_forms(target: str) -> set[str]:
    """The words of a target, also without a French elision, and without a German ending."""
    words = WORD.findall(target)
    return {form for word in words for form in (word, word.rpartition("'")[2], word.removesuffix("s"))}


def _is_woman(counts: Counter) -> bool | None:
    """Is it a woman's name? counts : number of its sentences with "she" (True) and with "he" (False)."""
    return None if abs(counts[True] - counts[False]) < 2 else counts[True] > counts[False]
