"""Names found in sentence pairs: words that are spelt alike on both sides, or that stand with the same katakana."""

import re
from collections import Counter, defaultdict

from attnviz.data.augmentation.names import WORD, Name, Names
from attnviz.data.readers import SentencePair

_KATAKANA = re.compile("[ァ-ヺー]{2,}")
_SHE, _HE = {"she", "her", "herself"}, {"he", "his", "him", "himself"}
LOWER_CASE = 0.02  # a name is written in lower case at most so often for each time with a capital
TOGETHER = 3  # pairs, at least, in which a name and its katakana stand together


def copied(pairs: list[SentencePair], seed: int = 1) -> Names:
    """The names that are spelt alike on both sides, with a capital, and hardly ever in lower case in English."""
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
    """English names with their katakana: they nearly always stand together, and hardly ever in lower case."""
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
    """counts : sentences with the name that say she (True), and that say he (False)."""
    return None if abs(counts[True] - counts[False]) < 2 else counts[True] > counts[False]
