"""Does attention matter to the output of a model? Tests of one text, each against a baseline.

>>> subject = faithfulness.subject(model, "The black dog runs.")
>>> faithfulness.preserved(subject)  # does the token stay the first choice when attention is changed?
>>> faithfulness.variation(subject)  # 100 permutations against the maximum weight
>>> gradients = faithfulness.integrated_gradients(subject)  # and gradient_times_input, leave_one_out
>>> faithfulness.agreement(subject.attention, {"integrated": gradients.values}, subject.trace.target)
>>> faithfulness.erasure(subject, subject.attention)  # comprehensiveness and sufficiency
"""

from attnviz.faithfulness.attributions import (
    Integrated,
    agreement,
    gradient_times_input,
    integrated_gradients,
    leave_one_out,
    spread_of_tau,
    tau_b,
)
from attnviz.faithfulness.effects import (
    CHANGES,
    SHARES,
    erasure,
    preserved,
    preserved_together,
    random_importance,
    variation,
    written,
)
from attnviz.faithfulness.subject import Subject, subject, subjects

__all__ = [
    "CHANGES",
    "SHARES",
    "Integrated",
    "Subject",
    "agreement",
    "erasure",
    "gradient_times_input",
    "integrated_gradients",
    "leave_one_out",
    "preserved",
    "preserved_together",
    "random_importance",
    "spread_of_tau",
    "subject",
    "subjects",
    "tau_b",
    "variation",
    "written",
]
