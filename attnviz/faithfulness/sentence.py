"""All tests of one sentence: measure -> (sum over target tokens, number of them), so that sentences can be sampled, and
one sentence can be placed among those of a study."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from attnviz.faithfulness.agreement import agreement
from attnviz.faithfulness.changes import preserved, variation
from attnviz.faithfulness.erasure import erasure, random_importance
from attnviz.faithfulness.gradients import gradient_times_input, integrated_gradients, leave_one_out
from attnviz.faithfulness.subject import Subject

Sums = dict[str, tuple[float, int]]
ORDERS = ("attention", "gradient", "random")
METHODS = {
    "gradient": "gradient × input",
    "integrated": "integrated gradients",
    "leave-one-out": "leave one out",
    "random": "random",
}
QUANTILES = tuple(round(share, 2) for share in np.linspace(0, 1, 21))  # of the sentences of a study


@dataclass(frozen=True, eq=False)
class Tested:
    """The frames of all tests of a sentence. attributions : method -> (T, S). erased : order -> frame of `erasure`."""

    preserved: pd.DataFrame
    variation: pd.DataFrame
    attributions: dict[str, np.ndarray]
    agreement: pd.DataFrame
    erased: dict[str, pd.DataFrame]

    @property
    def sums(self) -> Sums:
        """Preserved tokens by change and kind of word, total variation, agreement by method, erasure by order."""
        return dict([*_changes(self), *_agreement(self.agreement), *_erasure(self.erased)])


def tested(subject: Subject) -> Tested:
    """All tests, integrated gradients too: seconds for a long sentence."""
    gradient, chance = gradient_times_input(subject), random_importance(subject)
    others = {
        "gradient": gradient,
        "integrated": integrated_gradients(subject).values,
        "leave-one-out": leave_one_out(subject),
        "random": chance,
    }
    return Tested(
        preserved(subject),
        variation(subject),
        others,
        agreement(subject.attention, others, subject.trace.target),
        {name: erasure(subject, order) for name, order in orders(subject, gradient, chance).items()},
    )


def orders(subject: Subject, gradient: np.ndarray, chance: np.ndarray) -> dict[str, np.ndarray]:
    """The orders in which source tokens are erased: name -> importance (T, S)."""
    return {"attention": subject.attention, "gradient": np.abs(gradient), "random": chance}


def percentile(quantiles: Sequence[float], value: float) -> float | None:
    """How many per cent of a study's sentences have a smaller value, read between its QUANTILES; None without a study.

    Where many sentences have the same value (such as 0 or 1), the middle of their places.
    """
    if len(quantiles) != len(QUANTILES):
        return None
    low, high = (np.searchsorted(quantiles, value, side) for side in ("left", "right"))
    if high > low:  # on one quantile or several equal ones
        return float(100 * np.mean(QUANTILES[low:high]))
    return float(100 * np.interp(value, quantiles, QUANTILES))


def _changes(tested: Tested) -> Iterable:
    for (change, kind), rows in tested.preserved.groupby(["change", "kind"]):
        yield f"preserved {change.partition(':')[0]} {kind}", _sums(rows["preserved"])
    frame = tested.variation
    for column in ("max_weight", "median", "uniform"):
        yield f"variation {column}", _sums(frame[column])
    sharp = frame[frame["max_weight"] > 0.5]  # where attention is sure of itself
    yield "variation median sharp", _sums(sharp["median"])


def _agreement(frame: pd.DataFrame) -> Iterable:
    for method, rows in frame.groupby("method"):
        yield f"tau {method}", _sums(rows["tau_b"].dropna())
        yield f"top1 {method}", _sums(rows["top1"])


def _erasure(erased: dict[str, pd.DataFrame]) -> Iterable:
    for order, frame in erased.items():
        for column in ("comprehensiveness", "sufficiency"):
            yield f"{column} {order}", _sums(frame[column])


def _sums(values: pd.Series) -> tuple[float, int]:
    return float(values.sum()), len(values)
