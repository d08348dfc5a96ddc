"""Statistics of attention, above all how concentrated it is, as tables: one row is one query, which is one step.

A statistic of the mean of heads is not the mean of the heads' statistics. `steps` and `summary` measure each head;
`of_grid` measures the grid as drawn, which may be the mean of heads. Axes: H heads, Q queries, K keys.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.select import Grid
from attnviz.trace import Trace
from attnviz.trace.checks import TOLERANCE

__all__ = ["STATISTICS", "of_grid", "rows", "steps", "summarise", "summary", "weights"]

STATISTICS = (
    "entropy_nats",
    "entropy_bits",
    "normalised_entropy",
    "max_weight",
    "effective_threshold",
    "effective_entropy",
    "effective_inverse",
    "gini",
    "argmax",
    "expected_position",
)
TINY = np.finfo(np.float64).tiny  # less than any weight but 0
_STEPS = ("model", "mechanism", "kind", "layer", "head", "step", "token", "argmax_token", *STATISTICS, "special_mass")
_WEIGHTS = ("model", "kind", "layer", "head", "query", "query_token", "key", "key_token", "weight")


@checked
def rows(weights: np.ndarray, threshold: float = 0.1, visible: np.ndarray | None = None) -> pd.DataFrame:
    """Every statistic of weights (Q, K), one row per query. visible : (Q, K) bool; all True unless given.

    entropy_nats, entropy_bits   -sum a ln a and -sum a log2 a, with 0 ln 0 = 0
    normalised_entropy   entropy / ln(number of visible keys), 0 to 1; NaN if one key is visible
    max_weight, argmax   the largest weight; the first key (from 0) that has it
    effective_threshold   the number of weights strictly above `threshold`
    effective_entropy, effective_inverse   exp(entropy in nats) and 1 / sum a^2: 1 to the number of visible keys
    gini   0 for equal weights on the visible keys, (n - 1) / n for all weight on one of n keys
    expected_position   sum a_k k, with k from 0

    Rows must sum to 1 within 1e-4, else ValueError. Rows are divided by their sum first, except for max_weight and
    effective_threshold, which use the weights as given. A row of NaN (blank, see `select.Grid`) is NaN in every column.

    >>> stats.rows(np.array([[0.5, 0.5], [1, 0]]))[["entropy_bits", "gini"]].values.tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    weights = np.asarray(weights)
    if weights.dtype.kind != "f":
        weights = weights.astype(np.float64)
    visible = np.ones(weights.shape, dtype=bool) if visible is None else np.asarray(visible, dtype=bool)
    _check(weights, visible, threshold)
    measured = measure(weights, visible, threshold)
    return pd.DataFrame(_integers(measured), index=pd.RangeIndex(len(weights), name="query"))


@checked
def steps(trace: Trace, threshold: float = 0.1, sink: bool = True) -> pd.DataFrame:
    """`rows` for every map, layer, head and step of a trace, with its tokens and special_mass, the weight on special
    keys.

    sink : True counts the column of a sink (see `AttentionMap`) as another, special key. False leaves it out, and each
    row is divided by its remaining sum; a row with all its weight on the sink is NaN.

    >>> stats.steps(trace).max_weight.round(2).tolist()
    [0.47, 0.73, 0.8, 0.64, 0.38, 0.64]
    """
    check_threshold(threshold)
    parts = []
    for attention in trace.maps:
        queries, keys = trace.queries(attention), trace.keys(attention)
        weights, visible = attention.weights, trace.visible(attention)
        if attention.sink and not sink:
            keys, visible = keys[:-1], visible[:, :-1]
            with np.errstate(invalid="ignore"):  # 0 / 0 is NaN, a blank row
                weights = attention.keys / attention.keys.sum(-1, keepdims=True)
        heads, steps_, _ = weights.shape
        part = {name: values.ravel() for name, values in measure(weights, visible, threshold).items()}
        part["special_mass"] = _special_mass(weights, keys).ravel()
        part["kind"] = np.full(heads * steps_, attention.kind, dtype=object)
        part["layer"] = np.full(heads * steps_, attention.layer)
        part["head"] = np.repeat(np.arange(heads), steps_)
        part["step"] = np.tile(np.arange(steps_), heads)
        part["token"] = np.tile(_texts(queries), heads)
        blank = np.isnan(part["argmax"])
        part["argmax_token"] = _texts(keys)[np.where(blank, 0, part["argmax"]).astype(int)]
        part["argmax_token"][blank] = None
        parts.append(part)
    return _frame(parts, _STEPS, model=trace.model, mechanism=trace.mechanism)


@checked
def of_grid(grid: Grid, threshold: float = 0.1) -> pd.DataFrame:
    """`rows` for one grid, with its tokens: special_mass is on special keys that are shown, removed_mass on those that
    are hidden.

    >>> stats.of_grid(select.select(trace)).argmax_token.tolist()
    ['The', 'dog', 'black', 'runs', '.', '<eos>']
    """
    columns = columns_of_grid(grid, threshold)
    return pd.DataFrame(columns | {name: _column(columns[name]) for name in ("token", "argmax_token")})


