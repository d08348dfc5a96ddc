"""From the pieces of a map to its words. Axes: Q queries, K keys; T target words, S source words."""

import functools
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from attnviz.figures.labels import plain
from attnviz.select import Grid


@dataclass(frozen=True)
class Word:
    """A word of a map. first : its first token (from 0). tokens : all of them."""

    text: str
    first: int
    tokens: tuple[int, ...]


def quoted_word(word: Word) -> str:
    return f"‘{plain(word.text)}’"


def usable_rows(grid: Grid) -> np.ndarray:
    """The rows (from 0) of tokens that are not special, have weights and see more than one key."""
    usable = np.isfinite(grid.weights).all(1) & (grid.visible.sum(1) > 1)
    return np.flatnonzero(usable & [not token.special for token in grid.queries])


@functools.lru_cache(16)  # several rules ask for the same map
def on_words(grid: Grid) -> tuple[tuple[Word, ...], tuple[Word, ...], np.ndarray]:
    """The words of both sides, and the weights (T, S) between them, read-only; rows without weights are left out."""
    kept = set(usable_rows(grid).tolist())
    targets = [word for word in _words(grid.queries) if kept.issuperset(word.tokens)]
    sources = _words(grid.keys)
    weights = _between(grid.weights, targets, sources)
    weights.setflags(write=False)
    return tuple(targets), tuple(sources), weights


def _between(weights: np.ndarray, targets: list[Word], sources: list[Word]) -> np.ndarray:
    """Weights (Q, K) of tokens -> (T, S) of words: sums over the keys of a word, means over its queries."""
    if not targets or not sources:
        return np.zeros((len(targets), max(len(sources), 1)))
    rows, columns = ([token for word in words for token in word.tokens] for words in (targets, sources))
    first_row, first_column = (
        np.cumsum([0, *(len(word.tokens) for word in words)][:-1]) for words in (targets, sources)
    )
    chosen = weights[np.ix_(rows, columns)].astype(float)
    sums = np.add.reduceat(np.add.reduceat(chosen, first_column, axis=1), first_row, axis=0)
    return sums / [[len(word.tokens)] for word in targets]


def _words(tokens) -> list[Word]:
    """Tokens joined to words; special tokens and words without a letter or digit are left out."""
    places = [place for place, token in enumerate(tokens) if not token.special and token.word is not None]
    words = []
    for _, group in groupby(places, key=lambda place: tokens[place].word):
        group = tuple(group)
        text = "".join(_new_text(tokens, place, group) for place in group).strip()
        if any(character.isalnum() for character in text):
            words.append(Word(text, group[0], group))
    return words


def _new_text(tokens, place: int, group: tuple[int, ...]) -> str:
    """The text of a piece; "" for a further byte of a character that the piece before it has said."""
    before = tokens[place - 1] if place > group[0] else None
    span = (tokens[place].start, tokens[place].end)
    return "" if before is not None and (before.start, before.end) == span else tokens[place].text
