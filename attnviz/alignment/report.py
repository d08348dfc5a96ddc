"""Alignment error rates of a model: of every head, of their means, and of the best head, as a card has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from attnviz import arguments, lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.alignment.links import Counts, argmax, count, diagonal
from attnviz.alignment.words import HeadOrMean, on_words
from attnviz.gold import LinkedPair
from attnviz.trace import Trace

SHIFTS = (-1, 0, 1)  # rows by which `report` moves the weights


@checked
def measure(
    traces: Sequence[Trace], pairs: Sequence[LinkedPair], rule: Callable = argmax, shift: int = 0
) -> pd.DataFrame:
    """The error rate over all pairs, one row for each head and each mean of heads (see `on_words`).

    Columns: layer and head (NA for a mean), error_rate, precision, recall, links. No rows for a model without
    attention.
    """
    rows = [
        {"layer": layer, "head": head, **_total(counts).to_dict()}
        for (layer, head), counts in _counted(traces, pairs, rule, shift).items()
    ]
    return pd.DataFrame(rows, columns=["layer", "head", "error_rate", "precision", "recall", "links"]).astype(
        {"layer": "Int64", "head": "Int64"}
    )


@checked
def best_head(
    traces: Sequence[Trace], pairs: Sequence[LinkedPair], rule: Callable = argmax, shift: int = 0
) -> tuple[Counts, list[HeadOrMean]]:
    """The counts of the best head, chosen on other sentences than those scored.

    The even sentences are scored with the head that is best on the odd ones, and the reverse. Returns the counts over
    all pairs and the heads chosen for the even and the odd sentences. ValueError for a model without attention, and for
    a model of several heads with fewer than two pairs.
    """
    heads = {head: counts for head, counts in _counted(traces, pairs, rule, shift).items() if None not in head}
    if not heads:
        raise ValueError("there must be attention to measure; got none")
    if len(heads) > 1 and len(pairs) < 2:
        raise ValueError(
            f"the best of {len(heads)} heads is chosen on other sentences than those scored, so at least two linked "
            f"pairs are needed; got {len(pairs)}"
        )
    total, chosen = Counts(0, 0, 0, 0), []
    for scored in (0, 1):
        rates = {head: _total(counts[1 - scored :: 2]).error_rate for head, counts in heads.items()}
        best = min(heads, key=lambda head: (np.isnan(rates[head]), rates[head]))  # a head without a rate comes last
        total, chosen = total + _total(heads[best][scored::2]), [*chosen, best]
    return total, chosen


@checked
def report(translator, pairs: Sequence[LinkedPair], rule: Callable = argmax) -> dict | None:
    """The alignment section of a card, by forced decoding of the pairs' targets. None without pairs or attention.

    translator : any object with `trace(source, target) -> Trace`. One that also has `traces`, as models have, is asked
    for all pairs at once, which takes a fraction of the time.

    pairs, sure, possible    the numbers of pairs, sure links and possible links
    heads, means             the rates of every head, and of the mean of heads by layer and over all layers
    best_head                the rates of the best head (see `best_head`), and which heads were chosen
    shifted                  the same with rows shifted by one step, -1 and 1
    diagonal                 the rates of the diagonal, which needs no model
    """
    if not callable(getattr(translator, "trace", None)) or hasattr(translator, "shape"):  # matrices have a trace, too
        raise ValueError(f"translator must be a model that traces; got {arguments.shown(translator)}")
    traces = _forced(translator, pairs)
    frame = measure(traces, pairs, rule)
    if frame.empty:
        return None
    records = [
        {key: None if pd.isna(value) else value for key, value in row.items()} for row in frame.to_dict("records")
    ]
    best = {shift: best_head(traces, pairs, rule, shift) for shift in SHIFTS}
    shifted = {
        shift: counts.to_dict() | {"chosen": [list(head) for head in chosen]}
        for shift, (counts, chosen) in best.items()
    }
    baseline = _total([count(diagonal(len(pair.target_words), len(pair.source_words)), pair) for pair in pairs])
    return {
        "pairs": len(pairs),
        "sure": sum(len(pair.sure) for pair in pairs),
        "possible": sum(len(pair.possible) for pair in pairs),
        "best_head": shifted[0],
        "diagonal": baseline.to_dict(),
        "shifted": {str(shift): shifted[shift] for shift in SHIFTS if shift},
        "heads": [row for row in records if row["head"] is not None],
        "means": [row for row in records if row["head"] is None],
    }


def _forced(translator, pairs: Sequence[LinkedPair]) -> list[Trace]:
    """The trace of each pair. Raises ValueError with the first pair that cannot be read."""
    if callable(getattr(translator, "traces", None)):
        results = translator.traces([pair.source for pair in pairs], [pair.target for pair in pairs])
    else:
        results = (_one(translator, pair) for pair in pairs)
    traces = []
    for pair, result in zip(pairs, results, strict=True):
        if isinstance(result, ValueError):
            raise ValueError(f"the pair {pair.source[:60]!r}, {pair.target[:60]!r}: {result}")
        traces.append(result)
    return traces


def _one(translator, pair: LinkedPair) -> Trace | ValueError:
    try:
        return translator.trace(pair.source, pair.target)
    except ValueError as error:
        return error


def _counted(traces, pairs, rule, shift) -> dict[HeadOrMean, list[Counts]]:
    """The counts of every pair, for every head and every mean."""
    if len(traces) != len(pairs):
        raise ValueError(f"there must be one trace for each pair; got {len(traces)} traces and {len(pairs)} pairs")
    counted: dict[HeadOrMean, list[Counts]] = {}
    for trace, pair in zip(traces, pairs):
        for head, weights in on_words(trace, pair, shift).items():
            counted.setdefault(head, []).append(count(rule(weights), pair))
    return counted


def _total(counts: Iterable[Counts]) -> Counts:
    return sum(counts, Counts(0, 0, 0, 0))
