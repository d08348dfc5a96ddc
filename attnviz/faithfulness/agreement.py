"""Agreement of two measures of importance: Kendall's tau-b and the same first token, for each target token.

Letters: T target tokens, S source tokens.
"""

import numpy as np
import pandas as pd

from attnviz.arguments import checked
from attnviz.trace import Token


@checked
def tau_b(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a, b (T, S) -> (T,): Kendall's tau-b of each row (Kendall 1945), -1 to 1; NaN where all numbers of a row are
    equal."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"both must have shape (target tokens, source tokens); got {a.shape} and {b.shape}")
    signs = [np.sign(x[:, :, None] - x[:, None, :]) for x in (np.asarray(a, np.float64), np.asarray(b, np.float64))]
    pairs = [np.abs(sign).sum((1, 2)) for sign in signs]  # pairs that are not tied, each counted twice
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN
        return (signs[0] * signs[1]).sum((1, 2)) / np.sqrt(pairs[0] * pairs[1])


@checked
def spread_of_tau(size: int) -> float:
    """Standard deviation of tau between independent orders of `size` tokens (Kendall 1938): sqrt(2 (2n + 5) / 9n (n -
    1))."""
    if size < 2:
        raise ValueError(f"size must be at least 2; got {size}")
    return (2 * (2 * size + 5) / (9 * size * (size - 1))) ** 0.5


@checked
def agreement(attention: np.ndarray, attributions: dict[str, np.ndarray], tokens: tuple[Token, ...]) -> pd.DataFrame:
    """One row per target token and method: columns step, token, method, tau_b, top1.

    attention (T, S); attributions : method -> (T, S), compared by absolute value, because weights have no
    sign.
    top1 : do both have their largest value on the same source token?
    """
    attention, rows = np.asarray(attention), []
    if len(tokens) != len(attention):
        raise ValueError(f"tokens must be as many as the rows of attention, {len(attention)}; got {len(tokens)}")
    for method, values in attributions.items():
        size = np.abs(values)
        for step, (tau, same) in enumerate(zip(tau_b(attention, size), attention.argmax(-1) == size.argmax(-1))):
            rows.append((step, tokens[step].text, method, float(tau), bool(same)))
    return pd.DataFrame(rows, columns=["step", "token", "method", "tau_b", "top1"])
