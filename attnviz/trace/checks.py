"""Checks of a Trace and its maps. Each raises ValueError; the message says what was wanted and what came."""

from collections.abc import Iterable

import numpy as np

from attnviz import arguments

TOLERANCE = 1e-4  # how far from 1 the sum of a row, or a probability, may be


def rows(weights, name: str) -> None:
    """weights (H, Q, K): finite, at least 0, each row sums to 1."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is wrong is said below
        sums = weights @ np.ones(weights.shape[-1], dtype=weights.dtype)
    if weights.min() >= 0 and np.abs(sums - 1).max() <= TOLERANCE / 2:  # nearly always, and three times as fast
        return
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


def numbers(name: str, values) -> tuple[float, ...]:
    arguments.check(name, values, Iterable[float])
    return tuple(map(float, values))


def strings(trace) -> None:
    """Texts are strings, indices are integers, marks are bools. A file may hold other types."""
    for name in ("model", "mechanism", "text", "translation"):
        if not isinstance(getattr(trace, name), str):
            raise ValueError(f"{name} must be text; got {arguments.shown(getattr(trace, name))}")
    for name in ("source", "target"):
        for i, token in enumerate(getattr(trace, name)):
            if (
                not isinstance(token.text, str)
                or not isinstance(token.word, int | None)
                or not isinstance(token.pieces, int)
                or not isinstance(token.piece, str | None)
            ):
                raise ValueError(
                    f"{name} token {i} must have a text, the index of its word or none, a count of pieces, and a piece "
                    f"or none; got {token!r:.120}"
                )
            marks(f"{name} token {i}", special=token.special, unknown=token.unknown)
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
    """Each target token has one log-probability (or no token has one) and one list of alternatives."""
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
            1 + TOLERANCE >= chances[0] and chances[-1] >= 0 and chances == sorted(chances, reverse=True)
        ):
            raise ValueError(f"alternatives must be probabilities, most probable first; got {chances} at step {t}")


def maps(trace) -> None:
    """No map comes twice, each has the shape that the tokens give it, and hidden keys have weight 0."""
    seen = set()
    for attention in trace.maps:
        if (attention.kind, attention.layer) in seen:
            raise ValueError(f"maps must differ in kind or layer; got {attention.name} twice")
        seen.add((attention.kind, attention.layer))
        if attention.kind == "cross" and not trace.target:
            raise ValueError(f"{attention.name} must have target tokens for its rows; got none")
        wanted = (len(trace.queries(attention)), len(trace.keys(attention)))
        if attention.weights.shape[1:] != wanted:
            raise ValueError(
                f"weights of {attention.name} must have {wanted[0]} queries and {wanted[1]} keys, as the tokens do; "
                f"got shape {attention.weights.shape}"
            )
        if attention.kind == "decoder" and (hidden := attention.weights * ~trace.visible(attention)).any():
            head, query, key = np.argwhere(hidden)[0]
            raise ValueError(
                f"weights of {attention.name} must be 0 on tokens not yet {'produced' if trace.target else 'read'}; "
                f"got {hidden[head, query, key]} in head {head}, query {query}, key {key}"
            )
