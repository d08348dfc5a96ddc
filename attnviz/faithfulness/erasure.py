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
    """One row per target token and share: columns step, share, count, comprehensiveness, sufficiency (of probability,
    -1 to 1).

    importance (T, S) : the largest is erased first; its sign counts. count : the number of tokens erased or kept: the
    share of those that may be erased, rounded, at least 1. ValueError for another shape, or a share that is not above 0
    and at most 1.
    """
    return erasures(subject, {"": importance}, shares)[""]


@checked
def erasures(
    subject: Subject, importance: dict[str, np.ndarray], shares: Sequence[float] = SHARES
) -> dict[str, pd.DataFrame]:
    """`erasure` by several orders, each with its name: their sources go through the model together, each once."""
    if not len(shares) or not all(0 < share <= 1 for share in shares):
        raise ValueError(f"shares must be above 0 and at most 1; got {tuple(shares)}")
    places: dict[tuple[int, ...], int] = {}  # of each source among those that are read
    frames = {name: _erased(subject, np.asarray(values), shares, places) for name, values in importance.items()}
    read = pd.concat(frames.values())
    rows = read[["without", "alone"]].to_numpy()  # of each cell two places
    steps = np.repeat(read["step"].to_numpy(), 2)
    chances = subject.log_probs_at(list(places), rows.ravel().tolist(), steps.tolist()).exp().numpy().reshape(-1, 2)
    whole = subject.log_probs([subject.source])[0].exp().numpy()
    lost = iter(np.split(whole[read["step"]][:, None] - chances, len(frames)))
    names = ["comprehensiveness", "sufficiency"]
    return {
        name: frame.drop(columns=["without", "alone"]).assign(**dict(zip(names, next(lost).T)))
        for name, frame in frames.items()
    }


def _erased(subject: Subject, importance: np.ndarray, shares: Sequence[float], places: dict) -> pd.DataFrame:
    """One row per target token and share: columns step, share, count, and the places (new ones are added) of the source
    `without` the most important tokens, and of these `alone`."""
    wanted = len(subject.target), len(subject.source)
    if importance.shape != wanted:
        raise ValueError(f"importance must have shape {wanted}; got {importance.shape}")
    free = np.array([place for place, token in enumerate(subject.trace.source) if not token.special])
    rows = []
    for step, row in enumerate(importance):
        order = free[np.argsort(-row[free], kind="stable")].tolist()
        for share in shares:
            count = max(1, round(share * len(free)))
            pair = (_without(subject, order[:count]), _without(subject, order[count:]))
            rows.append((step, share, count, *(places.setdefault(source, len(places)) for source in pair)))
    return pd.DataFrame(rows, columns=["step", "share", "count", "without", "alone"])


def _without(subject: Subject, erased: Sequence[int]) -> tuple[int, ...]:
    """The ids of the source without the tokens at these places."""
    return tuple(number for place, number in enumerate(subject.source) if place not in set(erased))


@checked
def random_importance(subject: Subject, seed: int = 0) -> np.ndarray:
    """(T, S) random numbers from a seed, the source and the target: the baseline for any importance. Other texts and
    models that translate otherwise have other numbers, so that their errors are independent."""
    drawn = np.random.default_rng((seed, *subject.source, *subject.target))
    return drawn.random((len(subject.target), len(subject.source)))
