"""Rows of weights that do not sum to 1: they were rounded, or a sink holds the rest, or there is another reason,
which an error then names. weights (H, Q, K)."""

import numpy as np

from attnviz import arguments
from attnviz.trace.checks import TOLERANCE

# A number type: bits of the fraction, and the exponent of the smallest normal number.
_TYPES = {"float16": (10, -14), "bfloat16": (7, -126)}
_SMALL = {"float8_e4m3": (3, -6), "float8_e5m2": (2, -14)}
_DIGITS = (5, 4, 3, 2)
_PADDING = ("[PAD]", "<pad>", "<|endoftext|>", "<|pad|>", "[pad]", "<PAD>", "")


def undone(weights: np.ndarray, dtype: str, sink: bool) -> tuple[np.ndarray, str]:
    """The weights, with rows divided by their sums where rounding explains how far these are from 1; and a sentence
    that says so, or "".

    dtype : of the array as it was given. Values of a wider type tell by themselves to what they were rounded. Rounding
    moves each weight by half a step at most; a softmax computed in that type by as much again. sink : rows may sum to
    less.
    """
    if weights.ndim != 3 or not weights.size or weights.dtype.kind != "f" or not np.isfinite(weights).all():
        return weights, ""
    sums = weights.sum(-1, keepdims=True, dtype=np.float64)
    off = sums - 1 if sink else np.abs(sums - 1)
    narrow = dtype.startswith(("float16", "bfloat16", "float8"))
    if (weights < 0).any() or (off.max() <= TOLERANCE / 2 and not narrow):
        return weights, ""
    ways = sorted(_steps(weights), key=lambda way: not dtype.startswith(way[0]))  # what it was given as comes first
    for name, step in ways:
        if (off <= step.sum(-1, keepdims=True) * (1 + 1e-6)).all():
            scaled = weights / np.maximum(sums, 1) if sink else weights / np.where(sums == 0, 1, sums)
            said = f"The weights were rounded to {name}: rows summed to {sums.min():.4f} up to {sums.max():.4f}, "
            return scaled, f"{said}and each was divided by its sum." if off.max() > TOLERANCE else ""
    return weights, ""


def _steps(weights: np.ndarray):
    """Each way of rounding that leaves exactly these values: its name, and the distance of neighbours at each value."""
    ways = [(name, _ulp(weights, *bits)) for name, bits in _TYPES.items()]
    ways += [(f"{digits} digits", np.full(weights.shape, 10.0**-digits)) for digits in _DIGITS]
    ways += [(name, _ulp(weights, *bits)) for name, bits in _SMALL.items()]
    for name, step in ways:
        near = 0.02 if "digits" in name else 1e-6
        places = weights.astype(np.float64) / step
        if (np.abs(places - np.round(places)) <= near).all():
            yield name, step / 2 if "digits" in name else step


def _ulp(weights: np.ndarray, fraction: int, least: int) -> np.ndarray:
    exponent = np.frexp(weights.astype(np.float64))[1] - 1
    return 2.0 ** (np.maximum(np.where(weights > 0, exponent, least), least) - fraction)


def with_rest(weights: np.ndarray) -> np.ndarray:
    """The weights with one more key, which holds what each row lacks of 1."""
    weights = weights.astype(np.float64)
    rest = 1 - weights.sum(-1, keepdims=True)
    return np.concatenate([weights, np.where((rest < 0) & (rest > -TOLERANCE), 0, rest)], axis=-1)


def cause(error: str, weights: np.ndarray, tokens: list[str]) -> str:
    """What may be wrong with weights that a map refuses, and what to do; to be put behind the error."""
    if weights.ndim != 3 or not weights.size or weights.dtype.kind not in "fiu":
        return ""
    weights = weights.astype(np.float64)
    empty = np.isnan(weights).all(-1) | (weights == 0).all(-1)
    if empty.any() and ("sum to 1" in error or "finite" in error):
        query = int(np.argwhere(empty)[0][1])
        name = f" ({arguments.shown(tokens[query])})" if query < len(tokens) else ""
        return (
            f"; row {query}{name} has no weights, as the row of a padding token has none: leave padding out with "
            f'padding=["{_padding_of(tokens, query)}"] (or its places, or the attention mask)'
        )
    if "finite" in error:
        low = np.nanmin(weights) < 0
        return "; values below 0 are scores: give them after the softmax" if low else ""
    if "sum to 1" not in error:
        return ""
    sums = weights.sum(-1)
    if np.abs(weights.sum(-2) - 1).max() <= TOLERANCE:
        return "; the columns sum to 1, so rows and columns are exchanged: give the transposed weights"
    advice = "; give them as they are after the softmax and before dropout"
    if sums.max() <= 1 + TOLERANCE:
        advice += ', or, if the model has attention sinks, use rest="sink", which shows the rest in a column'
    return advice


def _padding_of(tokens: list[str], query: int) -> str:
    return next((token for token in tokens if token in _PADDING), tokens[query] if query < len(tokens) else "<pad>")
