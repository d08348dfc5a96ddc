"""The contents of the page of one step, computed before drawing. No Streamlit here."""

from dataclasses import dataclass

from attnviz.export import heading
from attnviz.select import Grid, map_title, select
from attnviz.trace import Token, Trace
from dashboard.choices import pairs
from dashboard.choices.options import OWN, facts, model
from dashboard.shell import side_by_side
from dashboard.shell.side_by_side import ModelColumn, SideBySide, Tracer, forced_text


@dataclass(frozen=True)
class InsideChoices:
    """target, forced, beam : the models' outputs, as on the first page. written : tokens that a model that writes
    adds. layer, head : of a model with several, from 0; head None is the mean of heads. tables : show the numbers of
    each chart below it?"""

    pair: str
    text: str
    mechanisms: tuple[str, ...]
    target: str = OWN
    forced: str = ""
    layer: int = 0
    head: int | None = 0
    tables: bool = False
    beam: int = 1
    written: int = 0


@dataclass(frozen=True, eq=False)
class Column(ModelColumn):
    """One model on the page.

    layer, head : of its cross-attention, or of the self-attention of a model that writes; a recurrent model has one of
    each. head None: the mean of all. target : the forced text for changes and tests; None for the model's own (greedy)
    text.
    """

    layer: int
    head: int | None
    target: str | None

    @property
    def text(self) -> str:
        return self.trace.text

    @property
    def writes(self) -> bool:
        """Does the model write on after the text? Then its text and its output are one, and attention is on it."""
        return self.mechanism.writes

    @property
    def kind(self) -> str:
        return "decoder" if self.writes else "cross"

    def keys(self, step: int | None = None) -> tuple[Token, ...]:
        """The tokens that attention is over; in a model that writes, those that the row of this step sees."""
        keys = self.trace.keys(self.trace.map(self.kind, self.layer))
        return keys if step is None or not self.writes else keys[: step + 1]

    @property
    def output(self) -> str:
        """The noun for what it produces."""
        return "text" if self.writes else "translation"

    @property
    def several(self) -> bool:
        """Has the model several layers and heads?"""
        return self.mechanism.multi_head

    @property
    def place(self) -> str:
        """The layer and head, counted from 1, where there are several."""
        return f", {map_title(self.layer, self.head)}" if self.several else ""

    def grid(self, trace: Trace) -> Grid:
        """The map of the chosen head or of the mean, of this trace or of one under a change."""
        return select(trace, self.kind, self.layer, self.head)


@dataclass(frozen=True, eq=False)
class InsideScene(SideBySide[Column]):
    """One text through several models."""

    choices: InsideChoices

    name = "the step"

    @property
    def heading(self) -> list[str]:
        models = "; ".join(f"{column.title} ({column.model}){column.place}" for column in self.columns)
        return [models, *heading.of_statistics({column.title: column.trace for column in self.columns})[1:]]

    @property
    def steps(self) -> int:
        """Steps of the longest text."""
        return max(len(column.trace.target) for column in self.columns)

    @property
    def differs(self) -> bool:
        """Do the outputs of the models differ, so that a step is not the same word in all?"""
        return len({column.trace.translation for column in self.columns}) > 1


def compose(choices: InsideChoices, tracer: Tracer) -> InsideScene:
    """Trace the text with every chosen mechanism. Raises SceneError when there is nothing to open."""
    side_by_side.check(choices)
    target = forced_text(choices, tracer)
    columns = side_by_side.columns_of(choices.mechanisms, lambda mechanism: _column(mechanism, choices, target, tracer))
    return InsideScene(choices, *columns)


def _column(mechanism: str, choices: InsideChoices, target: str | None, tracer: Tracer) -> Column:
    trace = tracer(model(choices.pair, mechanism), choices.text, target, choices.beam)
    layer, head = (choices.layer, choices.head) if facts(mechanism).multi_head else (0, 0)
    kind = "decoder" if pairs.task(choices.pair).writes else "cross"
    layer, head = side_by_side.fitting(trace, kind, layer, head)
    if choices.beam > 1:
        target = trace.translation  # what is changed and tested is this text, which greedy decoding may not find
    return Column(trace, layer, head, target)
