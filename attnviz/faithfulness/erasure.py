"""Comprehensiveness and sufficiency (DeYoung et al. 2020, sec. 4): source tokens erased in order of
importance.

    comprehensiveness   p(y_t | source) - p(y_t | source without the most important)   high: they were needed
    sufficiency         p(y_t | source) - p(y_t | only the most important)             low: they are enough

Erased tokens are deleted from the ids. Such a source is unlike the training data. <eos> and other special
tokens always stay. Letters: T target tokens, S source tokens.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from attnviz.arguments import checked
from attnviz.faithfulness.subject import Subject

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the source tokens; DeYoung et al. 2020


@checked
def erasure(subject: Subject, importance: np.ndarray, shares: Sequence[float] = SHARES) -> pd.DataFrame:
    """One row a target token and share: columns step, share, count, comprehensiveness, sufficiency (of probability, -1
    to 1).

    importance (T, S) : the largest is erased first; its sign counts. count : the number of tokens erased or kept: the
    share of those that may be erased, rounded, at least 1. ValueError for another shape, or a share that is not above 0
    and at most 1.
    """
    importance, size = np.asarray(importance), len(subject.source)
    if importance.shape != (len(subject.target), size):
        raise ValueError(f"importance must have shape {(len(subject.target), size)}; got {importance.shape}")
    if not all(0 < share <= 1 for share in shares):
        raise ValueError(f"shares must be above 0 and at most 1; got {tuple(shares)}")
    free = np.array([place for place, token in enumerate(subject.trace.source) if not token.special])
    cells, sources = [], []
    for step, row in enumerate(importance):
        order = free[np.argsort(-row[free], kind="stable")]
        for share in shares:
            count = max(1, round(share * len(free)))
            chosen = set(order[:count].tolist())
            cells.append((step, share, count))
            sources += [
                _kept(subject, lambda place: place not in chosen),
                _kept(subject, lambda place: place in chosen),
            ]
    steps = [step for step, _, _ in cells]
    whole = subject.log_probs([subject.source])[0].exp().numpy()
    erased = subject.log_probs(sources).exp().numpy().reshape(len(cells), 2, -1)
    each = np.arange(len(cells))
    frame = pd.DataFrame(cells, columns=["step", "share", "count"])
    return frame.assign(
        comprehensiveness=whole[steps] - erased[each, 0, steps], sufficiency=whole[steps] - erased[each, 1, steps]
    )


def _kept(subject: Subject, keep) -> list[int]:
    """The ids of the special tokens and of the tokens that are kept."""
    places = enumerate(zip(subject.source, subject.trace.source))
    return [number for place, (number, token) in places if token.special or keep(place)]


@checked
def random_importance(subject: Subject, seed: int = 0) -> np.ndarray:
    """(T, S) random numbers from a seed: the baseline for any importance."""
    return np.random.default_rng(seed).random((len(subject.target), len(subject.source)))
