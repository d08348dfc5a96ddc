"""Token: a piece or a word, and its place in its text. Alternative: a token that the model could have produced instead.
Hypothesis: a whole translation from beam search.

Also the tokens of the queries (rows, Q) and keys (columns, K) of an attention map, by its kind; see `Trace`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

KINDS = ("cross", "encoder", "decoder")
SIDES = {  # kind -> what the rows are, what the columns are
    "cross": ("target", "source"),
    "encoder": ("source", "source"),
    "decoder": ("target", "input"),
}


@dataclass(frozen=True)
class Token:
    """A piece or a whole word: `text` is the slice start:end of the typed text. A special token such as <eos> has start
    == end.

    word : index of the word that the piece belongs to. None for a special token, which belongs to no word.
    pieces : the number of pieces in this token: 1, unless the trace is at the level of words.
    piece : the vocabulary's spelling where it may differ from `text` (lower-cased, or a part of one character), without
        the mark for a leading space. None: the same as `text`.

    >>> trace.source[1]
    Token(text='black', start=4, end=9, special=False, word=1, unknown=False, pieces=1, piece=None)
    """

    text: str
    start: int
    end: int
    special: bool = False
    word: int | None = None
    unknown: bool = False
    pieces: int = 1
    piece: str | None = None

    def __hash__(self):
        """Hash only the fields that distinguish the tokens of a text, because a page looks up names and marks by tokens
        many times."""
        return hash(self.text) ^ self.start


BOS = Token("<bos>", 0, 0, special=True)
SINK = Token("sink", 0, 0, special=True)  # the column of what a query gives to no key


@dataclass(frozen=True)
class Alternative:
    """A token that the model could have produced at a step, and its probability (0 to 1).

    >>> [choice.text for choice in trace.alternatives[0][:2]]
    ['Le', 'Ce']
    """

    text: str
    probability: float

    def __post_init__(self):
        if type(self.probability) is not float:
            object.__setattr__(self, "probability", float(self.probability))


class Hypothesis(NamedTuple):
    """A translation that beam search ended with, and its log-probability in nats.

    >>> [hypothesis.text for hypothesis in model.hypotheses("The black dog runs.", beam=2)]
    ['Le chien noir court.', 'Ce chien noir court.']
    """

    text: str
    log_prob: float


def queries_and_keys(
    kind: str, source: tuple[Token, ...], target: tuple[Token, ...], start: Token
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The tokens of the queries, and those of the keys. target : () for a model that only reads."""
    if kind == "encoder" or not target:
        return source, source
    return target, (start, *target[:-1]) if kind == "decoder" else source


def visible_keys(kind: str, queries: Sequence[Token], keys: int, words: bool) -> np.ndarray:
    """bool (Q, K): True where a query can attend to a key.

    words : the queries are words of a target. One of several pieces also sees key t + 1, which is the word itself.
    """
    if kind != "decoder":
        return np.ones((len(queries), keys), dtype=bool)
    last = np.arange(len(queries))
    if words:
        last = last + np.array([token.pieces > 1 for token in queries])
    return np.arange(keys) <= last[:, None]
