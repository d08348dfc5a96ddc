"""How concentrated attention is: the statistics of weights as arrays. `stats` makes tables of them, and says what each
means. Axes: H heads, Q queries, K keys."""

import numpy as np

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


def measure(weights, visible, threshold):
    """weights (..., Q, K), visible (Q, K) -> {statistic: (..., Q)}, floats.

    A row of NaN has NaN for every statistic.
    """
    # in the weights' precision: float32(.1) is not above .1
    above = weights > np.asarray(threshold, dtype=weights.dtype)
    n, size = visible.sum(-1), weights.shape[-1]
    positions, ones = np.arange(size), np.ones(size)
    sums = weights @ ones  # products are twice as fast as `sum` on short rows
    a = weights / sums[..., None]
    entropy = -np.einsum("...k,...k", a, np.log(np.maximum(a, TINY))) + 0.0  # 0 log 0 = 0; + 0.0: no "-0.0"
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
    """ValueError unless it is a weight."""
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be from 0 to 1; got {threshold}")
