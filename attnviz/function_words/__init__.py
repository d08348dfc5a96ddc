"""Function words and content words of a language, from short lists (the distinction of Moradi et al. 2019).

A function word has a grammatical role (article, pronoun, preposition, conjunction, auxiliary verb, particle); a
content word names something (noun, verb, adjective, adverb). The lists are our own, written by hand for English,
French, German and Japanese: the common words of the closed classes, without a tagger. A word in two classes (German
*sein*: to be, his) counts as function word. One file for each language, in lower case, with white space between words;
a line that begins with # is a comment.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources

from attnviz.arguments import checked
from attnviz.trace import Token
from attnviz.trace.visible import plain

FUNCTION, CONTENT, OTHER = "function", "content", "other"
_THREE_LETTERS = {"eng": "en", "fra": "fr", "fre": "fr", "deu": "de", "ger": "de", "jpn": "ja"}  # of ISO 639-2 and -3
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'"})


def languages() -> list[str]:
    """The codes of the languages that have a list: en, fr …"""
    return list(_listed())


@checked
def of_code(code: str) -> str:
    """The language of a code, as it is named here: `fr` of fr_XX, fra_Latn, fr-CA or fre; another code as it is."""
    first = re.split(r"[^a-z]", code.strip("_<> ").lower(), maxsplit=1)[0]
    return _THREE_LETTERS.get(first, first or code)


@cache
def _listed() -> tuple[str, ...]:
    names = (
        file.name.removesuffix(".txt") for file in resources.files(__name__).iterdir() if file.name.endswith(".txt")
    )
    return tuple(sorted(names))


@checked
@cache
def words(language: str) -> frozenset[str]:
    """The function words of a language, lower case. ValueError for one that has no list."""
    if language not in languages():
        raise ValueError(
            f"language must have a list of function words ({', '.join(languages())}); got {language!r:.80}"
        )
    text = (resources.files(__name__) / f"{language}.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


@checked
@lru_cache(4096)  # a page asks for the words of a sentence more than once for each model
def kind(word: str, language: str) -> str:
    """FUNCTION or CONTENT; OTHER for a token without a letter or digit, such as a full stop."""
    lower = plain(word).strip().lower().translate(_APOSTROPHES)
    if not any(character.isalnum() for character in lower):
        return OTHER
    listed = words(language)
    return (
        FUNCTION
        if lower in listed or any(part in listed and rest in listed for part, rest in _contracted(lower))
        else CONTENT
    )


@lru_cache(2**17)  # the comparison of a translation with its source asks hundreds of times
def is_content(word: str, language: str) -> bool:
    """Is it a content word? In a language that has no list, every word is one."""
    return language not in _listed() or kind(word, language) == CONTENT


def _contracted(word: str) -> list[tuple[str, str]]:
    """The ways to split a word with an apostrophe into two: she's is she and 's, don't is do and n't, qu'il is qu' and
    il."""
    cuts = {place + shift for place, character in enumerate(word) if character == "'" for shift in (-1, 0, 1)}
    return [(word[:cut], word[cut:]) for cut in sorted(cuts) if 0 < cut < len(word)]


@checked
def kinds(text: str, tokens: Sequence[Token], language: str) -> list[str]:
    """The kind of each token's word; pieces of one word have the kind of the whole, special tokens are OTHER."""
    spans: dict[int, list[int]] = {}
    for token in tokens:
        if token.word is not None:
            start, end = spans.get(token.word, (token.start, token.end))
            spans[token.word] = [min(start, token.start), max(end, token.end)]
    of_words: dict[int | None, str] = {word: kind(text[start:end], language) for word, (start, end) in spans.items()}
    return [OTHER if token.special else of_words.get(token.word, OTHER) for token in tokens]
