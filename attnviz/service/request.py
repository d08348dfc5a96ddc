"""What is asked of the model service, and what every service offers. No torch: the page's process does without."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

STARTING, RUNNING, RESTARTING = "starting", "running", "restarting"  # states of a service
MOST = 64  # requests that go through the models together
WAITING = 1000  # requests that may wait
GATHER = 0.003  # seconds that a request waits for others to share its batch
LIMIT = 60.0  # seconds that a batch may take


@dataclass(frozen=True)
class Request:
    """A text to trace, or to draw translations of.

    model : PAIR/MECHANISM. target : what is forced; None for the model's own. beam : 1 is greedy.
    root : the folder of checkpoints. stamp : changes when a file of the model does; the model is then read again.
    statistics : the answer is a `Measured` without weights, not a trace. sample_count : the answer is so many
    translations drawn at random, a tuple of strings.
    """

    model: str
    text: str
    target: str | None = None
    beam: int = 1
    root: str | None = None
    stamp: tuple = ()
    statistics: bool = False
    sample_count: int = 0


class ServiceError(ValueError):
    """The service could not answer, whatever the text; the message says why and what to do."""


class Busy(ServiceError):
    """The queue of requests is full."""


class Service(Protocol):
    """Traces and samples of texts, by trained models.

    state : STARTING, RUNNING, or RESTARTING after its process has died.
    """

    @property
    def state(self) -> str: ...

    def submit(self, requests: Sequence[Request]) -> list[Future]:
        """Ask for traces, statistics or samples; returns at once. Those asked for together reach the models together.

        A future raises ValueError, with the message of the model, for a text or a checkpoint that cannot be read, and
        ServiceError when the service failed. One that is cancelled before its batch begins is never computed.
        Raises Busy when too many wait.
        """

    def close(self) -> None:
        """Stop it. What has not been answered raises ServiceError."""
