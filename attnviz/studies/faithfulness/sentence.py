"""All tests of one sentence: measure -> (sum over target tokens, number of them), so that sentences can be sampled."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from attnviz import faithfulness
from attnviz.faithfulness import Subject

Sums = dict[str, tuple[float, int]]
ORDERS = ("attention", "gradient", "random")
METHODS = ("gradient", "integrated", "leave-one-out", "random")


def measured(subject: Subject) -> Sums:
    """Preserved tokens by change and kind of word, total variation, agreement by method, erasure by order."""
    gradient = faithfulness.gradient_times_input(subject)
    chance = faithfulness.random_importance(subject)
    others = {
        "gradient": gradient,
        "integrated": faithfulness.integrated_gradients(subject).values,
        "leave-one-out": faithfulness.leave_one_out(subject),
        "random": chance,
    }
    orders = {"attention": subject.attention, "gradient": np.abs(gradient), "random": chance}
    return dict([*_changes(subject), *_agreement(subject, others), *_erasure(subject, orders)])


def _changes(subject: Subject) -> Iterable:
    for (change, kind), rows in faithfulness.preserved(subject).groupby(["change", "kind"]):
        yield f"preserved {change.partition(':')[0]} {kind}", _sums(rows["preserved"])
    frame = faithfulness.variation(subject)
    for column in ("max_weight", "median", "uniform"):
        yield f"variation {column}", _sums(frame[column])
    sharp = frame[frame["max_weight"] > 0.5]  # where attention is sure of itself
    yield "variation median sharp", _sums(sharp["median"])


def _agreement(subject: Subject, others: dict[str, np.ndarray]) -> Iterable:
    frame = faithfulness.agreement(subject.attention, others, subject.trace.target)
    for method, rows in frame.groupby("method"):
        yield f"tau {method}", _sums(rows["tau_b"].dropna())
        yield f"top1 {method}", _sums(rows["top1"])


def _erasure(subject: Subject, orders: dict[str, np.ndarray]) -> Iterable:
    for order, importance in orders.items():
        frame = faithfulness.erasure(subject, importance)
        for column in ("comprehensiveness", "sufficiency"):
            yield f"{column} {order}", _sums(frame[column])


def _sums(values: pd.Series) -> tuple[float, int]:
    return float(values.sum()), len(values)
