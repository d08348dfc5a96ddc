"""Combine the word alignments of two directions, source to target and target to source, into one.

Matrices of links are bool, (T, S): T target words, S source words. Intersection and union: Och & Ney 2003, section 3.3.
The others begin at the intersection and grow: Koehn et al. 2005, "Edinburgh System Description", section 2.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnviz import alignment
from attnviz.arguments import checked
from attnviz.gold import LinkedPair

GROW = "grow-diag"
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))  # of (source, target), in order


@checked
def symmetrise(forward: np.ndarray, backward: np.ndarray, method: str = GROW) -> np.ndarray:
    """Links (T, S) of two alignments (T, S). `backward` comes from the other direction and is already turned to (T, S).

    method : one of METHODS. ValueError for an unknown method, or for matrices of unequal shapes.
    """
    forward, backward = np.asarray(forward, bool), np.asarray(backward, bool)
    if forward.ndim != 2 or forward.shape != backward.shape:
        raise ValueError(f"both must be matrices of one shape (T, S); got {forward.shape} and {backward.shape}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r:.80}")
    return METHODS[method](forward, backward)


def _grow_diag(forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
    """The intersection, extended by cells of the union that touch a link, also diagonally, and have an unlinked
    word."""
    links, union = forward & backward, forward | backward
    grown = True
    while grown:
        grown = False
        for target, source in _beside(links):
            if union[target, source] and not links[target, source] and _free(links, target, source, any):
                links[target, source] = grown = True
    return links


def _beside(links: np.ndarray) -> Iterator[tuple[int, int]]:
    """The cells (target, source) around each link, source by source; includes links added during the iteration."""
    targets, sources = links.shape
    for source in range(sources):
        for target in range(targets):
            if not links[target, source]:
                continue
            for right, down in _NEIGHBOURS:
                if 0 <= target + down < targets and 0 <= source + right < sources:
                    yield target + down, source + right


def _free(links: np.ndarray, target: int, source: int, how: Callable) -> bool:
    """Is one of the two words unlinked (how: any), or are both (all)?"""
    return how((not links[target].any(), not links[:, source].any()))


def _grow_diag_final(how: Callable) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Add the links of either direction for which any, or all, of the two words are unlinked."""

    def grow(forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
        links = _grow_diag(forward, backward)
        for direction in (forward, backward):
            for source, target in np.argwhere(direction.T):
                if _free(links, target, source, how):
                    links[target, source] = True
        return links

    return grow


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "intersection": np.logical_and,
    "union": np.logical_or,
    GROW: _grow_diag,
    "grow-diag-final": _grow_diag_final(any),
    "grow-diag-final-and": _grow_diag_final(all),
}


@dataclass(frozen=True)
class Aligned:
    """A sentence pair: weights between words, links and their probabilities (0 to 1), all (T, S)."""

    links: np.ndarray
    probability: np.ndarray

    def moses(self, probabilities: bool = False) -> str:
        """`0-0 1-2`, source word first, from 0; with probabilities `0-0:0.912 1-2:0.403`."""
        cells = sorted((int(source), int(target)) for target, source in np.argwhere(self.links))
        if not probabilities:
            return " ".join(f"{source}-{target}" for source, target in cells)
        return " ".join(f"{source}-{target}:{self.probability[target, source]:.3f}" for source, target in cells)

    def naacl(self, pair: int) -> str:
        """`3 1 2`, a line for each link: the number of the pair, the source word, the target word, from 1 (Mihalcea &
        Pedersen 2003)."""
        cells = sorted((int(source), int(target)) for target, source in np.argwhere(self.links))
        return "".join(f"{pair} {source + 1} {target + 1}\n" for source, target in cells)

    @property
    def turned(self) -> "Aligned":
        """The same, transposed to (S, T)."""
        return Aligned(self.links.T, self.probability.T)


