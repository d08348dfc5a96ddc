"""Checks of a Trace and its maps. All raise ValueError; the message has the expected and the actual value."""

from collections.abc import Iterable
from types import NoneType

import numpy as np

from attnviz import arguments
from attnviz.trace.token import queries_and_keys, visible_keys

INDEX, PIECE = (int, NoneType), (str, NoneType)  # tuples: `int | None` is built anew each time, and slower
TOLERANCE = 1e-4  # how far from 1 the sum of a row, or a probability, may be
_BITS = np.float32(1 + TOLERANCE).view(np.uint32)  # read so, negative numbers, infinity and NaN are larger


def are_rows(weights) -> bool:
    """Quickly: are all weights (..., K) float32 surely at least 0, and do all rows surely sum to 1?"""
    if weights.view(np.uint32).max() > _BITS:  # one is not from 0 to 1, or NaN
        return False
    sums = weights.sum(-1)
    return sums.min() >= 1 - TOLERANCE / 2 and sums.max() <= 1 + TOLERANCE / 2


def rows(weights, name: str) -> None:
    """weights (H, Q, K) float32: finite, at least 0, each row sums to 1."""
    if not np.isfinite(weights).all() or weights.min() < 0:
        head, query, key = np.argwhere(~(weights >= 0) | np.isinf(weights))[0]
        raise ValueError(
            f"{name} must be finite and at least 0; "
            f"got {weights[head, query, key]} in head {head}, query {query}, key {key}"
        )
    off = np.abs(weights.sum(-1, dtype=np.float64) - 1)
    if off.max() > TOLERANCE:
        head, query = np.unravel_index(off.argmax(), off.shape)
        raise ValueError(
            f"{name} must sum to 1 over the keys of every row; "
            f"got {weights[head, query].sum():.4f} in head {head}, query {query}"
        )


def mask(attention) -> np.ndarray:
    """The mask of a map, bool (Q, K): every query sees a key, and hidden keys have weight 0."""
    name, (_, queries, keys) = attention.name, attention.keys.shape
    mask = np.array(attention.mask)
    if mask.dtype != bool or mask.shape != (queries, keys):
        raise ValueError(f"mask of {name} must be True or False for {queries} queries and {keys} keys")
    if not (mask.any(1) | attention.sink).all():
        raise ValueError(f"mask of {name} must leave each query a key; got none in query {mask.any(1).argmin()}")
    if (attention.keys * ~mask).any():
        head, query, key = np.argwhere(attention.keys * ~mask)[0]
        raise ValueError(
            f"weights of {name} must be 0 where its mask hides a key; got {attention.keys[head, query, key]} in head "
            f"{head}, query {query}, key {key}"
        )
    mask.setflags(write=False)
    return mask


def numbers(name: str, values) -> tuple[float, ...]:
    """The values as floats."""
    if isinstance(values, tuple) and all(type(value) is float for value in values):  # nearly always
        return values
    arguments.check(name, values, Iterable[float])
    return tuple(map(float, values))


def strings(trace) -> None:
    """Texts must be strings, indices integers, marks bools. A file may have other types."""
    for name in ("model", "mechanism", "text", "translation", "read_as"):
        if not isinstance(getattr(trace, name), str):
            raise ValueError(f"{name} must be text; got {arguments.shown(getattr(trace, name))}")
    for name in ("source", "target"):
        for i, token in enumerate(getattr(trace, name)):
            if not (
                isinstance(token.text, str)
                and isinstance(token.word, INDEX)
                and isinstance(token.pieces, int)
                and isinstance(token.piece, PIECE)
            ):
                raise ValueError(
                    f"{name} token {i} must have a text, the index of its word or none, a count of pieces, and a piece "
                    f"or none; got {token!r:.120}"
                )
            if not (isinstance(token.special, bool) and isinstance(token.unknown, bool)):
                marks(f"{name} token {i}", special=token.special, unknown=token.unknown)
    if not all(isinstance(note, str) for note in trace.notes):
        raise ValueError(f"notes must be texts; got {arguments.shown(trace.notes)}")
    if type(trace.longest) is not int or trace.longest < 0:
        raise ValueError(f"longest must be an integer of at least 0; got {arguments.shown(trace.longest)}")
    marks("the trace", forced=trace.forced, complete=trace.complete)
    if not isinstance(trace.start.text, str) or not all(
        isinstance(choice.text, str) for step in trace.alternatives for choice in step
    ):
        raise ValueError("the start token and the alternatives must have texts")


