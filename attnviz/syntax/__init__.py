"""Syntax: the dependencies between the words of a sentence, and how often a head attends along them.

`shipped()` has the hand-linked English sentences of `attnviz.gold` and `examples()` those of the page; README.md beside
this file says how they were parsed.
`read` takes your own file in the CoNLL-U format (universaldependencies.org/format.html), `parse_with_spacy` parses a
sentence where spaCy is installed with an English model.

spaCy's English models name relations as ClearNLP does and attach a noun to its preposition. `parse_with_spacy` converts
the relations of RELATIONS to Universal Dependencies; other labels remain spaCy's.

`table` measures how often the key that a head weighs most is the word that syntax names (Clark et al. 2019, sec. 4.2;
Voita et al. 2019, sec. 5.2.1). For each relation there are two questions. From a dependant: is its governor the word
that it attends to most? From a governor: is one of its dependants with this relation? Weights are summed over the
pieces of a key word and averaged over those of a query word; special tokens are left out, as in both papers. The
baseline is the best fixed offset, such as "the next word", chosen on the same sentences, which favours the baseline.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnviz import arguments, storage
from attnviz import lazy_pandas as pd
from attnviz.alignment import between_words
from attnviz.arguments import checked
from attnviz.gold import Span
from attnviz.trace import AttentionMap, Trace

__all__ = [
    "DIRECTIONS",
    "FILE",
    "RELATIONS",
    "ROOT",
    "Parse",
    "Relation",
    "examples",
    "looks",
    "parse_with_spacy",
    "read",
    "shipped",
    "spacy_models",
    "table",
]

FILE = Path(__file__).parent / "en.conllu"
LARGEST = 64 * 2**20  # bytes of a file
ROOT = -1  # the governor of the word that has none


class Relation(NamedTuple):
    """A relation of Universal Dependencies (de Marneffe et al. 2021). label : its name there, without a subtype.

    dependant, governor : descriptions of the two words.

    >>> syntax.RELATIONS["nsubj"].dependant, syntax.RELATIONS["nsubj"].governor
    ('the subject', 'its verb')
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

    >>> parse = syntax.Parse("Dogs run", ((0, 4), (5, 8)), (1, -1), ("nsubj", "root"))
    >>> [(parse.word(subject), parse.word(verb)) for subject, verb in parse.pairs("nsubj")]
    [('Dogs', 'run')]
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
    """The parses of the hand-linked sentences, by the text of the sentence.

    >>> syntax.shipped()["Two brown horses are grazing behind a wooden fence."].pairs("nsubj")
    [(2, 4)]
    """
    return {parse.text: parse for parse in read(FILE)}


@functools.cache
def examples() -> dict[str, Parse]:
    """The parses of example sentences of the page, by the text of the sentence.

    >>> syntax.examples()["Tom is not here."].relations
    ('nsubj', 'cop', 'advmod', 'root', 'punct')
    """
    return {parse.text: parse for parse in read(FILE.with_name("examples.conllu"))}


@checked
def read(path: str | Path) -> tuple[Parse, ...]:
    """The parses of a file in the CoNLL-U format. ValueError names the file and what is wrong; OSError if there is no
    such file.

    >>> syntax.read(syntax.FILE)[0].text
    'Two brown horses are grazing behind a wooden fence.'
    """
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
    """A sentence of the conllu library; multiword tokens and empty tokens (ids that are not integers) are left out."""
    rows = [row for row in rows if isinstance(row["id"], int)]
    text, words = _joined((row["form"], (row["misc"] or {}).get("SpaceAfter") != "No") for row in rows)
    try:
        if any(row["head"] is None or not row["deprel"] for row in rows):
            raise ValueError("every word must have a head and a relation")
        return Parse(text, words, tuple(row["head"] - 1 for row in rows), tuple(row["deprel"] for row in rows))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _joined(forms: Iterable[tuple[str, bool]]) -> tuple[str, tuple[Span, ...]]:
    """Words with a flag whether a space follows -> their text, and the offsets of each word in it."""
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
    """The English models of spaCy that are installed, SPACY_MODEL first; () without spaCy. Nothing is imported.

    >>> syntax.spacy_models()  # ("en_core_web_sm",)
    """
    if importlib.util.find_spec("spacy") is None:
        return ()
    declared = {point.name for point in entry_points(group="spacy_models") if point.name.startswith("en_")}
    models = declared | {SPACY_MODEL} if importlib.util.find_spec(SPACY_MODEL) else declared
    return tuple(sorted(models, key=lambda name: (name != SPACY_MODEL, name)))


