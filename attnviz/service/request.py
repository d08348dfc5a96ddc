"""The requests and the interface of the model service. No torch here, because the page's process does not import it."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

STARTING, RUNNING, RESTARTING, SILENT, APART = "starting", "running", "restarting", "silent", "apart"  # see Service
OF_GUEST = "of a guest"  # a model of the transformers library has not answered for `Limits.quiet`
GUEST_S, GUEST_READING_S, GUEST_IDLE_S = 180.0, 300.0, 600.0  # `Limits` of such models
MOST = 64  # requests that go through the models together
GATHER = 0.003  # seconds that a request waits for others to share its batch


@dataclass
class Limits:
    """The limits after which a service gives up: seconds, and the number of waiting requests."""

    request: float = 60.0  # that a request may compute, and a batch; without the reading of models
    quiet: float = 5.0  # that the models may be silent before whoever waits is told so
    silence: float = 15.0  # that a batch may go without an answer before another process takes it up
    reading: float = 120.0  # that the files of a model may take
    start: float = 60.0  # that the process of the models may take until it is ready
    start_silence: float = 15.0  # that it may give no sign meanwhile
    idle: float = 30.0  # after which a second process ends
    rest: float = math.inf  # after which the first ends too, until it is wanted again
    waiting: int = 1000


@dataclass(frozen=True, eq=False)
class Work:
    """What is done with a model: a function of the library, as "ablation:effect", whose first argument the model is;
    or a method of the model, as ":write". language : the one that the model produces, if its config does not say it.
    steps : the name of the argument that takes a function, which is called at each step; "" for none."""

    function: str
    arguments: tuple = ()
    options: tuple[tuple[str, Any], ...] = ()
    language: str = ""
    steps: str = ""

    def done(self, model: Any, on_step: Callable[[], None]) -> Any:
        """What it gives. Raises what the function raises, and what `on_step` raises."""
        if self.language and not model.language:
            model = model.producing(self.language)
        module, _, name = self.function.partition(":")
        given = (model, *self.arguments) if module else self.arguments
        function = getattr(importlib.import_module(f"attnviz.{module}") if module else model, name)
        return function(*given, **dict(self.options), **({self.steps: on_step} if self.steps else {}))


@dataclass(frozen=True)
class Request:
    """A text to trace, or to draw translations of.

    model : PAIR/MECHANISM. target : the forced output; None for the model's own. beam : 1 is greedy.
    root : the folder of checkpoints. stamp : changes with the files of the model, which is then read again.
    statistics : the answer is a `TraceStatistics` without weights, not a trace. sample_count : the answer is this
    number of random translations, a tuple of strings. hypotheses : the answer is the beam's final hypotheses, a tuple
    of `attnviz.trace.Hypothesis`. described : the answer is a `Guest`, without a text. work : the answer is its
    result. For a model of the transformers library `root` is its folder or its name on the hub.
    """

    model: str
    text: str
    target: str | None = None
    beam: int = 1
    root: str | None = None
    stamp: tuple = ()
    statistics: bool = False
    sample_count: int = 0
    hypotheses: bool = False
    described: bool = False
    work: Work | None = field(default=None, hash=False)

    @property
    def model_key(self) -> tuple:
        """The key of its model; the same files have the same key."""
        return self.model, self.root, self.stamp


class Guest(NamedTuple):
    """What the page asks of a model of the transformers library before it reads a text.

    kinds : of its attention. cross : layers, and most heads of one, of its cross-attention, or of the attention of a
    causal model. codes : of its languages.
    limit : tokens of the longest text of a trace. context : of the longest text that is read. heads : of all layers,
    of its first kind. why_no_ablation, why_no_importance : "" if it can be done.
    """

    kinds: tuple[str, ...]
    cross: tuple[int, int]
    codes: tuple[str, ...]
    reads_pairs: bool
    limit: int
    context: int
    heads: int
    writes_on: bool
    why_no_ablation: str
    why_no_importance: str


class ServiceError(ValueError):
    """The service failed, independent of the text; the message says why and what to do."""


class Busy(ServiceError):
    """The queue of requests is full."""


class Stopped(Exception):
    """Work has ended because nobody wants it any more."""


class Service(Protocol):
    """Traces and samples of texts, by trained models.

    state : STARTING while models are read, RUNNING, RESTARTING after its process has died, or SILENT if the process has
    not answered for `Limits.quiet`.
    """

    @property
    def state(self) -> str: ...

    def submit(self, requests: Sequence[Request]) -> list[Future]:
        """Request traces, statistics or samples; returns at once. Requests of one call reach the models together.

        A future raises ValueError, with the model's message, for a text or checkpoint that cannot be read, and
        ServiceError if the service failed. A request that is cancelled before its batch begins is never computed.
        Raises Busy when too many wait.
        """

    def state_of(self, futures: Collection[Future]) -> str:
        """What requests wait for: a state, or APART if they take so long that they were moved to a process of their
        own."""

    def stop(self, future: Future) -> None:
        """Nobody wants this any more. What is not begun is not computed; the work of a model of the transformers
        library ends at its next step."""

    def close(self) -> None:
        """Stop the service. Unanswered requests raise ServiceError."""
