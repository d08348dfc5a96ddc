"""What the page of one step shows, worked out before anything is drawn. No Streamlit here."""

from collections.abc import Callable
from dataclasses import dataclass

from attnviz.data.tasks import Task
from attnviz.mechanisms import MECHANISMS, Mechanism
from attnviz.models.names import ModelName
from attnviz.select import Grid, select
from attnviz.trace import Trace
from dashboard.choices.options import title
from dashboard.shell.problems import SceneError, check_text, sentence

Tracer = Callable[[str, str, str | None, int], Trace]  # model, text, target, beam


@dataclass(frozen=True)
class InsideChoices:
    """model : PAIR/MECHANISM. layer, head : of a Transformer's cross-attention, from 0. tables : the numbers of each
    chart below it."""

    text: str
    model: str
    layer: int = 0
    head: int = 0
    tables: bool = False


@dataclass(frozen=True, eq=False)
class InsideScene:
    """One text through one model."""

    choices: InsideChoices
    trace: Trace

    warnings = ()

    @property
    def name(self) -> str:
        return title(ModelName.parse(self.choices.model).mechanism)

    @property
    def text(self) -> str:
        return self.choices.text

    @property
    def mechanism(self) -> Mechanism:
        return MECHANISMS[self.trace.mechanism]

    @property
    def several(self) -> bool:
        """Has the model several layers and heads?"""
        return len(self.mechanism.kinds) > 1

    @property
    def languages(self) -> Task:
        return ModelName.parse(self.choices.model).task

    @property
    def place(self) -> str:
        """The layer and head, counted from 1, where there are several."""
        return f", layer {self.choices.layer + 1}, head {self.choices.head + 1}" if self.several else ""

    def grid(self, trace: Trace) -> Grid:
        """The map of the chosen head, of this trace or of one under a change."""
        return select(trace, "cross", self.choices.layer, self.choices.head)


def compose(choices: InsideChoices, tracer: Tracer) -> InsideScene:
    """Trace the text. Raises SceneError when there is nothing to open."""
    check_text(choices.text)
    try:
        return InsideScene(choices, tracer(choices.model, choices.text, None, 1))
    except ValueError as error:  # what attnviz raises for a text or a checkpoint that cannot be shown
        raise SceneError(sentence(str(error))) from None
