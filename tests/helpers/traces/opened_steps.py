"""One opened step of attention, made by hand."""

import numpy as np
from synthetic import tokens

from attnviz.inside import Parts, Step
from attnviz.trace import Token


def step(window=None):
    keys = tokens("The <b>dog</b>")
    count = len(keys)
    terms = np.arange(count * 4, dtype=float).reshape(count, 4) / 10 - 0.5
    mask = np.ones(count, dtype=bool)
    scores = terms.sum(-1)
    if window:
        mask[0], scores = False, scores + np.log(window.gaussian)
    weights = np.where(mask, np.exp(scores), 0)
    weights /= weights.sum()
    values = np.ones((count, 2))
    return Step(
        model="en-fr/bahdanau",
        mechanism="bahdanau",
        step=1,
        layer=0,
        head=0,
        token=Token("<i>", 0, 3, word=0),
        keys=keys,
        query=np.ones(4),
        asks="before",
        states=(),
        scores=scores,
        mask=mask,
        weights=weights,
        values=values,
        context=weights @ values,
        parts=Parts(terms, "hidden unit"),
        alternatives=(),
        window=window,
    )
