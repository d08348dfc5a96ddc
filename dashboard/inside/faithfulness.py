"""The tests of attention of one text, together: what the panel “Does it matter?” shows. No Streamlit here."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from attnviz import faithfulness
from attnviz.faithfulness import Subject

GRADIENT, LEFT_OUT, RANDOM = "gradient × input", "leave one out", "random"


@dataclass(frozen=True, eq=False)
class FaithfulnessTests:
    """attributions : method -> (T, S). erased : order of source tokens -> a frame of `faithfulness.erasure`."""

    subject: Subject
    preserved: pd.DataFrame
    variation: pd.DataFrame
    attributions: dict[str, np.ndarray]
    agreement: pd.DataFrame
    erased: dict[str, pd.DataFrame]


def run(model, text: str) -> FaithfulnessTests:
    """All tests that take less than a second each. Raises ValueError."""
    torch.set_num_threads(1)  # of this thread: small models are slower with more
    subject = faithfulness.subject(model, text)
    chance = faithfulness.random_importance(subject)
    attributions = {
        GRADIENT: faithfulness.gradient_times_input(subject),
        LEFT_OUT: faithfulness.leave_one_out(subject),
        RANDOM: chance,
    }
    orders = {"attention": subject.attention, GRADIENT: np.abs(attributions[GRADIENT]), RANDOM: chance}
    return FaithfulnessTests(
        subject,
        faithfulness.preserved(subject),
        faithfulness.variation(subject),
        attributions,
        faithfulness.agreement(subject.attention, attributions, subject.trace.target),
        {name: faithfulness.erasure(subject, order) for name, order in orders.items()},
    )