def marks(what: str, **given) -> None:
    """Must be bool: code uses these marks as masks, and an integer would index tokens."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} of {what} must be true or false; got {arguments.shown(value)}")


def tokens(name: str, tokens, text: str) -> None:
    """Every token lies within its text. A token that is not special is a slice of it."""
    for i, token in enumerate(tokens):
        if not 0 <= token.start <= token.end <= len(text):
            raise ValueError(
                f"{name} token {i} must lie within the {len(text)} characters of its text; "
                f"got {token.start} to {token.end}"
            )
        if not token.special and text[token.start : token.end] != token.text:
            raise ValueError(
                f"{name} token {i} must be its text from {token.start} to {token.end}, "
                f"{text[token.start : token.end]!r:.80}; got {arguments.shown(token.text)}"
            )


def steps(trace) -> None:
    """Each target token has one log-probability (or none has) and one list of alternatives."""
    steps = len(trace.target)
    for name, values in (("log_probs", trace.log_probs or trace.target), ("alternatives", trace.alternatives)):
        if len(values) != steps:
            raise ValueError(f"{name} must have one entry for each of the {steps} target tokens; got {len(values)}")
    for t, log_prob in enumerate(trace.log_probs):
        if not -np.inf < log_prob <= TOLERANCE:
            raise ValueError(f"log_probs must be finite and at most 0; got {log_prob} at step {t}")
    for t, step in enumerate(trace.alternatives):
        chances = [choice.probability for choice in step]
        if chances and not (
            chances[0] <= 1 + TOLERANCE and chances[-1] >= 0 and chances == sorted(chances, reverse=True)
        ):
            raise ValueError(f"alternatives must be probabilities, most probable first; got {chances} at step {t}")


def maps(trace) -> None:
    """No map comes twice, each has the shape that the tokens give it, and hidden keys have weight 0."""
    kinds = dict.fromkeys(attention.kind for attention in trace.maps)
    sides = {kind: queries_and_keys(kind, trace.source, trace.target, trace.start) for kind in kinds}
    seen = set()
    for attention in trace.maps:
        if (attention.kind, attention.layer) in seen:
            raise ValueError(f"maps must differ in kind or layer; got {attention.name} twice")
        seen.add((attention.kind, attention.layer))
        if attention.kind == "cross" and not trace.target:
            raise ValueError(f"{attention.name} must have target tokens for its rows; got none")
        queries, keys = map(len, sides[attention.kind])
        if attention.keys.shape[1:] != (queries, keys):
            raise ValueError(
                f"weights of {attention.name} must have {queries} queries and {keys} keys, as the tokens do; "
                f"got shape {attention.keys.shape}{_other_axes(attention, queries, keys)}"
            )
    causal = [attention for attention in trace.maps if attention.kind == "decoder"]
    if causal:
        queries, keys = sides["decoder"]
        words = trace.level == "words" and bool(trace.target)
        hidden, done = ~visible_keys("decoder", queries, len(keys), words), "produced" if trace.target else "read"
        for attention in causal:
            future(attention, hidden, done)


def _other_axes(attention, queries: int, keys: int) -> str:
    """What to do with weights whose axes are others, to be put behind an error."""
    shape = attention.keys.shape
    if shape[1:] == (keys, queries):
        return "; rows and columns are exchanged: give the transposed weights"
    if shape == (queries, 1, keys):
        return "; the batch of 1 is its second axis: give weights[:, 0]"
    only_rows = attention.kind == "encoder" and queries == keys == shape[2]
    return "; if its rows are target tokens, give these too, as target" if only_rows else ""


def future(attention, hidden: np.ndarray, done: str) -> None:
    """Hidden keys have weight 0. hidden (Q, K), bool. done : a word for the error message."""
    weights = attention.keys * hidden
    if weights.any():
        head, query, key = np.argwhere(weights)[0]
        raise ValueError(
            f"weights of {attention.name} must be 0 on tokens not yet {done}; "
            f"got {weights[head, query, key]} in head {head}, query {query}, key {key}"
        )
