"""What the queries (rows, Q) and the keys (columns, K) of an attention map are, by the kind of the map; see `Trace`."""

from collections.abc import Sequence

import numpy as np

from attnviz.trace.token import Token

KINDS = ("cross", "encoder", "decoder")
SIDES = {  # kind -> what the rows are, what the columns are
    "cross": ("target", "source"),
    "encoder": ("source", "source"),
    "decoder": ("target", "input"),
}


def tokens(
    kind: str, source: tuple[Token, ...], target: tuple[Token, ...], start: Token
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The tokens of the queries, and those of the keys. target : () of a model that only reads."""
    if kind == "encoder" or not target:
        return source, source
    return target, (start, *target[:-1]) if kind == "decoder" else source


def visible(kind: str, queries: Sequence[Token], keys: int, words: bool) -> np.ndarray:
    """bool (Q, K): True where a query can attend to a key.

    words : the queries are words of a target. One of several pieces also sees key t + 1, which is the word itself.
    """
    if kind != "decoder":
        return np.ones((len(queries), keys), dtype=bool)
    last = np.arange(len(queries))
    if words:
        last = last + np.array([token.pieces > 1 for token in queries])
    return np.arange(keys) <= last[:, None]
