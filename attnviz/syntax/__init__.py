"""Syntax: the dependencies between the words of a sentence, and how often a head looks along them.

`shipped()` has the hand-linked English sentences of `attnviz.gold` and `examples()` those of the page; README.md beside
this file says how they were parsed.
`read` takes your own file in the CoNLL-U format (universaldependencies.org/format.html), `parse_with_spacy` parses a
sentence where spaCy is installed. `by_head.table` measures heads.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from attnviz import arguments, storage
from attnviz.arguments import checked
from attnviz.gold import Span

FILE = Path(__file__).parent / "en.conllu"
LARGEST = 64 * 2**20  # bytes of a file
ROOT = -1  # the governor of the word that has none


class Relation(NamedTuple):
    """A relation of Universal Dependencies (de Marneffe et al. 2021). label : its name there, without a subtype.

    dependant, governor : what the two words are, in words.
    """

    label: str
    title: str
    dependant: str
    governor: str


RELATIONS = {
    relation.label: relation
    for relation in (
        Relation("nsubj", "Subject", "the subject", "its verb"),
        Relation("obj", "Object", "the object", "its verb"),
        Relation("det", "Determiner", "the determiner", "its noun"),
        Relation("amod", "Adjective", "the adjective", "its noun"),
        Relation("case", "Preposition", "the preposition", "its noun"),
    )
}
TO_GOVERNOR, TO_DEPENDANT = DIRECTIONS = ("to governor", "to dependant")


@dataclass(frozen=True)
class Parse:
    """A sentence and its dependencies.

    words : the (start, end) of each word in the text. governors : the word that each word depends on, counted from 0;
    ROOT for the main word. relations : the label of each dependency, such as `nsubj` or `nsubj:pass`.
    Raises ValueError unless the three have one entry a word, every word lies in the text, and the governors make one
    tree.
    """

    text: str
    words: tuple[Span, ...]
    governors: tuple[int, ...]
    relations: tuple[str, ...]

    def __post_init__(self):
        count = len(self.words)
        if not count or {len(self.governors), len(self.relations)} != {count}:
            raise ValueError(
                f"a parse must have a governor and a relation for each word; got {count} words, "
                f"{len(self.governors)} governors and {len(self.relations)} relations"
            )
        for start, end in self.words:
            if not 0 <= start < end <= len(self.text):
                raise ValueError(f"a word must lie in the text of {len(self.text)} characters; got {start} to {end}")
        if self.governors.count(ROOT) != 1 or any(not ROOT <= word < count for word in self.governors):
            raise ValueError(f"one word must have the governor {ROOT}, each other one of 0 to {count - 1}")
        for word in range(count):
            self._check_path(word)

    def _check_path(self, word: int) -> None:
        """ValueError if the governors of a word go in a circle."""
        place, steps = word, 0
        while place != ROOT:
            place, steps = self.governors[place], steps + 1
            if steps > len(self.words):
                raise ValueError(f"the governors must make a tree; those of word {word} go in a circle")

    @checked
    def pairs(self, label: str) -> list[tuple[int, int]]:
        """(dependant, governor) of each dependency with this label, with or without a subtype."""
        return [
            (word, governor)
            for word, (governor, relation) in enumerate(zip(self.governors, self.relations))
            if relation.split(":")[0] == label and governor != ROOT
        ]

    def word(self, place: int) -> str:
        """The text of one word."""
        start, end = self.words[place]
        return self.text[start:end]


@functools.cache
def shipped() -> dict[str, Parse]:
    """The parses of the hand-linked sentences, by the text of the sentence."""
    return {parse.text: parse for parse in read(FILE)}


@functools.cache
def examples() -> dict[str, Parse]:
    """The parses of example sentences of the page, by the text of the sentence."""
    return {parse.text: parse for parse in read(FILE.with_name("examples.conllu"))}


@checked
def read(path: str | Path) -> tuple[Parse, ...]:
    """The parses of a file in the CoNLL-U format. ValueError names the file and what is wrong; OSError if there is no
    such file."""
    import conllu

    try:
        text = storage.read(arguments.path("path", path), LARGEST).decode("utf-8-sig")
        sentences = conllu.parse(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text; got byte {error.object[error.start]:#04x}") from None
    except conllu.exceptions.ParseException as error:
        raise ValueError(f"{path} must be in the CoNLL-U format: {error}") from None
    if not sentences:
        raise ValueError(f"{path} must hold at least one sentence; got none")
    return tuple(_parse(rows, f"{path}, sentence {number}") for number, rows in enumerate(sentences, start=1))


def _parse(rows, place: str) -> Parse:
    """A sentence of the conllu library; words of several tokens and empty tokens (ids that are no numbers) are left
    out."""
    rows = [row for row in rows if isinstance(row["id"], int)]
    text, words = _joined((row["form"], (row["misc"] or {}).get("SpaceAfter") != "No") for row in rows)
    try:
        if any(row["head"] is None or not row["deprel"] for row in rows):
            raise ValueError("every word must have a head and a relation")
        return Parse(text, words, tuple(row["head"] - 1 for row in rows), tuple(row["deprel"] for row in rows))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _joined(forms: Iterable[tuple[str, bool]]) -> tuple[str, tuple[Span, ...]]:
    """Words, each with whether a space follows -> their text, and the place of each in it."""
    text, words = "", []
    for form, spaced in forms:
        words.append((len(text), len(text) + len(form)))
        text += form + " " * spaced
    return text.rstrip(), tuple(words)
