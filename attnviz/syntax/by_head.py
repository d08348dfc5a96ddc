"""How often the key that a head weighs most is the word that syntax names (Clark et al. 2019, sec. 4.2; Voita et al.
2019, sec. 5.2.1).

For each relation there are two questions. From a dependant: is its governor the word that it attends to most? From a
governor: is one of its dependants with this relation? Weights are summed over the pieces of a key word and averaged
over those of a query word; special tokens are left out, as in both papers. The baseline is the best fixed offset, such
as "the next word", chosen on the same sentences, which favours the baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz import syntax
from attnviz.alignment import between_words
from attnviz.arguments import checked
from attnviz.syntax import DIRECTIONS, RELATIONS, TO_GOVERNOR, Parse
from attnviz.trace import AttentionMap, Trace

FARTHEST = 20  # words, of the fixed offsets
COLUMNS = ("model", "kind", "layer", "head", "relation", "direction", "right", "count", "share", "offset", "baseline")


class Question(NamedTuple):
    """query : the word that is asked. right : the words that are a right answer. Both counted from 0."""

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
    """
    return _largest(*_on_words(trace, parse, trace.map(kind, layer)))


@checked
def table(traces: Iterable[Trace], parses: Mapping[str, Parse] | None = None, *, kind: str = "encoder") -> pd.DataFrame:
    """One row for each head, relation and direction, over all sentences.

    right of count questions are answered right, share is their quotient. baseline is the share of the fixed offset (in
    words) that answers most of them. A question counts where the query sees at least one right answer, which matters in
    a causal model. Relations that do not occur are left out.

    parses : by text; None for `syntax.shipped()`. ValueError if a text has no parse, or there is no trace.
    """
    parses = syntax.shipped() if parses is None else parses
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
