"""Weights in common formats -> one array (heads, queries, keys) per layer. If two interpretations are possible,
ValueError names both.

Rows that do not sum to 1 were rounded, or a sink holds the rest, or there is another reason, which an error then names.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attnviz import arguments
from attnviz.trace import containers
from attnviz.trace.checks import TOLERANCE

NO_WEIGHTS = (
    "got none, as of a model that computes its attention in another way (sdpa or flash): load it with "
    'attn_implementation="eager", and run it again'
)
_LAYER = "weights must be one array of axes [heads, queries, keys] a layer"
# A number type: bits of the fraction, and the exponent of the smallest normal number.
_TYPES = {"float16": (10, -14), "bfloat16": (7, -126)}
_SMALL = {"float8_e4m3": (3, -6), "float8_e5m2": (2, -14)}
_GRIDS = {f"{digits} digits": 10.0**-digits for digits in (5, 4, 3, 2)} | {"8 bits": 1 / 255}
_PADDING = ("[PAD]", "<pad>", "<|endoftext|>", "<|pad|>", "[pad]", "<PAD>", "")


class Layer(NamedTuple):
    """weights (H, Q, K). number : from 0. averaged : the one head is the mean of all. dtype : as given."""

    number: int
    weights: np.ndarray
    averaged: bool
    dtype: str


class Reading(NamedTuple):
    """The number of tokens, and the caller's choices: see `from_arrays`."""

    tokens: int
    target: int
    batch: int | None
    skip: bool


def kinds(weights, kind: str | None, read: Reading) -> dict[str, list[Layer]]:
    """The layers of each kind."""
    usual = kind or ("cross" if read.target else "encoder")
    by_kind = containers.layers_by_name(weights, kind) if containers.is_named(weights) else {kind: weights}
    result = {name or usual: _layers(value, name or usual, read) for name, value in by_kind.items()}
    if None in by_kind and not read.target and _are_causal(result[usual]):
        result["decoder"] = result.pop(usual)
    return result


def _are_causal(layers: list[Layer]) -> bool:
    """Does no token see a later one? Unknown where each sees itself alone."""
    numbers = all(layer.weights.ndim == 3 and layer.weights.dtype.kind in "biuf" for layer in layers)
    shapes = {layer.weights.shape[1:] for layer in layers} if numbers else set()
    square = len(shapes) == 1 and all(rows == columns for rows, columns in shapes)
    return square and _any(layers, np.tril, -1) and not _any(layers, np.triu, 1)


def _any(layers: list[Layer], half: Callable, place: int) -> bool:
    """Is there weight in this half of a map?"""
    return any(np.nan_to_num(half(layer.weights, place)).any() for layer in layers)


def _layers(weights, kind: str, read: Reading) -> list[Layer]:
    rows = read.target if kind != "encoder" and read.target else read.tokens
    parts, dtypes, numbers = [], [], []
    for number, entry in enumerate(_entries(weights, rows, read)):
        if entry is None:
            if not read.skip:
                raise ValueError(
                    f'layer {number} is missing (None); missing="skip" shows the others by their own numbers'
                )
            continue
        array = _array(entry)
        dtypes.append(containers.dtype(_first(entry)))
        parts.append(_of_text(array, read.batch))
        numbers.append(number)
    means = bool(parts) and all(averaged for _, averaged in parts)
    return [Layer(n, part, means, kind) for n, (part, _), kind in zip(numbers, parts, dtypes)]


def _array(entry) -> np.ndarray:
    array = containers.array(entry)
    if array is None:
        try:
            array = np.asarray(_plain(entry))
        except ValueError:
            raise ValueError(f"{_LAYER}; got lists of different lengths") from None
        except (TypeError, RuntimeError):
            raise ValueError(f"{_LAYER}; got lists of something else than numbers") from None
    return array


def _plain(entry):
    """Lists of tensors, such as one for each head, as lists of NumPy arrays; anything else as it is."""
    if isinstance(entry, list | tuple):
        return entry if isinstance(next(iter(entry), 0.0), int | float) else [_plain(part) for part in entry]
    array = containers.array(entry)
    return entry if array is None else array


def _first(entry):
    """The first tensor or number of lists in lists."""
    while isinstance(entry, list | tuple) and entry:
        entry = entry[0]
    return entry


