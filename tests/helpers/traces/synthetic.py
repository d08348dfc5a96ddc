"""Traces for tests: no model, but real weights (a seeded softmax) and tokens with correct offsets."""

import re
from dataclasses import replace

import numpy as np

from attnviz.trace import Alternative, AttentionMap, Token, Trace


def message(error):
    return str(error.value)


def texts(tokens):
    return [token.text for token in tokens]


def with_map(trace, kind, weights):
    """The trace with one map, of one layer."""
    return replace(trace, maps=(AttentionMap(kind, 0, weights),))


def tokens(text, pieces=False):
    """Words and punctuation marks of `text`, then <eos>; with `pieces` a word of more than 3 letters is two tokens."""
    made = []
    for index, match in enumerate(re.finditer(r"\w+|[^\w\s]", text)):
        start, end = match.span()
        middle = (start + end + 1) // 2
        spans = [(start, middle), (middle, end)] if pieces and end - start > 3 else [(start, end)]
        made += [Token(text[a:b], a, b, word=index) for a, b in spans]
    return (*made, Token("<eos>", len(text), len(text), special=True))


def softmax(scores, visible=True):
    """scores (..., Q, K) -> weights float32; exactly 0 where not visible."""
    e = np.where(visible, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def trace(
    source="The black dog",
    target="Le chien noir",
    heads=1,
    layers=1,
    kinds=("cross",),
    seed=0,
    pieces=False,
    model="synthetic",
    mechanism="synthetic",
    forced=False,
):
    """A Trace with `heads` heads in `layers` layers of each kind, the numbers drawn from `seed`."""
    rng = np.random.default_rng(seed)
    queries, keys = tokens(target, pieces), tokens(source, pieces)
    shapes = {"cross": (len(queries), len(keys)), "encoder": (len(keys),) * 2, "decoder": (len(queries),) * 2}
    maps = []
    for kind in kinds:
        visible = np.tri(len(queries), dtype=bool) if kind == "decoder" else True
        maps += [
            AttentionMap(kind, layer, softmax(3 * rng.normal(size=(heads, *shapes[kind])), visible))
            for layer in range(layers)
        ]
    chances = np.sort(softmax(3 * rng.normal(size=(len(queries), 8))), axis=-1)[:, ::-1].astype(float)  # (T, 8)
    alternatives = tuple(
        (Alternative(token.text, row[0]), *(Alternative(f"other{i}", row[i]) for i in range(1, 5)))
        for token, row in zip(queries, chances.tolist())
    )
    return Trace(
        model,
        mechanism,
        source,
        target,
        forced,
        keys,
        queries,
        tuple(np.log(chances[:, 0]).tolist()),
        alternatives,
        tuple(maps),
    )
