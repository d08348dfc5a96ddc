"""One step of attention with every number on the way: query, scores, weights, values, context, next token.

    >>> opened = inside.step(model, trace, step=2)
    >>> opened.scores, opened.weights, opened.parts.terms

`step` computes it; `temperatures`, `other_scores` and `spread` ask what else the scores could have been; `formula`
writes one score with its numbers put in, and `symbols` says what its letters stand for. `windows` is where local
attention looks at every step.
"""

from attnviz.inside.compute import step, windows
from attnviz.inside.scores import other_scores, spread, temperatures
from attnviz.inside.values import REFERENCES, Comparison, Parts, Step, Window, formula, symbols

__all__ = [
    "REFERENCES",
    "Comparison",
    "Parts",
    "Step",
    "Window",
    "formula",
    "other_scores",
    "spread",
    "step",
    "symbols",
    "temperatures",
    "windows",
]