def _entries(weights, rows: int, read: Reading) -> list:
    """The entry of each layer."""
    array = containers.array(weights)
    if array is not None:
        if array.ndim == 0:
            raise ValueError(f"{_LAYER}; got {arguments.shown(weights)}")
        return _split(weights, array, read)
    if weights is None:
        raise ValueError(f"weights must hold at least one layer; {NO_WEIGHTS}")
    if not arguments.is_list(weights):
        raise ValueError(f"{_LAYER}; got {arguments.shown(weights)}")
    entries = list(weights)
    if all(map(_is_nothing, entries)):
        raise ValueError(f"weights must hold at least one layer; {NO_WEIGHTS}")
    _refuse_generated(entries)
    _refuse_output(entries)
    shapes = [None if entry is None else _shape(entry) for entry in entries]
    if entries and all(shape is not None and len(shape) == 1 for shape in shapes):
        return [_joined([_array(entry)[None] for entry in entries])]
    steps = [shape is not None and len(shape) > 1 and shape[-2] == 1 for shape in shapes]
    if len(entries) == rows > 1 and all(steps):
        return [_joined([_array(entry) for entry in entries])]
    plain = len(entries) > 1 and all(type(entry) is list and entry and type(entry[0]) is list for entry in entries)
    if plain and all(shape and len(shape) == 2 for shape in shapes):
        return _split(entries, _array(entries), read)  # lists alone: nothing says that each is a layer
    return entries


def _is_nothing(entry) -> bool:
    return entry is None or (isinstance(entry, list | tuple) and all(map(_is_nothing, entry)))


def _shape(entry) -> tuple:
    return tuple(getattr(entry, "shape", ())) or np.shape(_array(entry))


def _joined(steps: list[np.ndarray]) -> np.ndarray:
    """Arrays (…, 1, K), one per query, as one (…, Q, K); shorter rows are padded with 0."""
    longest = max(step.shape[-1] for step in steps)
    filled = [np.pad(step, [(0, 0)] * (step.ndim - 1) + [(0, longest - step.shape[-1])]) for step in steps]
    if len({step.shape[:-2] for step in filled}) > 1:
        raise ValueError(f"every step must have the same heads; got shapes {sorted({step.shape for step in steps})}")
    return np.concatenate(filled, axis=-2)


def _split(weights, array: np.ndarray, read: Reading) -> list:
    """One array of some layers, or of one."""
    shape = array.shape
    if not array.size:
        raise ValueError(f"weights are empty: an array of shape {shape} has no numbers")
    if array.ndim == 5:
        return list(weights)
    if array.ndim == 2 or shape[0] == 1 or read.batch is not None:
        return [weights]
    if array.ndim == 3:
        raise _ambiguous(shape)
    if array.ndim == 4:
        raise ValueError(
            f"weights are one array of shape {shape}, and this looks like a batch of {shape[0]}; choose one with "
            f"batch=0. If its first axis is layers, give list(weights)"
        )
    raise ValueError(f"{_LAYER}; got one array of shape {shape}")


def _ambiguous(shape: tuple) -> ValueError:
    """Of one array with three axes, whose first may be heads, layers or texts."""
    return ValueError(
        f"weights must be a list with one array of axes [heads, queries, keys] a layer; got one array of shape "
        f"{shape}: is it one layer? Then put it in a list, [weights] (or weights[None]; in a file, name it layer_0). "
        f"Is it a batch of {shape[0]}, each the mean of the heads? Then choose one with batch=0"
    )


def _of_text(array: np.ndarray, batch: int | None) -> tuple[np.ndarray, bool]:
    """(1, H, Q, K), (B, H, Q, K), (H, Q, K), (B, Q, K) or (Q, K) -> (H, Q, K), and whether it is a mean of heads."""
    if array.ndim == 2:
        return array[None][[place(batch, 1)]], True
    if array.ndim == 4 and (len(array) == 1 or batch is not None):
        return array[place(batch, len(array))], False
    if array.ndim == 4:
        raise ValueError(
            f"a layer has shape {array.shape}, and this looks like a batch of {len(array)}; choose one with batch=0"
        )
    if array.ndim == 3 and batch is not None:
        return array[place(batch, len(array))][None], True
    return array, array.ndim == 3 and len(array) == 1


def place(batch: int | None, count: int) -> int:
    """The text of a batch of `count` that is chosen. ValueError for one that is not there."""
    arguments.check("batch", batch, int | None)
    place = batch or 0
    if count == 1 and batch is None:
        return 0
    if not 0 <= place < count:
        raise ValueError(f"batch must be one of 0 to {count - 1}; got {batch}")
    return place


