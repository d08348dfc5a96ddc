"""Trained models side by side on one text, or forced to produce one text: the shared code of two pages' scenes. No
Streamlit here."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from attnviz.data.tasks import Task
from attnviz.mechanisms import Mechanism
from attnviz.models.names import ModelName, is_hugging_face
from attnviz.trace import Trace
from dashboard.choices import pairs
from dashboard.choices.options import FROM, LIMIT, OWN, TYPED, facts, limit, mechanism_of, model, title
from dashboard.session.memory import Held, sizes
from dashboard.shell.problems import SceneError, Waiting, Wanted, check_text, sentence

Tracer = Callable[[str, str, str | None, int], Trace]  # model, text, target, beam
Ask = Callable[[Sequence[str], str, str | None, int], Wanted]  # models, text, target, beam


@dataclass(frozen=True, eq=False)
class ModelColumn:
    """A model on the page. trace : as computed."""

    trace: Trace

    @property
    def held(self) -> list[Held]:
        """The parts that take memory."""
        return sizes([self.trace])

    @property
    def model(self) -> str:
        return self.trace.model

    @functools.cached_property
    def title(self) -> str:
        return title(mechanism_of(self.model))

    @functools.cached_property
    def mechanism(self) -> Mechanism:
        return facts(mechanism_of(self.model), all(attention.kind == "decoder" for attention in self.trace.maps))

    @functools.cached_property
    def languages(self) -> Task:
        """The languages of its pair; unknown for a Hugging Face model."""
        return pairs.ANY if is_hugging_face(self.model) else ModelName.parse(self.model).task


def fitting(trace: Trace, kind: str, layer: int, head: int | None) -> tuple[int, int | None]:
    """The chosen layer and head, adapted to a model: its last layer if it has fewer, the mean of heads if it lacks the
    head."""
    maps = [attention for attention in trace.maps if attention.kind == kind]
    if not maps or layer < 0:
        return layer, head
    own = min(maps, key=lambda attention: (abs(attention.layer - layer), -attention.layer))
    return own.layer, head if head is None or head < len(own.weights) else None


class Chosen(Protocol):
    """The visitor's choices. mechanisms : in the order of the columns."""

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
    """Raises Waiting or SceneError if nothing can be traced."""
    task = pairs.task(choices.pair)
    check_text(choices.text, bool(task.examples), limit(task))
    if not choices.mechanisms:
        raise Waiting("Choose at least one mechanism on the left.")


def columns_of(mechanisms: Sequence[str], column: Callable[[str], Column]) -> tuple[tuple[Column, ...], dict[str, str]]:
    """The columns, and the problems of `SideBySide`. column : mechanism -> column; it raises ValueError if there is
    none to show.

    Raises SceneError if there is no column at all.
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


class ForcedTextChoices(Protocol):
    """A page's choices of the forced text. target : OWN, TYPED, or FROM and a mechanism. forced : the typed text."""

    pair: str
    text: str
    target: str
    forced: str
    beam: int


def forced_text(choices: ForcedTextChoices, tracer: Tracer) -> str | None:
    """The forced output of all models; None if each model writes its own.

    Raises SceneError if there is no text to use.
    """
    if choices.target == OWN:
        return None
    if choices.target == TYPED:
        output = pairs.task(choices.pair).output
        if not choices.forced.strip():
            raise Waiting(f"On the left, type the {output} for all models, or choose another {output} there.")
        if len(choices.forced) > LIMIT:
            raise SceneError(f"The {output} has {len(choices.forced):,} characters; the limit is {LIMIT}. Shorten it.")
        return choices.forced
    giver = choices.target.removeprefix(FROM)
    try:
        return tracer(model(choices.pair, giver), choices.text, None, choices.beam).translation
    except ValueError as error:
        raise SceneError(f"The text of {title(giver)} cannot be used for all models: {error}") from None


def wanted_traces(choices: ForcedTextChoices, models: Sequence[str], ask: Ask, tracer: Tracer) -> Iterator[Wanted]:
    """Request the traces of these models, all at once; first that of the one model whose text is forced on all, if any.

    Does nothing for choices that cannot be drawn; composing the scene gives the reason.
    """
    try:
        check_text(choices.text)
        if choices.target.startswith(FROM):
            yield ask([model(choices.pair, choices.target.removeprefix(FROM))], choices.text, None, choices.beam)
        target = forced_text(choices, tracer)
    except SceneError:
        return
    if models:
        yield ask(models, choices.text, target, choices.beam)
