"""Trained models side by side on one text: what the scenes of two pages have in common. No Streamlit here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from attnviz.data.tasks import Task
from attnviz.mechanisms import MECHANISMS, Mechanism
from attnviz.models.names import ModelName
from attnviz.trace import Trace
from dashboard.choices import pairs
from dashboard.choices.options import title
from dashboard.session.space import Held, sizes
from dashboard.shell.problems import SceneError, check_text, sentence


@dataclass(frozen=True, eq=False)
class ModelColumn:
    """A trained model on the page. trace : as computed."""

    trace: Trace

    @property
    def held(self) -> list[Held]:
        """What of it takes memory."""
        return sizes([self.trace])

    @property
    def model(self) -> str:
        return self.trace.model

    @property
    def title(self) -> str:
        return title(ModelName.parse(self.model).mechanism)

    @property
    def mechanism(self) -> Mechanism:
        return MECHANISMS[ModelName.parse(self.model).mechanism]

    @property
    def languages(self) -> Task:
        """What its pair reads and writes."""
        return ModelName.parse(self.model).task


class Chosen(Protocol):
    """What a person chose. mechanisms : in the order of the columns."""

    pair: str
    text: str
    mechanisms: tuple[str, ...]


Column = TypeVar("Column", bound=ModelColumn)


@dataclass(frozen=True, eq=False)
class SideBySide(Generic[Column]):
    """A column for each mechanism that can be shown. problems : mechanism -> why it is not shown."""

    choices: Chosen
    columns: tuple[Column, ...]
    problems: dict[str, str]

    @property
    def text(self) -> str:
        return self.choices.text

    @property
    def held(self) -> list[Held]:
        return [held for column in self.columns for held in column.held]

    @property
    def warnings(self) -> list[str]:
        return [f"{title(mechanism)} is not shown. {problem}" for mechanism, problem in self.problems.items()]


def check(choices: Chosen) -> None:
    """Raises Waiting or SceneError when there is nothing that could be traced."""
    check_text(choices.text, bool(pairs.of(choices.pair).examples))
    if not choices.mechanisms:
        raise SceneError("Choose at least one mechanism on the left.")


def columns_of(mechanisms: Sequence[str], column: Callable[[str], Column]) -> tuple[tuple[Column, ...], dict[str, str]]:
    """The columns, and the problems of `SideBySide`. column : of a mechanism; ValueError where there is none to show.

    Raises SceneError when there is no column at all.
    """
    columns, problems = [], {}
    for mechanism in mechanisms:
        try:
            columns.append(column(mechanism))
        except ValueError as error:  # what attnviz raises for a text, a checkpoint or a choice that cannot be shown
            problems[mechanism] = sentence(str(error))
    if not columns:
        raise SceneError(" ".join(dict.fromkeys(problems.values())))
    return tuple(columns), problems
