"""Text in capitals ("THE DOG IS RUNNING.") as a normal sentence. Training texts have few words in capitals, so a model
would read such a text letter by letter.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from attnviz import function_words
from attnviz.data.tokenizer import SubwordTokenizer, Tokens

_SENTENCE = re.compile(r"[^.!?…]*(?:[.!?…]+|$)")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
LETTERS = 4  # of a sentence without small letters, at least; "OK." and "TV?" stay
IN_A_ROW = 3  # words in capitals within another sentence, at least; "USA, UK" stays


def read(text: str, tokenizer: SubwordTokenizer) -> Tokens:
    """The pieces of a text; those of a text in capitals as a normal sentence, with the characters as typed. Nothing
    changes for other texts, and with a vocabulary without capitals.

    Raises what `SubwordTokenizer.encode` raises.
    """
    typed = tokenizer.encode(text)
    sentence = as_sentence(text, lambda word: len(tokenizer.ids(word)))
    if sentence == text or (tokens := tokenizer.encode(sentence)).ids == typed.ids:
        return typed
    with_typed = (t if t.special else replace(t, text=text[t.start : t.end]) for t in tokens.tokens)
    return Tokens(tokens.ids, tuple(with_typed), sentence)


def as_sentence(text: str, pieces: Callable[[str], int]) -> str:
    """The text with sentences in capitals, and runs of words in capitals, as one writes them; as many characters.

    pieces : in how many pieces a vocabulary reads a word. A word gets a capital where that takes fewer pieces than
    small letters do, as names do, and at the beginning of a sentence; so does the English word I. Function words of
    English get none: "Nobody", which begins many sentences, takes fewer pieces than "nobody".
    """
    result = list(text)
    for sentence in _SENTENCE.finditer(text):
        words = list(_WORD.finditer(text, *sentence.span()))
        for word in _in_capitals(sentence.group(), words):
            first = word is words[0]
            result[word.start() : word.end()] = _written(word.group(), first, pieces)
    return "".join(result)


def _in_capitals(sentence: str, words: list[re.Match]) -> list[re.Match]:
    """The words of a sentence that are to be read as normal ones."""
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
    """A word in small letters, with a capital where it has one; as many characters."""
    small = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in word)
    capital = word[0] + small[1:]
    if first or re.split("['’]", word)[0] == "I":
        return capital
    function_word = function_words.kind(small, "en") == function_words.FUNCTION
    return capital if not function_word and pieces(capital) < pieces(small) else small
