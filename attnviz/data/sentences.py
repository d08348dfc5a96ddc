"""Texts as people type them: with several sentences, or in capitals; and notices where a model read a text differently
than expected.

    >>> split("Mr. Hill has gone. Where is he?")
    ('Mr. Hill has gone.', 'Where is he?')

Models that learnt from single sentences leave out parts of a longer text, or say them twice. Training texts have few
words in capitals, so a model would read THE DOG IS RUNNING. letter by letter. Such text is given to the model as a
normal sentence.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from attnviz import function_words
from attnviz.arguments import checked
from attnviz.data.tokenizer import SubwordTokenizer, Tokens
from attnviz.trace import Trace
from attnviz.trace.visible import WORD


@checked
def split(text: str, language: str = "en") -> tuple[str, ...]:
    """The sentences of a text without the spaces around them; () where it has none. A sentence is an unchanged part of
    the text.

    language : its code, for abbreviations ("Mr.", "e.g.") and full stops. A full stop within a number, a name or an
    address does not end a sentence.
    """
    import sentencex  # here: a model that reads one sentence does without

    parts = (part.strip() for part in sentencex.segment(language, text))
    return tuple(part for part in parts if any(map(str.isalnum, part)))


def one_by_one(text: str, pieces: Callable[[str], int], longest: int, language: str = "en") -> tuple[str, ...]:
    """The sentences of a text that are better translated one by one, because together they have more pieces than
    training texts. () if the text can be read whole or is a single sentence.

    pieces : gives the number of pieces of a text. longest : `Trained.longest`, pieces.
    """
    sentences = split(text, language)
    return sentences if len(sentences) > 1 and pieces(text) > longest else ()


def notices(trace: Trace) -> tuple[str, ...]:
    """Notices on how a model read a trace's text, shown before the result; () if it was read as typed and is not longer
    than training texts."""
    lines = []
    if trace.read_as:
        lines.append(f"Words in capitals were read as normal words: “{trace.read_as}”")
    if trace.longest:
        count = len(split(trace.text))
        todo = f" It has {count} sentences: translate one at a time." if count > 1 else ""
        lines.append(
            f"This text is too long for the model: nearly all of its training texts have at most {trace.longest} "
            f"pieces, this one has {sum(token.pieces for token in trace.source)}. Expect parts to be left out or said "
            f"twice.{todo}"
        )
    return (*lines, *trace.notes)


_SENTENCE = re.compile(r"[^.!?…]*(?:[.!?…]+|$)")
LETTERS = 4  # of a sentence without small letters, at least; "OK." and "TV?" stay
IN_A_ROW = 3  # words in capitals within another sentence, at least; "USA, UK" stays


@lru_cache(8)  # models of a pair have one tokenizer, and read a text one after the other
def read(text: str, tokenizer: SubwordTokenizer) -> Tokens:
    """The pieces of a text. A text in capitals is read as a normal sentence; its pieces keep the characters as typed.
    Other texts, and vocabularies without capitals, are not affected.

    Raises what `SubwordTokenizer.encode` raises.
    """
    typed = tokenizer.encode(text)
    if sum(map(str.isupper, text)) < IN_A_ROW:  # nearly every text: no sentence and no run of words is in capitals
        return typed
    sentence = as_sentence(text, lambda word: len(tokenizer.ids(word)))
    if sentence == text or (tokens := tokenizer.encode(sentence)).ids == typed.ids:
        return typed
    with_typed = (t if t.special else replace(t, text=text[t.start : t.end]) for t in tokens.tokens)
    return Tokens(tokens.ids, tuple(with_typed), sentence)


def as_sentence(text: str, pieces: Callable[[str], int]) -> str:
    """The text with sentences and runs of words in capitals put in normal case; its length is unchanged.

    pieces : gives the number of pieces of a word. A word is capitalised if that takes fewer pieces than lower case
    (names do), at the beginning of a sentence, and if it is the English word I. Function words of English get none:
    "Nobody", which begins many sentences, takes fewer pieces than "nobody".
    """
    result = list(text)
    for sentence in _SENTENCE.finditer(text):
        words = list(WORD.finditer(text, *sentence.span()))
        for word in _in_capitals(sentence.group(), words):
            first = word is words[0]
            result[word.start() : word.end()] = _written(word.group(), first, pieces)
    return "".join(result)


def _in_capitals(sentence: str, words: list[re.Match]) -> list[re.Match]:
    """The words in capitals that are read in normal case."""
    if sum(map(str.isupper, sentence)) >= LETTERS and not any(map(str.islower, sentence)):
        return words
    runs, run = [], []
    for word in [*words, None]:
        if word is not None and word.group().isupper():
            run.append(word)
            continue
        if sum(len(match.group()) > 1 for match in run) >= IN_A_ROW:
            runs += run
        run = []
    return runs


def _written(word: str, first: bool, pieces: Callable[[str], int]) -> str:
    """A word in lower case, capitalised if needed; its length is unchanged."""
    small = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in word)
    capital = word[0] + small[1:]
    if first or re.split("['’]", word)[0] == "I":
        return capital
    function_word = function_words.kind(small, "en") == function_words.FUNCTION
    return capital if not function_word and pieces(capital) < pieces(small) else small