@checked
def aligned(
    translator,
    pairs: Sequence[LinkedPair],
    rule: Callable = alignment.argmax,
    shift: int = 0,
    head: alignment.HeadOrMean = (None, None),
) -> Iterator[Aligned | ValueError]:
    """The links of each pair from its attention, with the target forced; or the error that prevented it.

    head : layer and head from 0; None for the mean over heads, or over layers too. The probability of a link is its
    weight. ValueError for a model without attention, or without that head.
    """
    for pair, trace in zip(pairs, alignment.results(translator, pairs), strict=True):
        if isinstance(trace, ValueError):
            yield trace
            continue
        weights = alignment.on_words(trace, pair, shift)
        chosen = weights.get(head) if len(weights) != 1 or head != (None, None) else next(iter(weights.values()))
        if chosen is None:
            raise ValueError(
                f"the model must have layer and head {head}; it has {', '.join(map(str, weights)) or 'none'}"
            )
        yield Aligned(rule(chosen), np.nan_to_num(chosen))


@checked
def both(
    translator,
    reverse,
    pairs: Sequence[LinkedPair],
    rule: Callable = alignment.argmax,
    shift: int = 0,
    head: alignment.HeadOrMean = (None, None),
) -> Iterator[tuple[Aligned | ValueError, Aligned | ValueError]]:
    """`aligned` of each pair in both directions, both (T, S). reverse : a translator from target to source."""
    turned = [swapped(pair) for pair in pairs]
    for forward, backward in zip(
        aligned(translator, pairs, rule, shift, head), aligned(reverse, turned, rule, shift, head), strict=True
    ):
        yield forward, backward if isinstance(backward, ValueError) else backward.turned


def joined(forward: Aligned | ValueError, backward: Aligned | ValueError, method: str = GROW) -> Aligned | ValueError:
    """Two alignments as one: links by `symmetrise`, probabilities averaged. If either is an error, that error."""
    if isinstance(forward, ValueError):
        return forward
    if isinstance(backward, ValueError):
        return backward
    links = symmetrise(forward.links, backward.links, method)
    return Aligned(links, (forward.probability + backward.probability) / 2)


def report(
    translator,
    reverse,
    pairs: Sequence[LinkedPair],
    methods: Sequence[str] = tuple(METHODS),
    rule: Callable = alignment.argmax,
    shift: int = 0,
    head: alignment.HeadOrMean = (None, None),
) -> dict:
    """Error rates of each direction, and of both joined by each method, as in `alignment.report`.

    pairs, sure, possible    the numbers of pairs, sure links and possible links
    directions               forward, backward and each method: error_rate, precision, recall, links
    Raises ValueError naming the first pair that one of the models cannot read.
    """
    totals: dict[str, alignment.Counts] = {}
    for pair, sides in zip(pairs, both(translator, reverse, pairs, rule, shift, head), strict=True):
        if errors := [side for side in sides if isinstance(side, ValueError)]:
            raise ValueError(f"the pair {pair.source[:60]!r}, {pair.target[:60]!r}: {errors[0]}")
        forward, backward = sides
        results: dict[str, Any] = {"forward": forward, "backward": backward}
        results |= {method: joined(forward, backward, method) for method in methods}
        for name, result in results.items():
            counted = alignment.count(result.links, pair)
            totals[name] = totals[name] + counted if name in totals else counted
    return {
        "pairs": len(pairs),
        "sure": sum(len(pair.sure) for pair in pairs),
        "possible": sum(len(pair.possible) for pair in pairs),
        "directions": {name: counts.to_dict() for name, counts in totals.items()},
    }


def swapped(pair: LinkedPair) -> LinkedPair:
    """The pair in the other direction."""
    sure, possible = (frozenset((t, s) for s, t in links) for links in (pair.sure, pair.possible))
    return LinkedPair(pair.target, pair.source, pair.target_words, pair.source_words, sure, possible, pair.alone[::-1])
