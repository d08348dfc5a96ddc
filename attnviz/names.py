"""Names that stand on both sides of a pair, found in the pairs themselves, and others made up to stand in their place."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

Pair = tuple[str, str]
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_KATAKANA = re.compile("[ァ-ヺー]{2,}")
_SHE, _HE = {"she", "her", "herself"}, {"he", "his", "him", "himself"}
_VOWELS = "aeiouyàâäéèêëîïôöûüœæh"
_ACCENTS = str.maketrans("acelnosuyz", "áçéłñöšüýž")
MADE_UP = 6000  # names
SMALL = 0.02  # a name is written small in so few of its places


@dataclass(frozen=True)
class Name:
    """A name in both languages, and whether it is a woman's: True, False, or None where nothing tells."""

    source: str
    target: str
    woman: bool | None = None


class Names:
    """Names that may take each other's place. copied : they are spelt alike on both sides, and some are made up."""

    def __init__(self, known: Iterable[Name], copied: bool, seed: int = 1):
        self.known = {name.source: name for name in known}
        self.copied = copied
        pool = [*self.known.values(), *(made_up(list(self.known), MADE_UP, seed) if copied and self.known else [])]
        self.pools = {woman: [n for n in pool if n.woman in (woman, None)] or pool for woman in (True, False)} | {None: pool}

    def exchanged(self, pair: Pair, language: str, chance: random.Random) -> Pair:
        """The pair with other names, where it has names in as many places on both sides."""
        source, target = pair
        for word in sorted(set(_WORD.findall(source)) | {w.removesuffix("'s") for w in _WORD.findall(source)}):
            name = self.known.get(word if self.copied else word.capitalize())
            if name is None:
                continue
            old = word, name.target
            places = [len(_place(text, self.copied or side == 0).findall(pair[side])) for side, text in enumerate(old)]
            if not places[0] or places[0] != places[1]:
                continue
            new = self._drawn(name, chance)
            source = _place(word, True).sub(lambda match: new.source + (match.group(1) or ""), source)
            target = _put(target, name.target, new.target, language, self.copied)
        return source, target

    def _drawn(self, name: Name, chance: random.Random) -> Name:
        new = chance.choice(self.pools[name.woman])
        if self.copied and chance.random() < 0.1:  # with a family name
            last = chance.choice(self.pools[None]).source
            new = Name(f"{new.source} {last}", f"{new.target} {last}")
        return new


@cache
def _place(name: str, spaced: bool) -> re.Pattern:
    """Where a name stands as a word: its ending of a genitive is the group. In katakana a run is the word."""
    if not spaced:
        return re.compile(rf"(?<![ァ-ヺー]){re.escape(name)}(?![ァ-ヺー])()")
    return re.compile(rf"(?<![\w-]){re.escape(name)}('s|'|s)?(?![\w-])")


def _put(text: str, old: str, new: str, language: str, spaced: bool) -> str:
    """The text with `new` for `old`, and what stands before or after it as the language wants."""
    if language == "de":
        return _place(old, spaced).sub(lambda match: new + _genitive(new, match.group(1) or ""), text)
    text = _place(old, spaced).sub(lambda match: new + (match.group(1) or ""), text)
    if language == "fr":
        vowel = new[0].lower() in _VOWELS[:-1]
        begins, ends = (r"\b([DdQq](?:u)?)e ", r"\1'") if vowel else (r"\b([Dd]|[Qq]u)'", r"\1e ")
        text = re.sub(rf"{begins}(?={re.escape(new)}(?!\w))", ends, text)
    return text


def _genitive(name: str, ending: str) -> str:
    """Toms, but Max'."""
    if not ending:
        return ""
    return "'" if name[-1].lower() in "sxzß" else "s"


def copied(pairs: list[Pair], seed: int = 1) -> Names:
    """The names that are spelt alike on both sides of pairs: capitals on both, and in English hardly ever written small."""
    large, small = Counter(), Counter()
    shared: Counter = Counter()
    genders: dict[str, Counter] = defaultdict(Counter)
    for source, target in pairs:
        words = [word.removesuffix("'s") for word in _WORD.findall(source)]
        large.update(w for w in words if w[:1].isupper())
        small.update(w for w in words if w[:1].islower())
        both = {w for w in words if w[:1].isupper() and w[1:].islower() and len(w) > 2} & _targets(target)
        shared.update(both)
        if len(both) == 1:
            said = {w.lower() for w in words}
            genders[both.pop()].update({True: bool(said & _SHE), False: bool(said & _HE)})
    names = [w for w in shared if small[w.lower()] <= SMALL * large[w]]
    return Names((Name(w, w, _woman(genders[w])) for w in sorted(names)), True, seed)


def _targets(target: str) -> set[str]:
    return {form for word in _WORD.findall(target) for form in (word, word.rpartition("'")[2], word.removesuffix("s"))}


def _woman(counts: Counter) -> bool | None:
    if abs(counts[True] - counts[False]) < 2:
        return None
    return counts[True] > counts[False]


def transliterated(pairs: list[Pair], seed: int = 1) -> Names:
    """English names with their katakana: those that nearly always stand in pairs together, and are hardly ever written small."""
    large, small, kana, together = Counter(), Counter(), Counter(), Counter()
    for source, target in pairs:
        if source == source.lower():  # nothing tells names in it
            continue
        words = {word.removesuffix("'s") for word in _WORD.findall(source)}
        runs = set(_KATAKANA.findall(target))
        large.update(w for w in words if w[:1].isupper() and w[1:].islower() and len(w) > 2)
        small.update(w for w in words if w[:1].islower())
        kana.update(runs)
        together.update((w, run) for w in words if w[:1].isupper() for run in runs)
    best: dict[str, Name] = {}
    for (word, run), count in sorted(together.items(), key=lambda item: (item[1], item[0])):
        fits = count >= 3 and count > 0.5 * large[word] and count > 0.5 * kana[run]
        if fits and small[word.lower()] <= SMALL * large[word]:
            best[word] = Name(word, run)
    return Names(best.values(), False, seed)


def made_up(names: list[str], count: int, seed: int = 1) -> list[Name]:
    """New names, letter by letter as three letters follow each other in `names`; a fifth of them with an accent somewhere."""
    chance, following = random.Random(f"names/{seed}"), defaultdict(list)
    for name in names:
        text = f"^^{name.lower()}$"
        for place in range(2, len(text)):
            following[text[place - 2 : place]].append(text[place])
    made: dict[str, Name] = {}
    for _ in range(20 * count):
        word = _drawn_word(following, chance)
        if chance.random() < 0.2:
            place = chance.randrange(1, max(2, len(word)))
            word = word[:place] + word[place : place + 1].translate(_ACCENTS) + word[place + 1 :]
        if 3 <= len(word) <= 11 and word.capitalize() not in names and word.isalpha():
            made[word.capitalize()] = Name(word.capitalize(), word.capitalize(), word[-1] in "aei")
        if len(made) == count:
            break
    return list(made.values())


def _drawn_word(following: dict[str, list[str]], chance: random.Random) -> str:
    text = "^^"
    while not text.endswith("$") and len(text) < 16:
        text += chance.choice(following[text[-2:]])
    return text.strip("^$")
