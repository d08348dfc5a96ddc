"""The tests of attention of one text, stage by stage, so that the page can say how far it is and stop. No Streamlit
here."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from attnviz import faithfulness
from attnviz.faithfulness import Subject
from attnviz.faithfulness.sentence import Tested, attributed, orders

STAGES = 5


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
        self.tests: FaithfulnessTests | None = None
        self.problem = ""
        self._asked = model, text, target
        self._results: list = []  # of the stages that are done
        self._lock = threading.Lock()

    @property
    def done(self) -> int:
        return len(self._results)

    @property
    def finished(self) -> bool:
        return self.tests is not None or bool(self.problem)

    def advance(self, on_step: Callable[[], None] = lambda: None) -> None:
        """One stage more. on_step : called again and again; what it raises ends the stage, which then begins anew."""
        with self._lock:
            if self.finished:
                return
            torch.set_num_threads(1)  # of this thread: small models are slower with more
            try:
                self._results.append(self._stage(on_step))
            except ValueError as error:  # an empty translation
                self.problem = str(error)
                return
            if self.done == STAGES:
                subject, preserved, variation, (attributions, agreement), erased = self._results
                tested = Tested(preserved, variation, attributions, agreement, erased)
                self.tests = FaithfulnessTests(subject, tested)

    def _stage(self, on_step: Callable[[], None]):
        """The result of the next stage."""
        if not self._results:
            return faithfulness.subject(*self._asked)
        subject = replace(self._results[0], on_step=on_step)
        stages = (
            lambda: faithfulness.preserved(subject),
            lambda: faithfulness.variation(subject),
            lambda: _attributed(subject),
            lambda: faithfulness.erasures(subject, orders(subject, self._results[3][0])),
        )
        return stages[self.done - 1]()


def _attributed(subject: Subject):
    attributions = attributed(subject)
    return attributions, faithfulness.agreement(subject.attention, attributions, subject.trace.target)
