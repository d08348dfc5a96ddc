"""What the page of one step shows, worked out before anything is drawn. No Streamlit here."""

from dataclasses import dataclass

from attnviz.data.tasks import Task
from attnviz.export import heading
from attnviz.mechanisms import MECHANISMS, Mechanism
from attnviz.models.names import ModelName
from attnviz.select import Grid, select
from attnviz.trace import Trace
from dashboard.choices.options import OWN, model, title
from dashboard.shell.forced_text import Tracer, forced_text
from dashboard.shell.problems import SceneError, check_text, sentence


@dataclass(frozen=True)
class InsideChoices:
    """target, forced : what the models write, as on the first page. layer, head : of a Transformer's cross-attention,
    from 0. tables : the numbers of each chart below it."""

    pair: str
    text: str
    mechanisms: tuple[str, ...]
    target: str = OWN
    forced: str = ""
    layer: int = 0
    head: int = 0
    tables: bool = False
    beam = 1  # translations are greedy here


@dataclass(frozen=True, eq=False)
class Column:
    """One model on the page. layer, head : of its cross-attention; a recurrent model has one of each. target : the text
    that it was made to write, or None."""

    model: str
    trace: Trace
    layer: int
    head: int
    target: str | None

    @property
    def text(self) -> str:
        return self.trace.text

    @property
    def title(self) -> str:
        return title(ModelName.parse(self.model).mechanism)

    @property
    def mechanism(self) -> Mechanism:
        return MECHANISMS[self.trace.mechanism]

    @property
    def several(self) -> bool:
        """Has the model several layers and heads?"""
        return self.mechanism.multi_head

    @property
    def languages(self) -> Task:
        return ModelName.parse(self.model).task

    @property
    def place(self) -> str:
        """The layer and head, counted from 1, where there are several."""
        return f", layer {self.layer + 1}, head {self.head + 1}" if self.several else ""

    def grid(self, trace: Trace) -> Grid:
        """The map of the chosen head, of this trace or of one under a change."""
        return select(trace, "cross", self.layer, self.head)


@dataclass(frozen=True, eq=False)
class InsideScene:
    """One text through several models. problems : mechanism -> why it is not shown."""

    choices: InsideChoices
    columns: tuple[Column, ...]
    problems: dict[str, str]

    name = "the step"

    @property
    def text(self) -> str:
        return self.choices.text

    @property
    def heading(self) -> list[str]:
        models = "; ".join(f"{column.title} ({column.trace.model}){column.place}" for column in self.columns)
        return [models, *heading.of_statistics({column.title: column.trace for column in self.columns})[1:]]

    @property
    def warnings(self) -> list[str]:
        return [f"{title(mechanism)} is not shown. {problem}" for mechanism, problem in self.problems.items()]

    @property
    def steps(self) -> int:
        """Steps of the longest text."""
        return max(len(column.trace.target) for column in self.columns)

    @property
    def differs(self) -> bool:
        """Do the models write different texts, so that a step is not the same word in all?"""
        return len({column.trace.translation for column in self.columns}) > 1


def compose(choices: InsideChoices, tracer: Tracer) -> InsideScene:
    """Trace the text with every chosen mechanism. Raises SceneError when there is nothing to open."""
    check_text(choices.text)
    if not choices.mechanisms:
        raise SceneError("Choose at least one mechanism on the left.")
    target, columns, problems = forced_text(choices, tracer), [], {}
    for mechanism in choices.mechanisms:
        try:
            columns.append(_column(mechanism, choices, target, tracer))
        except ValueError as error:  # what attnviz raises for a text or a checkpoint that cannot be shown
            problems[mechanism] = sentence(str(error))
    if not columns:
        raise SceneError(" ".join(dict.fromkeys(problems.values())))
    return InsideScene(choices, tuple(columns), problems)


def _column(mechanism: str, choices: InsideChoices, target: str | None, tracer: Tracer) -> Column:
    name = model(choices.pair, mechanism)
    several = MECHANISMS[mechanism].multi_head
    layer, head = (choices.layer, choices.head) if several else (0, 0)
    return Column(name, tracer(name, choices.text, target, choices.beam), layer, head, target)
