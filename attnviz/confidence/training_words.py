"""The words of a model's training sentences: the number of sentences with each word, in one small file per side and
language pair.

checkpoints/<pair>/words.txt.gz, target-words.txt.gz
"""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attnviz import arguments, storage
from attnviz.models.checkpoint_files import unreadable
from attnviz.models.measured import TraceStatistics
from attnviz.trace import Token, Trace
from attnviz.trace.visible import WORD, of_tokens, plain

FILE = "words.txt.gz"  # of the source
TARGET_FILE = "target-words.txt.gz"  # of the translations
FILES = FILE, TARGET_FILE
PART = 4  # letters of a part of a compound, at least
LARGEST = 64 * 2**20  # bytes of the file's text
KATAKANA = re.compile("[ァ-ヺ][ァ-ヺー]+")  # the only words of a Japanese text that can be told apart without a tagger


@dataclass(frozen=True)
class Word:
    """A word of a text as it is looked up (`plain`), its place in the text, and the number of its pieces.

    unknown : one of the pieces is the unknown one.
    """

    text: str
    start: int
    end: int
    pieces: int
    unknown: bool = False


@dataclass(frozen=True)
class TrainingWords:
    """counts : word in lower case -> how many of the `sentences` of training have it.

    >>> confidence.TrainingWords.learn(["The dog runs.", "A dog sleeps."]).count("dog")
    2
    """

    counts: dict[str, int] = field(repr=False)
    sentences: int

    @classmethod
    def learn(cls, texts: Iterable[str], pattern: re.Pattern = WORD) -> "TrainingWords":
        """Learn from the sentences of one side of training; a repeated sentence counts once. pattern : of a word."""
        different = set(texts)
        counts = Counter(word for text in different for word in set(map(_plain, pattern.findall(text))))
        return cls(dict(counts), len(different))

    @classmethod
    def load(cls, path: Path) -> "TrainingWords":
        """Read what `save` wrote. Raises CheckpointError."""
        path = arguments.path("path", path)
        lines = read_lines(path)
        try:
            first, *others = lines
            return cls({word: int(count) for word, count in map(str.split, others)}, int(first))
        except ValueError as error:
            raise unreadable(path, error) from None

    def save(self, path: Path) -> None:
        """Write the number of sentences, then the words in alphabetical order with their counts."""
        write_lines(path, [str(self.sentences), *(f"{word} {count}" for word, count in sorted(self.counts.items()))])

    def count(self, word: str) -> int:
        """The number of training sentences with the word; for a word such as "Tom's", at least the count of its rarest
        part."""
        low = _plain(word)
        count = self.counts.get(low, 0)
        return max(count, min(self.counts.get(part, 0) for part in low.split("'"))) if "'" in low else count

    def has(self, word: str) -> bool:
        """Is the word, or a split of it into two words of at least PART letters, in the training sentences?"""
        low = _plain(word)
        cuts = range(PART, len(low) - PART + 1)
        return bool(self.count(word)) or any(low[:cut] in self.counts and low[cut:] in self.counts for cut in cuts)

    def new(self, trace: Trace | TraceStatistics) -> list[Word]:
        """The words of a trace's source that no training sentence has."""
        return [word for word in words(trace) if not self.count(word.text)]


def read_lines(path: Path) -> list[str]:
    """The lines of a packed text file. Raises CheckpointError."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(storage.read(path, LARGEST))) as file:
            return file.read(LARGEST).decode().splitlines()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise unreadable(path, error) from None


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write a packed text file, whole or not at all; the same lines give the same bytes."""
    content = gzip.compress("\n".join(lines).encode(), mtime=0)
    storage.replace(Path(path), lambda temporary: temporary.write_bytes(content))


def words(trace: Trace | TraceStatistics) -> list[Word]:
    """The words of a trace's source: runs of letters, with the apostrophes within."""
    return list(_words(tuple(trace.source), trace.text, WORD))


def target_words(trace: Trace | TraceStatistics, pattern: re.Pattern = WORD) -> list[Word]:
    """The words of a trace's target, in the same way, or those of a pattern."""
    return list(_words(tuple(trace.target), trace.translation, pattern))


@of_tokens
def _words(tokens: tuple[Token, ...], text: str, pattern: re.Pattern) -> tuple[Word, ...]:
    result = []
    for match in pattern.finditer(text):
        inside = [t for t in tokens if not t.special and t.start < match.end() and t.end > match.start()]
        unknown = any(token.unknown for token in inside)
        result.append(Word(plain(match.group()), *match.span(), sum(token.pieces for token in inside), unknown))
    return tuple(result)


def _plain(word: str) -> str:
    return plain(word).lower().replace("’", "'")
