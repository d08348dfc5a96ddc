"""The words that a model has met in training: how many of its sentences had each, in one small file a language pair."""

import gzip
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from attnviz import files
from attnviz.trace import Trace

FILE = "words.txt.gz"
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class Word:
    """A word of a text: as typed, where it stands, and the pieces that a model reads it in."""

    text: str
    start: int
    end: int
    pieces: int
    unknown: bool = False  # one of the pieces is the unknown one


@dataclass(frozen=True)
class Familiar:
    """counts : word, written small -> how many of the `sentences` of training have it."""

    counts: dict[str, int] = field(repr=False)
    sentences: int

    @classmethod
    def learn(cls, texts: Iterable[str]) -> "Familiar":
        """From the source sentences of training; one that is there several times counts once."""
        different = set(texts)
        return cls(dict(Counter(word for text in different for word in set(map(_plain, _WORD.findall(text))))), len(different))

    @classmethod
    def load(cls, path: Path) -> "Familiar":
        """Read what `save` wrote. Raises files.CheckpointError."""
        try:
            first, *lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
            return cls({word: int(count) for word, count in map(str.split, lines)}, int(first))
        except (OSError, EOFError, ValueError) as error:
            raise files.unreadable(path, error) from None

    def save(self, path: Path) -> None:
        """Write the words in alphabetical order, with their counts, after the number of sentences."""
        lines = [str(self.sentences), *(f"{word} {count}" for word, count in sorted(self.counts.items()))]
        content = gzip.compress("\n".join(lines).encode(), mtime=0)
        files.replace(path, lambda temporary: temporary.write_bytes(content))

    def count(self, word: str) -> int:
        """How many sentences of training have the word; its parts speak for a word with an apostrophe ("Tom's")."""
        plain = _plain(word)
        return max(self.counts.get(plain, 0), min((self.counts.get(part, 0) for part in plain.split("'")), default=0))

    def new(self, trace: Trace) -> list[Word]:
        """The words of a trace's source that no sentence of training has."""
        return [word for word in words(trace) if not self.count(word.text)]


def words(trace: Trace) -> list[Word]:
    """The words of a trace's source: runs of letters, with the apostrophes within."""
    found = []
    for match in _WORD.finditer(trace.text):
        inside = [t for t in trace.source if not t.special and t.start < match.end() and t.end > match.start()]
        unknown = any(token.unknown for token in inside)
        found.append(Word(match.group(), *match.span(), sum(token.pieces for token in inside), unknown))
    return found


def _plain(word: str) -> str:
    return word.lower().replace("’", "'")
