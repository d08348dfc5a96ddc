"""Tokens that look like markup, formulas or code, and figures of them."""

import numpy as np
import pandas as pd

from attnviz import figures
from attnviz.select import Grid
from attnviz.trace import AttentionMap, Token, Trace

NASTY = (
    "</script><b>x</b>",
    "<!--",
    "]]>",
    '"',
    "'",
    "\\",
    "שלום",
    "عالم",
    "日本",
    "👩\u200d🚀",
    "\u2028",
    "$x$",
    "&amp;",
    "=1+1",
)


def nasty_grid():
    tokens = tuple(Token(text, 0, len(text), word=i) for i, text in enumerate(NASTY))
    size = len(tokens)
    visible = np.ones((size, size), dtype=bool)
    return Grid("en-fr/x", "bahdanau", "cross", 0, None, tokens, tokens, np.eye(size), np.zeros(size), visible)


def trace(model="en-fr/bahdanau", text="a\ud800"):
    tokens = (Token(text[0], 0, 1, word=0), Token("<eos>", 1, 1, special=True))
    weights = np.array([[[0.1, 0.9], [1 / 3, 2 / 3]]], dtype=np.float32)
    return Trace(
        model, "bahdanau", text, text, False, tokens, tokens, (-0.1, -0.2), (), (AttentionMap("cross", 0, weights),)
    )


def nasty_figure(name):
    """The figures that the browser checks open, by name."""
    grid = nasty_grid()
    values = {"entropy_nats": 1.0, "max_weight": 0.5, "effective_entropy": 2.7}
    steps = pd.DataFrame({"step": range(len(NASTY)), "token": NASTY, **values})
    table = pd.DataFrame({"mechanism": NASTY, "statistic": "gini", "mean": 1.0, "std": 0.5})
    return {
        "heatmap": lambda: figures.heatmap(grid, 1, NASTY[0]),
        "bars": lambda: figures.step_bars(grid, 1, NASTY[0], dark=True),
        "difference": lambda: figures.difference(np.eye(len(NASTY)), grid, NASTY[:2]),
        "steps": lambda: figures.by_step(dict.fromkeys(NASTY[:3], steps), len(NASTY)),
        "table": lambda: figures.comparison(table, dark=True),
    }[name]()
