"""Attention through the layers: rollout, and the distances that each layer attends over.

Rollout (Abnar & Zuidema 2020, sec. 3) combines the self-attention of all layers up to one:

    A~_l = (A_l + I) / 2         A_l is the mean of the heads; I stands for the residual connection
    R_l  = A~_l R_(l-1)          so R_L = A~_L ... A~_1: the last layer is on the left

Row q of R_l is an estimate of how much of each input position reaches position q after layer l. It uses only attention
and residual connections. It leaves out value projections, feed-forward layers and, in a decoder, cross-attention.
Axes: L layers, H heads, Q queries, K keys.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from attnviz import patterns
from attnviz.arguments import checked, shown
from attnviz.trace import AttentionMap, Trace

SELF = ("encoder", "decoder")


@checked
def matrices(maps: Sequence[np.ndarray]) -> np.ndarray:
    """Weights (H, Q, Q) of each layer, the first layer first -> R (L, Q, Q), R[l] after layer l; rows sum to 1.

    >>> rollout.matrices([np.array([[[1, 0], [1, 0]]])] * 2)[-1].tolist()
    [[1.0, 0.0], [0.75, 0.25]]
    """
    maps = [np.asarray(layer) for layer in maps]
    if any(layer.ndim != 3 or layer.shape[1:] != maps[0].shape[:0:-1] for layer in maps):
        raise ValueError(
            f"maps must be square, (H, Q, Q) with one Q in all layers; got {[layer.shape for layer in maps]}"
        )
    rolled = []
    for heads in maps:
        mixed = (heads.mean(0, dtype=np.float64) + np.eye(heads.shape[1])) / 2
        rolled.append(mixed @ rolled[-1] if rolled else mixed)
    return np.array(rolled)


@checked
def rollout(trace: Trace, kind: str = "encoder") -> Trace:
    """The same trace with the rollout up to each layer as its maps, one head each, to be drawn and measured like any
    map. A sink (see `AttentionMap`) passes nothing on: what reaches it stays in its column.

    In a decoder map row t is the position that produced token t; the residual is its input, key t.
    ValueError for cross-attention, whose queries are not its keys; for a trace of words (roll out the pieces, then join
    them with `select.words`); and if a layer is missing.

    >>> trace = attnviz.from_arrays([[[[1, 0], [1, 0]]]] * 2, ["The", "dog"])
    >>> rollout.rollout(trace, "decoder").map("decoder", 1).weights.tolist()
    [[[1.0, 0.0], [0.75, 0.25]]]
    """
    if kind not in SELF:
        raise ValueError(f"kind must be encoder or decoder, where queries are keys too; got {shown(kind)}")
    if trace.level != "pieces":
        raise ValueError("the trace must be of pieces; roll out first, then join the pieces to words")
    maps = sorted((m for m in trace.maps if m.kind == kind), key=lambda m: m.layer)
    if [m.layer for m in maps] != list(range(len(maps))) or not maps:
        have = ", ".join(str(m.layer) for m in maps) or "none"
        raise ValueError(f"the trace must have the {kind} maps of every layer from 0 on; got {have}")
    sink = any(m.sink for m in maps)
    rolled = matrices([_with_sink_row(m) for m in maps] if sink else [m.weights for m in maps])
    rolled = rolled[:, :-1] if sink else rolled
    made = (AttentionMap(kind, layer, weights[None], sink=sink) for layer, weights in enumerate(rolled))
    return replace(trace, maps=tuple(made))


def _with_sink_row(attention: AttentionMap) -> np.ndarray:
    """Weights (H, Q + 1, Q + 1): what reached the sink stays there."""
    weights = attention.weights if attention.sink else np.pad(attention.weights, ((0, 0), (0, 0), (0, 1)))
    weights = np.pad(weights, ((0, 0), (0, 1), (0, 0)))
    weights[:, -1, -1] = 1
    return weights


@checked
def by_distance(trace: Trace, kind: str = "encoder") -> pd.DataFrame:
    """The share of each layer's weight at each distance from the query's own place, all heads and queries together.

    Columns: kind, layer, distance (in keys; negative is before the query), weight (sums to 1 in a layer). Only
    distances that occur are listed. In cross-attention the place is the key on the diagonal (see `patterns.Layout`).

    >>> rollout.by_distance(attnviz.from_arrays([[[[1, 0], [1, 0]]]], ["The", "dog"]), "decoder")
    """
    maps = sorted((m for m in trace.maps if m.kind == kind), key=lambda m: m.layer) or [trace.map(kind)]
    parts = []
    for attention in maps:
        view = patterns.layout(trace, attention)
        offsets = view.offset[view.visible]
        first = offsets.min()
        weights = attention.weights.mean(0, dtype=np.float64)[view.visible]
        shares = np.bincount(offsets - first, weights) / len(view.queries)
        occurs = np.unique(offsets)
        parts.append(
            pd.DataFrame({"kind": kind, "layer": attention.layer, "distance": occurs, "weight": shares[occurs - first]})
        )
    return pd.concat(parts, ignore_index=True)
