"""A text as a person types it: of several sentences, or in capitals, and what to say where a model did not read it as a
person expects.

    >>> split("Mr. Hill has gone. Where is he?")
    ('Mr. Hill has gone.', 'Where is he?')

Models that learnt from single sentences leave out parts of a longer text, or say them twice. Training texts have few
words in capitals, so a model would read THE DOG IS RUNNING. letter by letter: it gets a normal sentence.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from attnviz import function_words
from attnviz.arguments import checked
from attnviz.data.tokenizer import SubwordTokenizer, Tokens
from attnviz.trace import Trace


@checked
def split(text: str, language: str = "en") -> tuple[str, ...]:
    """The sentences of a text without the spaces around them; () where it has none. Each stands in the text as it is.

    language : its code, for abbreviations ("Mr.", "e.g.") and full stops. A full stop within a number, a name or an
    address does not end a sentence.
    """
    import sentencex  # here: a model that reads one sentence does without

    parts = (part.strip() for part in sentencex.segment(language, text))
    return tuple(part for part in parts if any(map(str.isalnum, part)))


def one_by_one(text: str, pieces: Callable[[str], int], longest: int, language: str = "en") -> tuple[str, ...]:
    """The sentences that are better translated alone: those of a text of several that has more pieces than texts of
    training. () where the text can be read whole, and where it is a single sentence.

    pieces : how many a text is read in. longest : `Trained.longest`, pieces.
    """
    sentences = split(text, language)
    return sentences if len(sentences) > 1 and pieces(text) > longest else ()


def notices(trace: Trace) -> tuple[str, ...]:
    """Sentences on how a model read a trace's text, to be read before the result; () where it was read as typed and is
    no longer than those of training."""
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
