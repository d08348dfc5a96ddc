"""Attributions by the chosen method, beside attention: their numbers, and how far they agree token by token."""

import html
from dataclasses import dataclass

import numpy as np
import pandas as pd

from attnviz.faithfulness import agreement
from attnviz.faithfulness.gradients import POINTS
from attnviz.faithfulness.sentence import INTEGRATED, METHODS
from attnviz.figures import labels
from dashboard.inside import caches
from dashboard.inside.faithfulness import FaithfulnessTests
from dashboard.inside.scene import Column
from dashboard.shell.stoppable import Steps

GRADIENT, LEFT_OUT = "gradient", "leave-one-out"
OFFERED = (GRADIENT, LEFT_OUT, INTEGRATED)
TITLES = METHODS
AT_ONCE = 4  # target tokens whose integrated gradients are computed together


@dataclass(frozen=True, eq=False)
class Attributed:
    """method : of OFFERED. values (T, S). agreement : of `faithfulness.agreement`, the rows of this method. note : on
    how exact they are, HTML."""

    method: str
    values: np.ndarray
    agreement: pd.DataFrame
    note: str = ""

    @property
    def title(self) -> str:
        return TITLES[self.method]


def attributed(column: Column, tests: FaithfulnessTests, method: str, steps: Steps) -> Attributed:
    """Integrated gradients of all tokens take about a second; the others are there. steps : hears how far they are."""
    if method != INTEGRATED:
        frame = tests.tested.agreement
        return Attributed(method, tests.tested.attributions[method], frame[frame["method"] == method])
    gradients, target = caches.integrated(column, steps), tests.subject.trace.target
    frame = agreement(tests.subject.attention, {method: gradients.values}, target)
    worst = int(np.abs(gradients.delta).argmax())
    note = (
        f"Completeness error: at most {abs(gradients.delta[worst]):.2f} nats, at "
        f"{html.escape(labels.quoted(target[worst]))}. It is the difference between the sum of a row and the true "
        f"change of log-probability. Where it is large, the row is not exact: {POINTS} points on the path were too few."
    )
    return Attributed(method, gradients.values, frame, f'<p class="small">{note}</p>')
