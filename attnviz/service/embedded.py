"""The model service in a process of its own on this machine, started again when it dies.

One thread here gathers requests and sends them on in batches; the process answers one batch at a time. What it had not
answered when it died is asked once more, one request at a time, so that a request that kills it takes no other along.
"""

import atexit
import contextlib
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from attnviz.service import frames, launch
from attnviz.service.request import (
    GATHER,
    LIMIT,
    MOST,
    RESTARTING,
    RUNNING,
    STARTING,
    WAITING,
    Busy,
    Request,
    ServiceError,
)

TRIES = 2  # of a request whose process dies
STARTS = 3  # of a process that dies before it is ready
CLOSED = "the model service has been stopped; start the server again"


@dataclass(eq=False)
class _Asked:
    request: Request
    future: Future = field(default_factory=Future)
    tries: int = 0


class Embedded:
    """A `Service`. gather : seconds that a request waits for company. limit : seconds that a batch may take."""

    def __init__(self, gather: float = GATHER, most: int = MOST, limit: float = LIMIT, waiting: int = WAITING):
        self.gather, self.most, self.limit, self.longest = gather, most, limit, waiting
        self.state = STARTING
        self._waiting: deque[_Asked] = deque()
        self._change = threading.Condition()
        self._process: subprocess.Popen | None = None
        self._late = self._closed = False
        self._thread = threading.Thread(target=self._serve, name="model service", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def pid(self) -> int | None:
        """Of the model process; None while there is none."""
        return self._process.pid if self._process else None

    def submit(self, requests: Sequence[Request]) -> list[Future]:
        """See `Service`."""
        asked = [_Asked(request) for request in requests]
        with self._change:
            if self._closed:
                raise ServiceError(CLOSED)
            if len(self._waiting) + len(asked) > self.longest:
                raise Busy(f"{len(self._waiting)} sentences are waiting for the models already; try again in a minute")
            self._waiting += asked
            self._change.notify()
        return [each.future for each in asked]

    def close(self) -> None:
        """See `Service`."""
        with self._change:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
            self._change.notify()
        for asked in left:
            _fail(asked, CLOSED)
        if process := self._process:
            process.kill()
        self._thread.join(5)
        atexit.unregister(self.close)

    def _serve(self) -> None:
        """What the thread does until the service is closed."""
        while not self._closed:
            if not self._process and not self._start():
                continue
            if batch := self._take():
                self._compute(batch)
        if self._process:
            self._end()

    def _start(self) -> bool:
        """Start the process and wait until it is ready. When it never is, what waits is told so."""
        for _ in range(STARTS):
            if self._closed:
                return False
            self._process = launch.process()
            try:
                frames.read(self._process.stdout)
            except EOFError:
                self._end()
            else:
                self.state = RUNNING
                return True
        problem = "the model process does not start; whoever runs the server can see why in its output"
        for asked in self._take():
            _fail(asked, problem)
        return False

    def _take(self) -> list[_Asked]:
        """The next batch, as soon as there is one; [] when the service is closed."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._closed)
        time.sleep(self.gather)
        with self._change:
            batch: list[_Asked] = []
            while self._waiting and len(batch) < self.most:
                again = self._waiting[0].tries > 0
                if again and batch:
                    break
                asked = self._waiting.popleft()
                if again or asked.future.set_running_or_notify_cancel():
                    batch.append(asked)
                if again:
                    break
            return batch

    def _compute(self, batch: list[_Asked]) -> None:
        unanswered, self._late = dict(enumerate(batch)), False
        timer = threading.Timer(self.limit, self._stop_late, [self._process])
        timer.daemon = True
        timer.start()
        try:
            frames.write(self._process.stdin, [asked.request for asked in batch])
            while unanswered:
                place, answer = frames.read(self._process.stdout)
                _answer(unanswered.pop(place), answer)
        except (EOFError, OSError):
            self._died(list(unanswered.values()))
        finally:
            timer.cancel()

    def _stop_late(self, process: subprocess.Popen) -> None:
        self._late = True
        process.kill()

    def _died(self, left: list[_Asked]) -> None:
        """Put unanswered requests back at the head of the queue, to be sent one at a time. Fail those that have used up
        their tries."""
        self._end()
        self.state = RESTARTING
        reason = (
            f"the models needed more than {self.limit:g} s for this sentence; shorten it"
            if self._late
            else "the model process stopped twice at this sentence; change it"
        )
        again = []
        for asked in left:
            asked.tries += 1
            if self._closed:
                _fail(asked, CLOSED)
            elif asked.tries >= TRIES or (self._late and len(left) == 1):
                _fail(asked, reason)
            else:
                again.append(asked)
        with self._change:
            self._waiting.extendleft(reversed(again))

    def _end(self) -> None:
        process, self._process = self._process, None
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was still to be written
                pipe.close()


def _answer(asked: _Asked, answer: object) -> None:
    if isinstance(answer, str):
        asked.future.set_exception(ValueError(answer))
    else:
        asked.future.set_result(frames.frozen(answer))


def _fail(asked: _Asked, problem: str) -> None:
    if asked.future.running() or asked.future.set_running_or_notify_cancel():
        asked.future.set_exception(ServiceError(problem))
