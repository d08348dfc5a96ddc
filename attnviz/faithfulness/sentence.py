"""All tests of one sentence: measure -> (sum over target tokens, their number), so that sentences can be resampled, and
one sentence can be compared with those of a study."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from attnviz.arguments import brief
from attnviz.faithfulness.attributions import (
    Integrated,
    agreement,
    gradient_times_input,
    integrated_gradients,
    leave_one_out,
)
from attnviz.faithfulness.effects import erasures, preserved, preserved_together, random_importance, variation
from attnviz.faithfulness.subject import Subject, nothing
from attnviz.faithfulness.subject import subject as subject_of
from attnviz.trace import Trace

Sums = dict[str, tuple[float, int]]
ORDERS = ("attention", "gradient", "random")
CHANGED, INTEGRATED = "changed", "integrated"
ONE_INTEGRATED = "integrated, one token"  # a part of a study
METHODS = {
    "gradient": "gradient × input",
    INTEGRATED: "integrated gradients",
    "leave-one-out": "leave one out",
    "random": "random",
}
QUANTILES = tuple(round(share, 2) for share in np.linspace(0, 1, 21))  # of the sentences of a study


@dataclass(frozen=True, eq=False)
class Results:
    """The frames of all tests of a sentence. attributions : method -> (T, S). erased : order -> frame of `erasure`."""

    preserved: pd.DataFrame
    variation: pd.DataFrame
    attributions: dict[str, np.ndarray]
    agreement: pd.DataFrame
    erased: dict[str, pd.DataFrame]

    __repr__ = brief

    @property
    def sums(self) -> Sums:
        """Preserved tokens by change and kind of word, total variation, agreement by method, erasure by order."""
        parts = (_preserved(self.preserved), _variation(self.variation), _agreement(self.agreement))
        return {name: sums for part in (*parts, _erasure(self.erased)) for name, sums in part}


def results(subject: Subject) -> Results:
    """All tests, including integrated gradients; takes seconds for a long sentence."""
    attributions = attributed(subject) | {INTEGRATED: integrated_gradients(subject).values}
    return Results(
        preserved(subject),
        variation(subject),
        attributions,
        agreement(subject.attention, attributions, subject.trace.target),
        erasures(subject, orders(subject, attributions)),
    )


STAGES = 5


def stage(
    model: Any, text: str, target: str | Trace | None, before: Sequence, on_step: Callable[[], None] = nothing
) -> Any:
    """The next of the STAGES of the tests of a text. before : what the stages before have given: the subject, without
    its model, which may be far away; the frames of `Results`; attributions and their agreement. Errors as of
    `subject`."""
    if not before:
        return replace(subject_of(model, text, target), model=None)
    subject = replace(before[0], model=model, on_step=on_step)
    if len(before) < 3:
        return (preserved, variation)[len(before) - 1](subject)
    if len(before) == 3:
        attributions = attributed(subject)
        return attributions, agreement(subject.attention, attributions, subject.trace.target)
    return erasures(subject, orders(subject, before[3][0]))


def integrated(model: Any, subject: Subject, on_step: Callable[[], None] = nothing) -> Integrated:
    """Integrated gradients of all tokens of a subject without its model."""
    return integrated_gradients(replace(subject, model=model, on_step=on_step))


def attributed(subject: Subject) -> dict[str, np.ndarray]:
    """The attributions that take less than a second: method -> (T, S)."""
    return {
        "gradient": gradient_times_input(subject),
        "leave-one-out": leave_one_out(subject),
        "random": random_importance(subject),
    }


def orders(subject: Subject, attributions: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The orders in which source tokens are erased: name -> importance (T, S)."""
    importance = {"attention": subject.attention, "gradient": np.abs(attributions["gradient"])}
    return importance | {"random": attributions["random"]}


def _erased_sums(subjects: Sequence[Subject]) -> Iterator[Sums]:
    for subject in subjects:
        attributions = attributed(subject)
        frame = agreement(subject.attention, attributions, subject.trace.target)
        yield dict([*_agreement(frame), *_erasure(erasures(subject, orders(subject, attributions)))])


def _integrated_sums(subjects: Sequence[Subject]) -> Iterator[Sums]:
    """Integrated gradients of one target token per text, drawn with the source as seed. All tokens would take a second,
    and another text is more informative than another token of the same text."""
    for subject in subjects:
        step = int(np.random.default_rng(subject.source).integers(len(subject.target)))
        attributions = {INTEGRATED: integrated_gradients(subject, [step]).values}
        yield dict(
            _agreement(agreement(subject.attention[[step]], attributions, subject.trace.target[step : step + 1]))
        )


# The parts of a study, the quickest first: subjects of one model, with sources of one length -> the sums of each. The
# measures are those of `Results.sums`.
PARTS: dict[str, Callable[[Sequence[Subject]], Iterator[Sums]]] = {
    CHANGED: lambda subjects: (dict(_preserved(frame)) for frame in preserved_together(subjects)),
    "permuted": lambda subjects: (dict(_variation(variation(subject))) for subject in subjects),
    "erased": _erased_sums,
    ONE_INTEGRATED: _integrated_sums,
}


def percentile(quantiles: Sequence[float], value: float) -> float | None:
    """The percentage of a study's sentences with a smaller value, interpolated between its QUANTILES; None without a
    study.

    If many sentences have the same value (such as 0 or 1), the result is the middle of their percentiles.
    """
    if len(quantiles) != len(QUANTILES):
        return None
    low, high = (np.searchsorted(quantiles, value, side) for side in ("left", "right"))
    if high > low:  # on one quantile or several equal ones
        return float(100 * np.mean(QUANTILES[low:high]))
    return float(100 * np.interp(value, quantiles, QUANTILES))


def _preserved(frame: pd.DataFrame) -> Iterable:
    for change, rows in frame.groupby("change", sort=False):
        yield from _by_kind(f"preserved {change.partition(':')[0]}", rows["preserved"].to_numpy(), rows["kind"])
    kinds = rows["kind"]  # of the tokens, in each change the same
    together = frame["preserved"].to_numpy().reshape(-1, len(kinds))
    yield from _by_kind("preserved any", together.any(0), kinds)
    yield from _by_kind("preserved every", together.all(0), kinds)
    yield "variation uniform", _sums(frame[frame["change"] == "uniform"]["total_variation"])


def _by_kind(name: str, preserved: np.ndarray, kinds: pd.Series) -> Iterable:
    """Sums over all tokens, and over each kind of word."""
    yield f"{name} all", _sums(preserved)
    for kind in sorted(set(kinds)):
        yield f"{name} {kind}", _sums(preserved[(kinds == kind).to_numpy()])


def _variation(frame: pd.DataFrame) -> Iterable:
    for column in ("max_weight", "median"):
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


def _sums(values: pd.Series | np.ndarray) -> tuple[float, int]:
    return float(values.sum()), len(values)
