"""Syntax: the dependencies between the words of a sentence, and how often a head looks along them.

`shipped()` has the hand-linked English sentences of `attnviz.gold` and `examples()` those of the page; README.md beside
this file says how they were parsed.
`read` takes your own file in the CoNLL-U format (universaldependencies.org/format.html), `parse_with_spacy` parses a
sentence where spaCy is installed with an English model. `by_head.table` measures heads.

spaCy's English models name relations as ClearNLP does and attach a noun to its preposition. `parse_with_spacy` says the
same sentence in Universal Dependencies for the relations of RELATIONS; other labels stay as spaCy has them.
"""

import functools
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
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


SPACY_MODEL = "en_core_web_sm"
INSTALL = f"pip install spacy && python -m spacy download {SPACY_MODEL}"
_FROM_SPACY = {"nsubjpass": "nsubj:pass", "dobj": "obj", "dative": "iobj", "ROOT": "root", "neg": "advmod"}
_COMPLEMENTS = ("attr", "acomp")  # of a verb; of `be` they are the governor


def spacy_models() -> tuple[str, ...]:
    """The English models of spaCy that are installed, MODEL first; () without spaCy. Nothing is imported."""
    if importlib.util.find_spec("spacy") is None:
        return ()
    declared = {point.name for point in entry_points(group="spacy_models") if point.name.startswith("en_")}
    models = declared | {SPACY_MODEL} if importlib.util.find_spec(SPACY_MODEL) else declared
    return tuple(sorted(models, key=lambda name: (name != SPACY_MODEL, name)))


@checked
def parse_with_spacy(text: str, model: str = "") -> Parse:
    """The dependencies of one sentence. model : one of `spacy_models()`; "" for the first.

    ValueError if spaCy or the model is not installed, or the text has no word.
    """
    installed = spacy_models()
    if not installed or model not in ("", *installed):
        raise ValueError(f"spaCy and {model or 'an English model'} must be installed to parse a sentence: {INSTALL}")
    model = model or installed[0]
    words = [word for word in _pipeline(model)(text) if not word.is_space]
    if not words:
        raise ValueError(f"the text must have at least one word; got {text!r:.80}")
    return from_spacy(text, words)


def from_spacy(text: str, words: list) -> Parse:
    """words : spaCy's tokens, without blanks."""
    places = {word.i: place for place, word in enumerate(words)}
    governors = [places.get(word.head.i, ROOT) if word.head.i != word.i else ROOT for word in words]
    labels = [_FROM_SPACY.get(word.dep_, word.dep_) for word in words]
    for place, word in enumerate(words):
        if word.dep_ == "pobj" and labels[governors[place]] in ("prep", "agent"):
            preposition = governors[place]
            governors[place], governors[preposition] = governors[preposition], place
            labels[place], labels[preposition] = "obl", "case"
    for place, word in enumerate(words):
        verb = governors[place]
        if word.dep_ in _COMPLEMENTS and verb != ROOT and words[verb].lemma_ == "be":
            governors = [place if governor == verb else governor for governor in governors]
            governors[place], labels[place] = governors[verb], labels[verb]
            governors[verb], labels[verb] = place, "cop"
    first, *others = [place for place, governor in enumerate(governors) if governor == ROOT]
    for place in others:  # a text of several sentences is one tree
        governors[place], labels[place] = first, "parataxis"
    return Parse(text, tuple((word.idx, word.idx + len(word.text)) for word in words), tuple(governors), tuple(labels))


@functools.cache
def _pipeline(model: str):
    import spacy

    return spacy.load(model)
