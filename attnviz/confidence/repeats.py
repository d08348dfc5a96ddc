"""A phrase that a translation says twice and its source does not: side by side, or at a distance."""

import re
from collections import Counter
from collections.abc import Sequence

from attnviz import function_words
from attnviz.data.styles import UNSPACED

LONGEST = 8  # words of a phrase that is said twice side by side
APART = (3, 4, 5)  # words of a phrase that is said twice at a distance
CHARACTERS = 6  # of a phrase in a text without spaces
_WORD = re.compile(r"[^\W\d_]+")
_UNSPACED = re.compile(f"[{UNSPACED}]+")


def repeated(text: str, translation: str, language: str) -> str:
    """The first phrase that comes twice, in lower case; "" where none does, or where the text itself repeats words.

    Side by side a phrase needs one content word, at a distance two: "in der Nähe" may come twice. language : of the
    translation, one of `function_words.languages()`; any other counts every word as a content word.
    """
    source = _words(text)
    if _side_by_side(source, 1, source) or max(Counter(zip(source, source[1:])).values(), default=0) > 1:
        return ""
    if _UNSPACED.search(translation):
        return _characters(translation)
    words = _words(translation)
    listed = language in function_words.languages()
    content = [w for w in words if not listed or function_words.kind(w, language) == function_words.CONTENT]
    near = next(filter(None, (_side_by_side(words, count, content) for count in range(1, LONGEST + 1))), "")
    return near or next(filter(None, (_at_a_distance(words, count, content) for count in APART)), "")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _side_by_side(words: Sequence[str], count: int, content: Sequence[str]) -> str:
    """The first phrase of so many words that follows itself and has a content word."""
    for start in range(len(words) - 2 * count + 1):
        phrase = words[start : start + count]
        if phrase == words[start + count : start + 2 * count] and set(phrase) & set(content):
            return " ".join(phrase)
    return ""


def _at_a_distance(words: Sequence[str], count: int, content: Sequence[str]) -> str:
    """The first phrase of so many words that comes twice and has two content words."""
    phrases = Counter(zip(*(words[start:] for start in range(count))))
    twice = (phrase for phrase, times in phrases.items() if times > 1)
    return next((" ".join(phrase) for phrase in twice if len(set(phrase) & set(content)) > 1), "")


def _characters(text: str) -> str:
    """The first run of CHARACTERS characters that comes twice in a text without spaces."""
    runs = [run.group() for run in _UNSPACED.finditer(text)]
    parts = Counter(run[i : i + CHARACTERS] for run in runs for i in range(len(run) - CHARACTERS + 1))
    return next((part for part, times in parts.items() if times > 1), "")
