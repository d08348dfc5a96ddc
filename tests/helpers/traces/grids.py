"""For tests of figures: grids and frames, tokens by name, weights drawn or given; and the contrast of two colours."""

import numpy as np
import pandas as pd

from attnviz.select import Grid
from attnviz.trace import Token

EOS = Token("<eos>", 0, 0, special=True)


def words(*texts):
    return (*(Token(text, 0, len(text), word=i) for i, text in enumerate(texts)), EOS)


def grid(queries, keys, weights=None, kind="cross", visible=None, removed=None, mechanism="bahdanau"):
    shape = (len(queries), len(keys))
    if weights is None:
        weights = np.random.default_rng(0).dirichlet(np.full(shape[1], 0.3), shape[0])
    visible = np.ones(shape, bool) if visible is None else visible
    removed = np.zeros(shape[0]) if removed is None else removed
    return Grid("en-fr/x", mechanism, kind, 0, None, tuple(queries), tuple(keys), np.asarray(weights), removed, visible)


def dog():
    """chien and noir over dog and black."""
    return grid(words("chien", "noir"), words("dog", "black"), [[0.8, 0.1, 0.1], [0.05, 0.83, 0.12], [0.2, 0.2, 0.6]])


def frame(tokens, entropy=1.0):
    n = len(tokens)
    values = {"entropy_nats": entropy, "max_weight": 0.5, "effective_entropy": 2.7}
    return pd.DataFrame({"step": range(n), "token": tokens, **values})


def luminance(color):
    """Relative luminance (WCAG 2) of #rrggbb."""
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(first, other):
    low, high = sorted((luminance(first), luminance(other)))
    return (high + 0.05) / (low + 0.05)
