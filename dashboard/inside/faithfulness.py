"""The tests of attention of one text, stage by stage, so that the page can say how far it is and stop. No Streamlit
here."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from attnviz import faithfulness
from attnviz.faithfulness import Subject
from attnviz.faithfulness.sentence import Tested, attributed, orders

STAGES = 4


@dataclass(frozen=True, eq=False)
class FaithfulnessTests:
    """`tested` without integrated gradients of all tokens, which take seconds: the page has them for one step."""

    subject: Subject
    tested: Tested


class RunningTests:
    """Tests under way: `advance` does one stage more. All sessions that ask for the same text share one.

    done : stages, of STAGES. tests : None until all are done. problem : why the text cannot be tested, or "".
    """

    def __init__(self, model, text: str, target: str | None):
        self.done, self.tests, self.problem = 0, None, ""
        self._stages, self._lock = self._run(model, text, target), threading.Lock()

    @property
    def finished(self) -> bool:
        return self.tests is not None or bool(self.problem)

    def advance(self) -> None:
        """One stage more."""
        with self._lock:
            if self.finished:
                return
            torch.set_num_threads(1)  # of this thread: small models are slower with more
            try:
                self.done = next(self._stages)
            except ValueError as error:  # an empty translation
                self.problem = str(error)

    def _run(self, model, text: str, target: str | None) -> Iterator[int]:
        subject = faithfulness.subject(model, text, target)
        preserved = faithfulness.preserved(subject)
        yield 1
        variation = faithfulness.variation(subject)
        yield 2
        attributions = attributed(subject)
        yield 3
        agreement = faithfulness.agreement(subject.attention, attributions, subject.trace.target)
        erased = faithfulness.erasures(subject, orders(subject, attributions))
        self.tests = FaithfulnessTests(subject, Tested(preserved, variation, attributions, agreement, erased))
        yield STAGES
