"""Observations on a map, computed from its weights: `sentence` returns the most informative one, `observe` all.

A rule reads one Grid and states only what its weights show.

A map of cross-attention is read word by word: weights are SUMMED over the pieces of a source word and AVERAGED over the
pieces of a target word; words without a letter or digit are left out. A word "looks at" its most attended word when
that has at least LEAST of its weight. Axes: Q queries, K keys; T target words, S source words.

unit : the noun for a word of these texts; for the toy tasks a letter.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from attnviz.figures.labels import plain, quoted
from attnviz.select import Grid
from attnviz.stats import measure_grid

__all__ = ["RULES", "Observation", "observe", "sentence"]

LEAST = 0.5  # of its weight on one word, for a word to "look at" it
MOST_ROWS = 0.5  # more than this share of the rows makes "most rows"
NEARLY_ALL = 0.8  # share of the rows that makes a diagonal
SHARP = 0.8  # mean of the largest weights of the rows
BLURRED = 0.6  # mean normalised entropy of the rows
UNIFORM = 0.99  # the same, where no weight is worth naming
FAR = 3  # words from its place at which a word has moved, and
FAR_SHARE = 1 / 3  # this share of the source, whichever is more


@dataclass(frozen=True)
class Observation:
    """One observation on a map. rule : its name in RULES. sentence : plain text, not escaped.

    cells : the cells (query, key) that it is about, counted from 0; () when it is about the whole map.

    >>> reading.observe(select.select(trace))[0].cells
    ((1, 2), (2, 1))
    """

    rule: str
    sentence: str
    cells: tuple[tuple[int, int], ...] = ()


def special(grid: Grid, unit: str = "word") -> Observation | None:
    """Most rows of words have their largest weight on a special token (argmax)."""
    rows, best = _argmax(grid)
    on_special = [key for key in best if grid.keys[key].special]
    if not rows or len(on_special) <= MOST_ROWS * len(rows):
        return None
    names = " or ".join(dict.fromkeys(plain(grid.keys[key].text) for key in on_special))
    cells = tuple((row, key) for row, key in zip(rows, best) if grid.keys[key].special)
    text = f"{len(on_special)} of {len(rows)} rows look most at {names}: they look at no {unit} in particular."
    if len(rows) == 1:
        text = f"The row of the only {unit} looks most at {names}, and at no {unit} in particular."
    return Observation("special", text, cells)


def swapped(grid: Grid, unit: str = "word") -> Observation | None:
    """Two consecutive target words look at two source words in reverse order.

    Of several such pairs, those adjacent in the source come first, then the pair whose smaller weight is largest. All
    four must be single words.
    """
    if grid.kind != "cross":
        return None
    targets, sources, weights = _on_words(grid)
    best, largest = weights.argmax(1), weights.max(1)
    places = [t for t in range(len(targets) - 1) if best[t] > best[t + 1] and largest[t : t + 2].min() >= LEAST]
    if not places:
        return None
    first = max(places, key=lambda t: (best[t] - best[t + 1] == 1, largest[t : t + 2].min()))
    before, after = (_quoted_word(targets[t]) for t in (first, first + 1))
    seen = [f"looks at {_quoted_word(sources[best[t]])} ({largest[t]:.2f})" for t in (first, first + 1)]
    near = best[first] - best[first + 1] == 1
    in_source = " ".join(plain(sources[best[t]].text) for t in (first + 1, first))
    end = "in the source their order is reversed" + f", ‘{in_source}’" * bool(near)
    cells = tuple((targets[t].first, sources[best[t]].first) for t in (first, first + 1))
    return Observation("swapped", f"{before} {seen[0]}, and the next {unit}, {after}, {seen[1]}: {end}.", cells)


def moved(grid: Grid, unit: str = "word") -> Observation | None:
    """The word that looks furthest from its own place (both texts scaled to one length), if that is far."""
    if grid.kind != "cross":
        return None
    targets, sources, weights = _on_words(grid)
    best, largest = weights.argmax(1), weights.max(1)
    away = np.abs(best - _places(weights.shape)) * (largest >= LEAST)
    if not len(targets) or away.max() < max(FAR, FAR_SHARE * len(sources)):
        return None
    t = int(away.argmax())
    own_place, its_place = f"{unit} {t + 1} of {len(targets)}", f"{unit} {best[t] + 1} of {len(sources)}"
    looks = f"looks at {_quoted_word(sources[best[t]])} ({largest[t]:.2f}), {its_place} in the source"
    cells = ((targets[t].first, sources[best[t]].first),)
    return Observation("moved", f"{_quoted_word(targets[t])}, {own_place}, {looks}: far from its own place.", cells)


def reversed_order(grid: Grid, unit: str = "word") -> Observation | None:
    """Nearly all words look at the mirror image of their place, within one word; at least four words."""
    return _along(grid, True, "reversed", "an anti-diagonal", f"{unit}s look at the same place counted from the end")


def diagonal(grid: Grid, unit: str = "word") -> Observation | None:
    """Nearly all words look at their own place, within one word (both texts scaled to one length); at least four."""
    return _along(grid, False, "diagonal", "nearly a diagonal", f"{unit}s look at the same place in the source")


def _along(grid: Grid, mirrored: bool, name: str, shape: str, looks: str) -> Observation | None:
    share = _near(grid, mirrored)
    if share is None or share < NEARLY_ALL:
        return None
    return Observation(name, f"The map is {shape}: {share:.0%} of the {looks}, give or take one.")


def neighbour(grid: Grid, unit: str = "word") -> Observation | None:
    """Most rows of self-attention have their largest weight at one distance: themselves, the token before or after."""
    if grid.kind == "cross":
        return None
    rows, best = _argmax(grid)
    shifted = grid.sides == ("target", "input")  # key t is the token before target token t
    names = {-1: "the token before them", 0: "themselves", 1: "the token after them"}
    for distance, name in names.items():
        cells = tuple((row, key) for row, key in zip(rows, best) if key - row - shifted == distance)
        if rows and len(cells) > MOST_ROWS * len(rows):
            return Observation("neighbour", f"{len(cells)} of {len(rows)} rows look most at {name}.", cells)
    return None


def sharp(grid: Grid, unit: str = "word") -> Observation | None:
    """The mean of the largest weights of the rows is at least SHARP."""
    mean = _mean(grid, "max_weight")
    if mean is None or mean < SHARP:
        return None
    text = f"Sharp: on average {mean:.2f} of the weight of a {unit}'s row is on one token (punctuation aside)."
    return Observation("sharp", text)


def blurred(grid: Grid, unit: str = "word") -> Observation | None:
    """The mean normalised entropy of the rows is at least BLURRED."""
    mean, positions = _mean(grid, "normalised_entropy"), _mean(grid, "effective_entropy")
    if mean is None or mean < BLURRED:
        return None
    seen = grid.visible[_of_words(grid)].sum(1)
    count = f"{seen[0]} tokens" if (seen == seen[0]).all() else f"the {seen.mean():.1f} tokens that it sees"
    text = (
        f"Blurred: on average a {unit}'s row (punctuation aside) spreads its weight as widely as uniform attention "
        f"over {positions:.1f} of {count}."
    )
    return Observation("blurred", text)


def strongest(grid: Grid, unit: str = "word") -> Observation | None:
    """The largest weight in the rows of words; punctuation is not a word. None if no weight stands out (UNIFORM)."""
    if (_mean(grid, "normalised_entropy", _usable_rows(grid)) or 0) >= UNIFORM:
        return None
    looks = [cell for cell in zip(*_argmax(grid)) if any(map(str.isalnum, grid.queries[cell[0]].text))]
    if not looks:
        return None
    query, key = max(looks, key=lambda cell: grid.weights[cell])
    largest = f"{grid.weights[query, key]:.2f} on {quoted(grid.keys, key)}"
    text = f"Punctuation and special tokens aside, {quoted(grid.queries, query)} has the largest weight: {largest}."
    return Observation("strongest", text, ((query, key),))


RULES: dict[str, Callable[[Grid, str], Observation | None]] = {
    "special": special,
    "reversed": reversed_order,
    "moved": moved,
    "swapped": swapped,
    "diagonal": diagonal,
    "neighbour": neighbour,
    "sharp": sharp,
    "blurred": blurred,
    "strongest": strongest,
}


def observe(grid: Grid, unit: str = "word") -> list[Observation]:
    """All observations of RULES on a map, in their order; at least one, unless no row has weights.

    >>> [observation.rule for observation in reading.observe(select.select(trace))]
    ['swapped', 'strongest']
    """
    return [seen for rule in RULES.values() if (seen := rule(grid, unit)) is not None]


def sentence(grid: Grid, unit: str = "word") -> str:
    """The most important observations: the first one about places, then the sharpness; "" without weights.

    >>> reading.sentence(select.select(trace))
    '‘chien’ looks at ‘dog’ (0.73), and the next word, ‘noir’, looks at ‘black’ (0.80): in the source their order is
    reversed, ‘black dog’.'
    """
    places, degrees = [rule for name, rule in RULES.items() if name not in ("sharp", "blurred")], (sharp, blurred)
    first = (next(filter(None, (rule(grid, unit) for rule in rules)), None) for rules in (places, degrees))
    return " ".join(observation.sentence for observation in first if observation)


@functools.lru_cache(16)  # several rules ask for the same map
def _argmax(grid: Grid) -> tuple[list[int], list[int]]:
    """The rows of `_usable_rows`, and the most attended key of each. Do not modify them."""
    rows = _usable_rows(grid)
    return rows.tolist(), np.nan_to_num(grid.masked[rows], nan=-1).argmax(1).tolist() if len(rows) else []


@functools.lru_cache(16)
def _of_words(grid: Grid) -> np.ndarray:
    """The rows of `_usable_rows` that have a letter or digit, so no punctuation. Read-only."""
    rows = _usable_rows(grid)
    words = rows[[any(map(str.isalnum, grid.queries[row].text)) for row in rows]] if len(rows) else rows
    words.setflags(write=False)
    return words


def _mean(grid: Grid, statistic: str, rows: np.ndarray | None = None) -> float | None:
    """The mean over some rows, by default those of words; None if there are none."""
    rows = _of_words(grid) if rows is None else rows
    if not len(rows):
        return None
    return float(measure_grid(grid)[statistic][rows].mean())


def _near(grid: Grid, mirrored: bool) -> float | None:
    """Share of the target words that look within one word of the diagonal, or of the anti-diagonal; None if it does not
    apply."""
    if grid.kind != "cross":
        return None
    weights = _on_words(grid)[2]
    count, width = weights.shape
    if count < 4 or width < 4:
        return None
    places = _places(weights.shape)
    wanted = width - 1 - places if mirrored else places
    looks = weights.max(1) >= LEAST
    return float((looks & (np.abs(weights.argmax(1) - wanted) <= 1)).mean())


def _places(shape: tuple[int, int]) -> np.ndarray:
    """(T,): the position of each of T target words among S source words, from 0, with both texts scaled to one
    length."""
    count, width = shape
    return (np.arange(count) + 0.5) * width / max(count, 1) - 0.5


# From the pieces of a map to its words.


@dataclass(frozen=True)
class _Word:
    """A word of a map. first : its first token (from 0). tokens : all of them."""

    text: str
    first: int
    tokens: tuple[int, ...]


def _quoted_word(word: _Word) -> str:
    return f"‘{plain(word.text)}’"


@functools.lru_cache(16)
def _usable_rows(grid: Grid) -> np.ndarray:
    """The rows (from 0) of tokens that are not special, have weights and see more than one key. Read-only."""
    usable = np.isfinite(grid.weights).all(1) & (grid.visible.sum(1) > 1)
    rows = np.flatnonzero(usable & [not token.special for token in grid.queries])
    rows.setflags(write=False)
    return rows


@functools.lru_cache(16)
def _on_words(grid: Grid) -> tuple[tuple[_Word, ...], tuple[_Word, ...], np.ndarray]:
    """The words of both sides, and the weights (T, S) between them, read-only; rows without weights are left out."""
    usable = set(_usable_rows(grid).tolist())
    targets = [word for word in _words(grid.queries) if usable.issuperset(word.tokens)]
    sources = _words(grid.keys)
    weights = _between(grid.weights, targets, sources)
    weights.setflags(write=False)
    return tuple(targets), tuple(sources), weights


def _between(weights: np.ndarray, targets: list[_Word], sources: list[_Word]) -> np.ndarray:
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


def _words(tokens) -> list[_Word]:
    """Tokens joined to words; special tokens and words without a letter or digit are left out."""
    places = [place for place, token in enumerate(tokens) if not token.special and token.word is not None]
    words = []
    for _, group in groupby(places, key=lambda place: tokens[place].word):
        group = tuple(group)
        text = "".join(_new_text(tokens, place, group) for place in group).strip()
        if any(character.isalnum() for character in text):
            words.append(_Word(text, group[0], group))
    return words


def _new_text(tokens, place: int, group: tuple[int, ...]) -> str:
    """The text of a piece; "" for a further byte of a character that an earlier piece already covers."""
    before = tokens[place - 1] if place > group[0] else None
    span = (tokens[place].start, tokens[place].end)
    return "" if before is not None and (before.start, before.end) == span else tokens[place].text