def columns_of_grid(grid: Grid, threshold: float = 0.1) -> dict[str, Any]:
    """The columns of `of_grid`: arrays (Q,), and one text for the model and for the mechanism. For pictures, because
    making a data frame takes longer than computing the numbers."""
    _check(grid.weights, grid.visible, threshold)
    measured = measure_grid(grid) if threshold == 0.1 else measure(grid.weights, grid.visible, threshold)
    blank = np.isnan(measured["argmax"])
    best = _texts(grid.keys)[np.where(blank, 0, measured["argmax"]).astype(int)]
    best[blank] = None
    return {
        "model": grid.model,
        "mechanism": grid.mechanism,
        "step": np.arange(len(grid.queries)),
        "token": _texts(grid.queries),
        "argmax_token": best,
        **_integers(measured),
        "special_mass": _special_mass(grid.weights, grid.keys),
        "removed_mass": grid.removed.astype(float),
    }


def means_and_stds(columns: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Mean and population standard deviation over the steps of each column (Q,), as in `summarise`: NaN is skipped; the
    result is NaN if all values are."""
    values = np.array(list(columns.values()), dtype=float)
    valid = ~np.isnan(values)
    counts, values = valid.sum(1), np.where(valid, values, 0)
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: no step has the statistic
        means = values.sum(1) / counts
        off = np.where(valid, values - means[:, None], 0)
        stds = np.sqrt((off**2).sum(1) / counts)
    return dict(zip(columns, zip(means.tolist(), stds.tolist())))


def _column(texts: np.ndarray):
    """Texts as a column of type str; of type object if one contains half a surrogate pair, which type str cannot
    hold."""
    halves = any("\ud800" <= character <= "\udfff" for text in texts for character in text or "")
    return pd.Series(texts, dtype=object) if halves else texts


@checked
def summary(trace: Trace, threshold: float = 0.1, sink: bool = True) -> pd.DataFrame:
    """Mean and population standard deviation over the steps, for every map, layer, head and statistic of a trace.

    sink : as of `steps`.

    >>> stats.summary(trace).query("statistic == 'max_weight'")[["mean", "std"]].round(2).values.tolist()
    [[0.61, 0.14]]
    """
    return summarise(steps(trace, threshold, sink))


@checked
def summarise(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and population standard deviation of each statistic in a frame of `steps` or `of_grid`, or several joined.

    One row for each statistic of each model, and of each kind, layer and head if the frame has them. NaN is skipped.

    >>> stats.summarise(stats.of_grid(select.select(trace, special=False))).statistic.tolist()[-2:]
    ['special_mass', 'removed_mass']
    """
    names = [name for name in (*STATISTICS, "special_mass", "removed_mass") if name in frame]
    ids = [name for name in ("model", "mechanism", "kind", "layer", "head") if name in frame]
    group = frame.groupby(ids, sort=False).ngroup().to_numpy()
    values = np.column_stack([frame[name].to_numpy(dtype=float) for name in names])  # (rows, statistics)
    valid = ~np.isnan(values)
    values = np.where(valid, values, 0)
    cells = group[:, None] * len(names) + np.arange(len(names))
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN: no step has the statistic
        count = np.bincount(cells.ravel(), valid.ravel())
        mean = np.bincount(cells.ravel(), values.ravel()) / count
        off = np.where(valid, values - mean[cells], 0)
        std = np.sqrt(np.bincount(cells.ravel(), (off**2).ravel()) / count)
    first = np.unique(group, return_index=True)[1]
    labels = {name: np.repeat(frame[name].to_numpy()[first], len(names)) for name in ids}
    return pd.DataFrame(
        {**labels, "statistic": np.tile(np.array(names, dtype=object), len(first)), "mean": mean, "std": std}
    )


@checked
def weights(trace: Trace) -> pd.DataFrame:
    """Every weight of a trace, one a row, with its tokens: the data of all heatmaps.

    >>> stats.weights(trace).nlargest(2, "weight")[["query_token", "key_token"]].values.tolist()
    [['noir', 'black'], ['chien', 'dog']]
    """
    parts = []
    for attention in trace.maps:
        head, query, key = (axis.ravel() for axis in np.indices(attention.weights.shape))
        parts.append(
            {
                "kind": np.full(head.size, attention.kind, dtype=object),
                "layer": np.full(head.size, attention.layer),
                "head": head,
                "query": query,
                "query_token": _texts(trace.queries(attention))[query],
                "key": key,
                "key_token": _texts(trace.keys(attention))[key],
                "weight": attention.weights.ravel(),
            }
        )
    return _frame(parts, _WEIGHTS, model=trace.model)


def measure(weights, visible, threshold):
    """weights (..., Q, K), visible (Q, K) -> {statistic: (..., Q)}, floats.

    A row of NaN has NaN for every statistic.
    """
    # in the weights' precision: float32(.1) is not above .1
    above = weights > np.asarray(threshold, dtype=weights.dtype)
    n, size = visible.sum(-1), weights.shape[-1]
    positions, ones = np.arange(size), np.ones(size)
    sums, a, entropy = _entropy(weights)
    blank = np.isnan(a[..., 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        normalised = np.where(n > 1, entropy / np.log(n), np.nan)
        # sum_i (2i - n - 1) a_(i) / n, ascending; masked zeros come first and shift the ranks by size - n
        ascending = np.sort(weights, -1)
        ranked = ascending @ (positions + 1.0) / sums
        gini = (2 * ranked - 2 * (size - n) - n - 1) / n
    largest, count, first = ascending[..., -1].astype(np.float64), above @ ones, weights.argmax(-1)
    values = (
        entropy,
        entropy / np.log(2),
        normalised,
        largest,
        np.where(blank, np.nan, count),
        np.exp(entropy),
        1 / np.einsum("...k,...k", a, a),
        np.maximum(gini, 0),
        np.where(blank, np.nan, first),
        a @ positions,
    )
    return dict(zip(STATISTICS, values))


def _entropy(weights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """weights (..., Q, K) -> their sums (..., Q), the shares of these (..., Q, K), and the entropy in nats (..., Q)."""
    sums = weights @ np.ones(weights.shape[-1])  # products are twice as fast as `sum` on short rows
    a = weights / sums[..., None]
    return sums, a, -np.einsum("...k,...k", a, np.log(np.maximum(a, TINY))) + 0.0  # 0 log 0 = 0; + 0.0: no "-0.0"


def normalised_entropy(weights, visible) -> np.ndarray:
    """Only the normalised entropy of `measure`: weights (..., Q, K), visible (Q, K) -> (..., Q)."""
    n = visible.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 1, _entropy(weights)[2] / np.log(n), np.nan)


@functools.lru_cache(16)  # the tables, the lines and the sentences of a map ask for the same
def measure_grid(grid: Grid) -> dict[str, np.ndarray]:
    """`measure` of a map as it is drawn, {statistic: (Q,)}, with the threshold .1. Do not modify it."""
    return measure(grid.weights, grid.visible, 0.1)


def means(weights, visible, threshold: float = 0.1) -> dict[str, np.ndarray]:
    """weights (H, Q, K), visible (Q, K) -> the mean of each statistic over the steps, (H,), as in `summary`.

    Heads are measured one by one, to use little memory. Steps without the statistic are skipped; NaN if no step has it.
    """
    check_threshold(threshold)
    heads = [measure(head, visible, threshold) for head in weights]
    return {name: np.array([_mean(measured[name]) for measured in heads]) for name in STATISTICS}


def _mean(values):
    valid = values[~np.isnan(values)]
    return valid.mean() if valid.size else np.nan


def check_threshold(threshold):
    """ValueError unless the threshold is a possible weight."""
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be from 0 to 1; got {threshold}")


def _integers(measured):
    """The same with argmax as integers, unless a blank row makes it NaN."""
    argmax = measured["argmax"]
    return measured if np.isnan(argmax).any() else {**measured, "argmax": argmax.astype(np.int64)}


def _frame(parts, columns, **constants):
    stacked = {
        name: np.concatenate([part[name] for part in parts]) for name in columns if parts and name not in constants
    }
    if "argmax" in stacked:
        stacked = _integers(stacked)
    stacked = {name: _column(values) if values.dtype == object else values for name, values in stacked.items()}
    return pd.DataFrame({**constants, **stacked} if parts else {}, columns=list(columns))


def _texts(tokens):
    return np.array([token.text for token in tokens], dtype=object)


def _special_mass(weights, keys):
    return weights[..., [token.special for token in keys]].sum(-1, dtype=np.float64)


def _check(weights, visible, threshold):
    check_threshold(threshold)
    if weights.ndim != 2 or not weights.shape[1]:
        raise ValueError(f"weights must have axes [queries, keys], with at least one key; got shape {weights.shape}")
    if visible.shape != weights.shape:
        raise ValueError(f"visible must have the shape of the weights, {weights.shape}; got {visible.shape}")
    missing = np.isnan(weights)
    blank = missing.all(-1)
    problems = (
        ("hold numbers, or NaN in the whole row", missing.any(-1) & ~blank),
        ("be at least 0", (weights < 0).any(-1)),
        ("be 0 where a key is not visible", ((weights > 0) & ~visible).any(-1)),
        ("sum to 1", ~blank & ~(np.abs(weights.sum(-1, dtype=np.float64) - 1) <= TOLERANCE)),
    )
    for wanted, bad in problems:
        if bad.any():
            row = int(bad.argmax())
            raise ValueError(f"weights of every row must {wanted}; got {weights[row].round(4).tolist()} in row {row}")
