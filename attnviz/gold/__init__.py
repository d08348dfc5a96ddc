"""Sentence pairs whose words were linked by hand: the gold standard that alignments are measured against.

README.md beside this file describes the file format and the rules of the shipped links. A link is (source word, target
word), counted from 0.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attnviz import arguments, storage
from attnviz.arguments import checked

FOLDER = Path(__file__).parent
LARGEST = 64 * 2**20  # bytes of a file
_LINK = re.compile(r"(\d{0,9})-(\d{0,9})(\?)?")

Span = tuple[int, int]
Link = tuple[int, int]


@dataclass(frozen=True)
class LinkedPair:
    """Two texts as people write them, the (start, end) of each word in its text, and the links between the words.

    sure, possible : as in Och & Ney 2003. Every sure link is possible too.
    alone : the words of the source, and of the target, that are marked as having no link.
    Raises ValueError when a link names a word that is not there, a sure link is not possible, or a linked word is
    alone.
    """

    source: str
    target: str
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]
    alone: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())

    def __post_init__(self):
        if unfit := self.sure - self.possible:
            raise ValueError(f"every sure link must be possible too; got {_spell(unfit)} among the sure ones alone")
        for side, name in enumerate(("source", "target")):
            count, linked = len((self.source_words, self.target_words)[side]), {link[side] for link in self.possible}
            for word in sorted(linked | self.alone[side]):
                if not 0 <= word < count:
                    raise ValueError(f"the {name} has words 0 to {count - 1}; got word {word} among the links")
            if both := sorted(linked & self.alone[side]):
                raise ValueError(f"word {both[0]} of the {name} is marked as having no link, but has one")

    def words(self) -> tuple[list[str], list[str]]:
        """The words of the source and of the target."""
        return [self.source[a:b] for a, b in self.source_words], [self.target[a:b] for a, b in self.target_words]

    def forgotten(self) -> list[str]:
        """Words, source first, that have no link and are not marked as having none."""
        return [
            word
            for side, words in enumerate(self.words())
            for place, word in enumerate(words)
            if place not in self.alone[side] and place not in {link[side] for link in self.possible}
        ]


@checked
def shipped(languages: str) -> tuple[LinkedPair, ...]:
    """The pairs that come with the project for two languages, such as en-fr; () if there are none."""
    path = arguments.path("languages", FOLDER / f"{languages}.txt")
    return read(path) if path.is_file() else ()


def read(path: str | Path) -> tuple[LinkedPair, ...]:
    """The pairs of a file. ValueError names the file and the line of an error; OSError if there is no such file."""
    text = storage.decode(storage.read(arguments.path("path", path), LARGEST), path)
    return parse(text, str(path))


@checked
def pair(source: str, target: str, links: str) -> LinkedPair:
    """The pair of three lines in the format of README.md. ValueError for anything else."""
    (source, sources), (target, targets) = _words(source), _words(target)
    return LinkedPair(source, target, sources, targets, *_links(links))


@checked
def parse(text: str, name: str = "the text") -> tuple[LinkedPair, ...]:
    """The pairs of a text in the format of README.md. name : of the text, for errors."""
    pairs = []
    for number, lines in _blocks(text):
        if len(lines) != 3:
            raise ValueError(
                f"{name}, line {number}: a pair must be three lines, its source, its target and its links; "
                f"got {len(lines)}"
            )
        try:
            pairs.append(pair(*lines))
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from None
    if not pairs:
        raise ValueError(f"{name} must hold at least one pair; got none")
    return tuple(pairs)


def _blocks(text: str) -> Iterable[tuple[int, list[str]]]:
    """Groups of lines between empty lines, without comments, each with the number of its first line (from 1)."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip() and not line.startswith("#"):
            block.append((number, line.strip()))
        elif not line.strip() and block:
            yield block[0][0], [line for _, line in block]
            block = []


def _words(line: str) -> tuple[str, tuple[Span, ...]]:
    """A line without its bars, and the spans of its words in it. Words stand between spaces and bars."""
    spans = tuple(
        (match.start() - line.count("|", 0, match.start()), match.end() - line.count("|", 0, match.start()))
        for match in re.finditer(r"[^\s|]+", line)
    )
    if not spans:
        raise ValueError(f"a sentence must hold at least one word; got {line!r:.80}")
    return line.replace("|", ""), spans


def _links(line: str) -> tuple[frozenset[Link], frozenset[Link], tuple[frozenset[int], frozenset[int]]]:
    """`0-0 1-2? 3- -1` -> sure links, possible links, and the words of each side that have none."""
    seen, sure, alone = set(), set(), (set(), set())
    for item in line.split():
        match = _LINK.fullmatch(item)
        if not match or not (match[1] or match[2]) or (match[3] and not (match[1] and match[2])):
            raise ValueError(
                f"a link must be SOURCE-TARGET, counted from 0, with ? when it is only possible, and 3- or -3 "
                f"for a word without a link; got {item!r:.80}"
            )
        if not (match[1] and match[2]):
            alone[not match[1]].add(int(match[1] or match[2]))
            continue
        link = int(match[1]), int(match[2])
        if link in seen:
            raise ValueError(f"a link must be given once; got {_spell([link])} twice")
        seen.add(link)
        if not match[3]:
            sure.add(link)
    return frozenset(sure), frozenset(seen), (frozenset(alone[0]), frozenset(alone[1]))


def _spell(links: Iterable[Link]) -> str:
    return " ".join(f"{source}-{target}" for source, target in sorted(links))
