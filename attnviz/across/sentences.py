"""One sentence's values, and which sentences are unlike the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz import stats
from attnviz.arguments import checked
from attnviz.trace import Trace

VALUES = tuple(name for name in stats.STATISTICS if name != "argmax") + ("special_mass",)
_MAD = 1.4826  # times the median absolute deviation is the standard deviation of normal values


@checked
def sentence(columns: Mapping, kind: str = "cross") -> dict[str, float]:
    """The mean of each of VALUES over all steps and heads of a kind; NaN where there is none.

    columns : `kind` and VALUES, one entry per step of a head, as `stats.steps` and `Measured.columns` have them.
    """
    rows = np.asarray(columns["kind"]) == kind
    means = {}
    for name in VALUES:
        values = np.asarray(columns[name], dtype=float)[rows]
        values = values[~np.isnan(values)]
        means[name] = float(values.mean()) if len(values) else float("nan")
    return means


@checked
def sharpness(trace: Trace, kind: str = "cross") -> float | None:
    """The mean normalised entropy over all steps and heads of a kind, as `sentence` has it: 0 is sharp, 1 is uniform.

    None for a trace without such attention, and where every step sees a single key.
    """
    maps = [attention for attention in trace.maps if attention.kind == kind]
    values = [stats.measure(each.weights, trace.visible(each), 0.1)["normalised_entropy"].ravel() for each in maps]
    numbers = np.concatenate([*values, np.empty(0)])
    numbers = numbers[~np.isnan(numbers)]
    return float(numbers.mean()) if len(numbers) else None


@checked
def outliers(values: pd.Series, limit: float = 3.5) -> pd.Series:
    """Robust z-scores of those beyond `limit`, the farthest first; empty where most values are equal.

    0.6745 (x - median) / MAD, with MAD the median absolute deviation, and 3.5: Iglewicz & Hoaglin 1993.
    """
    values = values.dropna()
    spread = _MAD * (values - values.median()).abs().median()
    if not spread > 0:
        return values.iloc[:0]
    scores = (values - values.median()) / spread
    beyond = scores[scores.abs() > limit]
    return beyond.reindex(beyond.abs().sort_values(ascending=False, kind="stable").index)


@checked
def share_above(value: float, quantiles: np.ndarray) -> float:
    """The share of values, 0 to 1, that are above `value`, from their quantiles at equal steps from 0 to 1."""
    return float(1 - np.interp(value, quantiles, np.linspace(0, 1, len(quantiles))))
