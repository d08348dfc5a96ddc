"""Token: a piece or a word, and where it stands in its text. Alternative: what a model could have produced instead."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Token:
    """A piece or a whole word: `text` is the slice start:end of the typed text. A special token such as <eos> has start
    == end.

    word : index of the word that the piece belongs to. None for a special token, which belongs to no word.
    pieces : the number of pieces in this token: 1, unless the trace is at the level of words.
    piece : the vocabulary's spelling where it may differ from `text` (lower-cased, or a part of one character), without
        the mark for a leading space. None: the same as `text`.
    """

    text: str
    start: int
    end: int
    special: bool = False
    word: int | None = None
    unknown: bool = False
    pieces: int = 1
    piece: str | None = None


BOS = Token("<bos>", 0, 0, special=True)
SINK = Token("sink", 0, 0, special=True)  # the column of what a query gives to no key


@dataclass(frozen=True)
class Alternative:
    """A token that the model could have produced at a step, and its probability (0 to 1)."""

    text: str
    probability: float

    def __post_init__(self):
        if type(self.probability) is not float:
            object.__setattr__(self, "probability", float(self.probability))