def _refuse_generated(entries: list) -> None:
    """ValueError for what `generate()` returns: a list by step of lists by layer."""
    inner = next((entry for entry in entries if entry is not None), None)
    if isinstance(inner, list | tuple) and any(len(getattr(part, "shape", ())) >= 3 for part in inner):
        raise ValueError(
            "weights are lists by step of lists by layer, as generate(output_attentions=True) returns them; use "
            "attnviz.from_generate(output, tokens)"
        )


def _refuse_output(entries: list) -> None:
    """ValueError for (output, weights), which attention layers return, and for an output and a cache of hooks."""
    if len(entries) == 2 and any(map(containers.is_named, entries)):
        raise ValueError("weights are a pair with names in it: this looks like (output, cache); give the cache alone")
    if len(entries) != 2 or any(entry is None or not hasattr(entry, "shape") for entry in entries):
        return
    first, second = map(_array, entries)
    if first.dtype.kind == "f" and first.shape != second.shape and first.ndim == 3 and np.nanmin(first, initial=0) < 0:
        raise ValueError(
            f"weights are two arrays of shapes {first.shape} and {second.shape}, and the first has values below 0: "
            "this looks like (output, weights) of an attention layer; give its weights alone"
        )


def unrounded(weights: np.ndarray, dtype: str, sink: bool) -> tuple[np.ndarray, str]:
    """The weights (H, Q, K), with rows divided by their sums if rounding explains the deviation from 1; and a sentence
    on it, or "".

    dtype : of the array as it was given. For values of a wider type, the rounding is inferred from the values. Rounding
    moves each weight by at most half a step; a softmax computed in that type by as much again. sink : may rows sum to
    less than 1?
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
            rounded = f"The weights were rounded to {name}: rows summed to {sums.min():.4f} up to {sums.max():.4f}, "
            return scaled, f"{rounded}and each was divided by its sum." if off.max() > TOLERANCE else ""
    return weights, ""


def _steps(weights: np.ndarray):
    """Every rounding that leaves exactly these values unchanged: its name, and the distance of neighbours at each
    value."""
    ways = [(name, _ulp(weights, *bits)) for name, bits in _TYPES.items()]
    ways += [(name, np.full(weights.shape, step)) for name, step in _GRIDS.items()]
    ways += [(name, _ulp(weights, *bits)) for name, bits in _SMALL.items()]
    for name, step in ways:
        near = 0.02 if name in _GRIDS else 1e-6
        places = weights.astype(np.float64) / step
        if (np.abs(places - np.round(places)) <= near).all():
            yield name, step / 2 if name in _GRIDS else step


def _ulp(weights: np.ndarray, fraction: int, least: int) -> np.ndarray:
    exponent = np.frexp(weights.astype(np.float64))[1] - 1
    return 2.0 ** (np.maximum(np.where(weights > 0, exponent, least), least) - fraction)


def with_rest(weights: np.ndarray) -> np.ndarray:
    """The weights with another key that has the remainder of each row to 1."""
    weights = weights.astype(np.float64)
    rest = 1 - weights.sum(-1, keepdims=True)
    if (most := 1 - np.nanmin(rest, initial=0)) > 1 + TOLERANCE:
        raise ValueError(f"a row sums to {most:.4f}: a sink holds what a row lacks of 1, and this one lacks nothing")
    return np.concatenate([weights, np.where((rest < 0) & (rest > -TOLERANCE), 0, rest)], axis=-1)


def likely_cause(error: str, weights: np.ndarray, tokens: list[str]) -> str:
    """A likely cause for weights that a map refuses, and what to do; appended to the error."""
    if weights.ndim != 3 or not weights.size or weights.dtype.kind not in "fiu":
        return ""
    weights = weights.astype(np.float64)
    empty = np.isnan(weights).all(-1) | (weights == 0).all(-1)
    if empty.all():
        return "; no row has any weight in it"
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
    if np.ptp(sums) < 0.1 * (mean := sums.mean()) and mean > 50:
        return f"; every row sums to about {mean:.0f}: divide by {100 if mean < 110 else 255}, as of percents or bytes"
    advice = "; give them as they are after the softmax and before dropout"
    if sums.max() <= 1 + TOLERANCE:
        advice += ', or, if the model has attention sinks, use rest="sink", which shows the rest in a column'
    return advice


def _padding_of(tokens: list[str], query: int) -> str:
    return next((token for token in tokens if token in _PADDING), tokens[query] if query < len(tokens) else "<pad>")
