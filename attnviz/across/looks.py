"""How a sentence is read in order: numbers of where its steps look most, from cross-attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from attnviz import alignment
from attnviz.arguments import checked
from attnviz.gold import LinkedPair
from attnviz.trace import Token, Trace

LOOKS = ("order_swaps", "coverage")


@checked
def looks(columns: Mapping, source: Sequence[Token]) -> dict[str, float]:
    """LOOKS of one sentence, each the mean over the heads of its cross-attention; NaN without any.

    order_swaps : of the steps that look most at a token of the source, how many look further to the front than such a
        step before them. 0 for a translation in the order of the source.
    coverage : the share of the source's tokens at which at least one step looks most, 0 to 1.
    Special tokens such as <eos> are no tokens of the source here.
    columns : `kind`, `layer`, `head`, `step` and `argmax`, one entry per step of a head, as in
        `Measured.columns`.
    """
    rows = np.asarray(columns["kind"]) == "cross"
    words = np.array([not token.special for token in source])
    heads = np.asarray(columns["layer"])[rows], np.asarray(columns["head"])[rows]
    argmax = np.asarray(columns["argmax"])[rows].astype(int)
    swaps, shares = [], []
    for layer, head in dict.fromkeys(zip(*(part.tolist() for part in heads))):
        places = argmax[(heads[0] == layer) & (heads[1] == head)]
        places = places[words[places]]
        swaps.append(int((np.diff(places) < 0).sum()))
        shares.append(len(set(places.tolist())) / max(words.sum(), 1))
    if not swaps or not words.any():
        return dict.fromkeys(LOOKS, float("nan"))
    return {"order_swaps": float(np.mean(swaps)), "coverage": float(np.mean(shares))}


@checked
def alignment_error(trace: Trace, pair: LinkedPair) -> float:
    """The alignment error rate of one sentence against links set by hand (Och & Ney 2003), 0 to 1; of several heads,
    that of their mean. NaN without cross-attention. ValueError unless the trace is of the pair's texts."""
    weights = alignment.on_words(trace, pair)
    if not weights:
        return float("nan")
    mean = weights.get((None, None), next(iter(weights.values())))
    return alignment.count(alignment.argmax(mean), pair).error_rate