@checked
def parse_with_spacy(text: str, model: str = "") -> Parse:
    """The dependencies of one sentence. model : one of `spacy_models()`; "" for the first.

    ValueError if spaCy or the model is not installed, or the text has no word.

    >>> syntax.spacy_models() and syntax.parse_with_spacy("The dog runs.").pairs("det")  # [(0, 1)]
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


FARTHEST = 20  # words, of the fixed offsets
COLUMNS = ("model", "kind", "layer", "head", "relation", "direction", "right", "count", "share", "offset", "baseline")


class Question(NamedTuple):
    """query : the word whose attention is tested. right : the correct answers. Both counted from 0."""

    query: int
    right: frozenset[int]


@checked
def questions(parse: Parse, label: str, direction: str) -> tuple[Question, ...]:
    """The questions of one relation in one direction, in the order of their words."""
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}; got {direction:.80}")
    answers: dict[int, set[int]] = {}
    for dependant, governor in parse.pairs(label):
        query, right = (dependant, governor) if direction == TO_GOVERNOR else (governor, dependant)
        answers.setdefault(query, set()).add(right)
    return tuple(Question(query, frozenset(right)) for query, right in sorted(answers.items()))


@checked
def looks(trace: Trace, parse: Parse, kind: str = "encoder", layer: int = -1) -> np.ndarray:
    """(H, T) int: the word that each word attends to most in each head of a layer; -1 where it has no weight on a word.

    ValueError unless the trace is of the sentence, and its map has the source as queries and as keys.

    >>> trace = attnviz.from_arrays([[[[0, 1], [0, 1]]]], ["Dogs", "run"])
    >>> parse = syntax.Parse("Dogs run", ((0, 4), (5, 8)), (1, -1), ("nsubj", "root"))
    >>> syntax.looks(trace, parse).tolist()  # both at “run”
    [[1, 1]]
    """
    return _largest(*_on_words(trace, parse, trace.map(kind, layer)))


@checked
def table(traces: Iterable[Trace], parses: Mapping[str, Parse] | None = None, *, kind: str = "encoder") -> pd.DataFrame:
    """One row for each head, relation and direction, over all sentences.

    right : number of questions answered correctly, of count; share : right / count. baseline is the share of the fixed
    offset (in words) that answers most of them. A question counts if at least one correct answer is visible to the
    query, which matters in a causal model. Relations that do not occur are left out.

    parses : by text; None for `shipped()`. ValueError if a text has no parse, or there are no traces.

    >>> trace = attnviz.from_arrays([[[[0, 1], [0, 1]]]], ["Dogs", "run"])
    >>> parse = syntax.Parse("Dogs run", ((0, 4), (5, 8)), (1, -1), ("nsubj", "root"))
    >>> syntax.table([trace], {"Dogs run": parse})[["direction", "share"]].values.tolist()
    [['to governor', 1.0], ['to dependant', 0.0]]
    """
    parses = shipped() if parses is None else parses
    tallies: dict[tuple, np.ndarray] = {}
    model = ""
    for trace in traces:
        if trace.text not in parses:
            raise ValueError(f"every text must have a parse; got none for {trace.text!r:.80}")
        model = trace.model
        for key, tally in _tallies(trace, parses[trace.text], kind):
            tallies[key] = tallies.get(key, 0) + tally
    if not tallies:
        raise ValueError(f"there must be a trace with a map of kind {kind} and a sentence with a known relation")
    return pd.DataFrame([_row(model, kind, key, tally) for key, tally in tallies.items()], columns=list(COLUMNS))


def _row(model: str, kind: str, key: tuple, tally: np.ndarray) -> tuple:
    """tally : the number of questions, of right answers of the head, and of right answers of each offset."""
    count, right, *by_offset = tally.tolist()
    best = int(np.argmax(by_offset))
    return (model, kind, *key, right, count, right / count, best - FARTHEST, by_offset[best] / count)


def _tallies(trace: Trace, parse: Parse, kind: str) -> Iterator[tuple[tuple, np.ndarray]]:
    """(layer, head, relation, direction) and its tally in one sentence."""
    offsets = np.arange(-FARTHEST, FARTHEST + 1)
    for attention in (attention for attention in trace.maps if attention.kind == kind):
        weights, visible = _on_words(trace, parse, attention)
        largest = _largest(weights, visible)
        for label in RELATIONS:
            for direction in DIRECTIONS:
                answerable = [
                    Question(query, right)
                    for query, answers in questions(parse, label, direction)
                    if (right := frozenset(word for word in answers if visible[query, word]))
                ]
                if not answerable:
                    continue
                guesses = np.array(
                    [[query + offset in right for offset in offsets] for query, right in answerable]
                ).sum(0)
                for head, row in enumerate(largest):
                    hits = sum(row[query] in right for query, right in answerable)
                    yield (attention.layer, head, label, direction), np.array([len(answerable), hits, *guesses])


def _on_words(trace: Trace, parse: Parse, attention: AttentionMap) -> tuple[np.ndarray, np.ndarray]:
    """Weights (H, T, T) between the words of a sentence, and which words each sees (T, T)."""
    if trace.text != parse.text:
        raise ValueError(f"the trace must be of {parse.text!r:.80}; got {trace.text!r:.80}")
    if attention.kind == "cross" or (attention.kind == "decoder" and trace.target):
        raise ValueError(f"syntax needs self-attention of the source; got {attention.name} of {trace.model}")
    queries, keys = trace.queries(attention), trace.keys(attention)
    visible = np.nan_to_num(
        between_words(trace.visible(attention)[None].astype(float), queries, keys, parse.words, parse.words)
    )
    return between_words(attention.weights, queries, keys, parse.words, parse.words), visible[0] > 0


def _largest(weights: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """(H, T, T) -> (H, T): the first of the largest weights; -1 for a row without any."""
    seen = np.where(visible, np.nan_to_num(weights, nan=-1.0), -1.0)
    return np.where(seen.max(-1) > 0, seen.argmax(-1), -1)
