"""Names exchanged for other names on both sides of a pair, so that a model learns to copy names it has never seen."""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from attnviz.data.augmentation.made_up_names import made_up
from attnviz.data.readers import SentencePair

WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
MADE_UP = 6000  # names
_FRENCH_VOWELS = "aeiouyàâäéèêëîïôöûüœæ"


@dataclass(frozen=True)
class Name:
    """A name in both languages. woman : whether it is a woman's; None where nothing tells."""

    source: str
    target: str
    woman: bool | None = None


class Names:
    """Names that may take each other's place. copied : both languages spell them alike; then some are made up too."""

    def __init__(self, names: Iterable[Name], copied: bool, seed: int = 1):
        self.by_source = {name.source: name for name in names}
        self.copied = copied
        spellings = _made_up(tuple(self.by_source), seed) if copied and self.by_source else ()
        pool = [*self.by_source.values(), *(Name(text, text, text[-1] in "aei") for text in spellings)]
        self.pools = {None: pool}
        for woman in (True, False):
            self.pools[woman] = [name for name in pool if name.woman in (woman, None)] or pool

    def exchanged(self, pair: SentencePair, language: str, chance: random.Random) -> SentencePair:
        """The pair with other names. A name that stands in another number of places on the two sides is kept."""
        source, target = pair
        for word in sorted(_words(source)):
            name = self.by_source.get(word if self.copied else word.capitalize())
            if name is None or not self._in_as_many_places(pair, word, name.target):
                continue
            new = self._drawn(name, chance)
            source = _place(word, True).sub(lambda match: new.source + (match.group(1) or ""), source)
            target = _put(target, name.target, new.target, language, self.copied)
        return source, target

    def _in_as_many_places(self, pair: SentencePair, source: str, target: str) -> bool:
        """Does the pair hold the name, as often on one side as on the other?"""
        places = [len(_place(source, True).findall(pair[0])), len(_place(target, self.copied).findall(pair[1]))]
        return places[0] == places[1] > 0

    def _drawn(self, name: Name, chance: random.Random) -> Name:
        new = chance.choice(self.pools[name.woman])
        if self.copied and chance.random() < 0.1:  # with a family name
            last = chance.choice(self.pools[None]).source
            new = Name(f"{new.source} {last}", f"{new.target} {last}")
        return new


@lru_cache(maxsize=8)
def _made_up(names: tuple[str, ...], seed: int) -> tuple[str, ...]:
    """MADE_UP names like these: they take a quarter of a second, and the same ones are often wanted again."""
    return tuple(made_up(list(names), MADE_UP, seed))


def _words(source: str) -> set[str]:
    """The words of a text, with and without the ending of a genitive."""
    words = set(WORD.findall(source))
    return words | {word.removesuffix("'s") for word in words}


@cache
def _place(name: str, spaced: bool) -> re.Pattern:
    """Where a name stands as a word; the group is its ending of a genitive. In katakana a run is the word."""
    if not spaced:
        return re.compile(rf"(?<![ァ-ヺー]){re.escape(name)}(?![ァ-ヺー])()")
    return re.compile(rf"(?<![\w-]){re.escape(name)}('s|'|s)?(?![\w-])")


def _put(text: str, old: str, new: str, language: str, spaced: bool) -> str:
    """The text with `new` for `old`, and with the elisions or endings that the language wants around it."""
    if language == "de":
        return _place(old, spaced).sub(lambda match: new + _german_genitive(new, match.group(1) or ""), text)
    text = _place(old, spaced).sub(lambda match: new + (match.group(1) or ""), text)
    return _french_elision(text, new) if language == "fr" else text


def _french_elision(text: str, name: str) -> str:
    """« de » and « que » before the name as its first letter wants: de Tom, d'Anna. No elision before h."""
    vowel = name[0].lower() in _FRENCH_VOWELS
    before, after = (r"\b([DdQq](?:u)?)e ", r"\1'") if vowel else (r"\b([Dd]|[Qq]u)'", r"\1e ")
    return re.sub(rf"{before}(?={re.escape(name)}(?!\w))", after, text)


def _german_genitive(name: str, ending: str) -> str:
    """Toms, but Max'."""
    if not ending:
        return ""
    return "'" if name[-1].lower() in "sxzß" else "s"
