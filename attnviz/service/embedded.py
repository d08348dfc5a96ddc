"""The model service in separate processes on this machine, restarted when they die.

A lane is a process and the thread that gives it requests, one batch at a time. All requests go to the first lane. If
its process dies, unanswered requests are sent once more, one at a time, so that a request that kills it affects no
other. If its process is silent for too long, unanswered requests move to a second lane, one at a time, and the first
lane continues with a new process, so that a slow request delays no other. The second lane has a process only while it
is needed. Models of the transformers library, which may be large, have a lane of their own (`Guests`).
"""

import atexit
import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from attnviz.models.names import is_hugging_face
from attnviz.service import connection
from attnviz.service.request import (
    APART,
    GATHER,
    GUEST_IDLE_S,
    GUEST_READING_S,
    GUEST_S,
    MOST,
    OF_GUEST,
    RESTARTING,
    RUNNING,
    SILENT,
    STARTING,
    Busy,
    Limits,
    Request,
    ServiceError,
)

TRIES = 2  # of a request whose process dies
STARTS = 3  # of a process that dies, or is silent, before it is ready
CLOSED = "the model service has been stopped; start the server again"
NO_START = "the model process does not start; whoever runs the server can see why in its output"


class Counted(Future):
    """steps : of its work that are done."""

    steps = 0


@dataclass(eq=False)
class _Job:
    """deaths : number of processes that died while computing it. is_slow : may it take the full time of a request?"""

    request: Request
    future: Counted = field(default_factory=Counted)
    deaths: int = 0
    is_slow: bool = False

    def fail(self, problem: str) -> None:
        if self.begins():
            self.future.set_exception(ServiceError(problem))

    def begins(self) -> bool:
        """Mark it as begun, so that it can no longer be cancelled -> False if it was cancelled before."""
        return self.future.running() or self.future.set_running_or_notify_cancel()

    def answer(self, answer: object) -> None:
        if isinstance(answer, str):
            self.future.set_exception(ValueError(answer))
        else:
            self.future.set_result(connection.frozen(answer))


class Embedded:
    """A `Service`. gather : seconds that a request waits for others to join its batch. most : requests of a batch."""

    def __init__(self, gather: float = GATHER, most: int = MOST, limits: Limits | None = None):
        self.limits = limits or Limits()
        self._slow_models: set[tuple] = set()
        self._apart = _Lane(self.limits, 0, 1, self._slow_models)
        self._first = _Lane(self.limits, gather, most, self._slow_models, self._apart)
        self._guests = Guests(self.limits)
        self._lanes = self._first, self._apart, self._guests
        self._closed = False
        self._lock = threading.Lock()
        atexit.register(self.close)

    @property
    def state(self) -> str:
        """Of the first lane; see `Service`."""
        return self._first.state

    @property
    def pid(self) -> int | None:
        """Of the model process; None while there is none."""
        return self._first.pid

    def submit(self, requests: Sequence[Request]) -> list[Future]:
        """See `Service`."""
        jobs = [_Job(request, is_slow=request.model_key in self._slow_models) for request in requests]
        ours = [job for job in jobs if not is_hugging_face(job.request.model)]
        with self._lock:
            if self._closed:
                raise ServiceError(CLOSED)
            waiting = sum(lane.length for lane in self._lanes)
            if waiting + len(jobs) > self.limits.waiting:
                raise Busy(f"{waiting} sentences are waiting for the models already; try again in a minute")
            self._first.add(job for job in ours if not job.is_slow)
            self._apart.add(job for job in ours if job.is_slow)
            self._guests.add(job for job in jobs if job not in ours)
        return [job.future for job in jobs]

    def stop(self, future: Future) -> None:
        """See `Service`."""
        self._guests.stop(future)

    def state_of(self, futures: Collection[Future]) -> str:
        """See `Service`."""
        if self._guests.has(futures):
            return self._guests.state
        if self._apart.has(futures):
            return APART if self._apart.state == SILENT else self._apart.state
        return self._first.state

    def close(self) -> None:
        """See `Service`."""
        with self._lock:
            self._closed = True
        for lane in self._lanes:
            lane.close()
        atexit.unregister(self.close)


class _Lane:
    """A process of the models, and the thread that gives it requests.

    gather, most : see `Embedded`. slow_models : `Request.model_key` of models that load too slowly for the first lane.
    apart : the second lane, which receives the requests that this one gives up; None for the second lane itself, whose
    process ends when idle.
    """

    def __init__(self, limits: Limits, gather: float, most: int, slow_models: set[tuple], apart: "_Lane | None" = None):
        self._limits, self._gather, self._most, self._slow_models = limits, gather, most, slow_models
        self._is_first, self._apart = apart is not None, apart or self
        self._state, self._closed, self._rests = STARTING, False, not self._is_first
        self._waiting: deque[_Job] = deque()
        self._change, self._writing = threading.Condition(), threading.Lock()
        self._process: connection.ModelProcess | None = None
        self._unanswered: dict[int, _Job] = {}  # of the batch that is computed, by place
        self._reading: tuple | None = None  # the model whose files the process reads
        self._heard = self._took = self._computed = 0.0  # when the process was last heard of, after how many s; s of
        # this batch that it has computed
        self._watchdog = connection.Watchdog()
        self._thread = threading.Thread(target=self._serve, name="model service", daemon=True)
        self._thread.start()

    @property
    def state(self) -> str:
        is_running = self._state == RUNNING
        if is_running and self._unanswered and self._reading:
            return STARTING
        is_awaited = bool(self._unanswered) if is_running else self._process is not None
        if is_awaited and time.monotonic() - self._heard >= self._limits.quiet:
            return SILENT
        return self._state

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def length(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    def has(self, futures: Collection[Future]) -> bool:
        """Are any of them waiting or being computed here?"""
        with self._change:
            here = [*self._waiting, *self._unanswered.values()]
        return any(job.future in futures for job in here)

    def add(self, jobs: Iterable[_Job]) -> None:
        with self._change:
            self._waiting.extend(jobs)
            self._change.notify()

    def close(self) -> None:
        with self._change:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
            self._change.notify()
        for job in left:
            job.fail(CLOSED)
        if process := self._process:
            process.kill()
        self._thread.join(5)
        self._watchdog.close()

    def _serve(self) -> None:
        """The loop of the thread until the service is closed."""
        while not self._closed:
            if (self._process or self._rests) and not self._is_wanted():
                self._end(STARTING)
                self._rests = True
            elif (self._process or self._start()) and (batch := self._take()) and self._process:
                self._compute(self._process, batch)
        self._end(RESTARTING)

    def _is_wanted(self) -> bool:
        """Wait for a request; while there is a process, at most its idle time."""
        with self._change:
            idle = self._limits.rest if self._is_first else self._limits.idle
            limit = idle if self._process and idle < math.inf else None
            return bool(self._change.wait_for(lambda: self._waiting or self._closed, limit))

    def _start(self) -> bool:
        """Start the process and wait until it is ready. If that fails, waiting requests get the error."""
        for _ in range(STARTS):
            if self._closed:
                return False
            process = connection.model_process()
            self._heard, self._process = time.monotonic(), process
            try:
                self._wait_until_ready(process)
            except EOFError:
                self._end(self._state)
            else:
                self._state = RUNNING
                return True
        for job in self._take():
            job.fail(NO_START)
        self._unanswered = {}
        return False

    def _wait_until_ready(self, process: connection.ModelProcess) -> None:
        """Raises EOFError if it has ended, or was killed because it was silent or took too long."""
        end = time.monotonic() + self._limits.start
        message = connection.STARTING
        while message != connection.READY:
            self._heard = time.monotonic()
            self._watchdog.watch(process, min(self._limits.start_silence, end - self._heard))
            message = connection.read(process.stdout)
        self._watchdog.rest()

    def _take(self) -> list[_Job]:
        """Wait for the next batch; [] when the service is closed."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._closed)
        time.sleep(self._gather)
        with self._change:
            batch: list[_Job] = []
            while self._waiting and len(batch) < self._most:
                alone = self._waiting[0].deaths > 0
                if alone and batch:
                    break
                job = self._waiting.popleft()
                if job.begins():
                    batch.append(job)
                if alone:
                    break
            self._unanswered = dict(enumerate(batch))
            self._reading, self._computed, self._heard = None, 0.0, time.monotonic()
            return batch

    def _compute(self, process: connection.ModelProcess, batch: list[_Job]) -> None:
        self._watchdog.watch(process, self._patience())
        try:
            with self._writing:
                connection.write(process.stdin, [job.request for job in batch])
            while self._unanswered:
                place, answer = connection.read(process.stdout)
                self._hear()
                if place is None:
                    self._read(answer)
                elif place == connection.STEPS:
                    self._step(answer)
                else:
                    self._unanswered.pop(place).answer(answer)
                self._watchdog.watch(process, self._patience())
        except (EOFError, OSError):
            self._lose(was_alone=len(batch) == 1)
        finally:
            self._watchdog.rest()

    def _hear(self) -> None:
        """Note that the process has sent something. The time that it took to read files does not count as computing."""
        now = time.monotonic()
        if not self._reading:
            self._computed += now - self._heard
        self._took, self._heard = now - self._heard, now

    def _read(self, model: tuple | None) -> None:
        """The process has begun to read the files of a model; None: it has finished reading."""
        if model is None and self._took < self._limits.silence:
            self._slow_models.discard(self._reading)
        self._reading = model

    def _step(self, count: int) -> None:
        """Note a step of work: the next one has the full time again."""
        self._computed = 0.0
        for job in self._unanswered.values():
            job.future.steps += count

    def stop(self, future: Future) -> None:
        """See `Service`."""
        future.cancel()
        if (process := self._process) and any(job.future is future for job in self._unanswered.values()):
            with contextlib.suppress(OSError), self._writing:
                connection.write(process.stdin, connection.STOP)

    def _patience(self) -> float:
        """Seconds that the process may be silent from now on."""
        limits = self._limits
        longest = limits.reading if self._reading else limits.request - self._computed
        is_slow = any(job.is_slow for job in self._unanswered.values())
        return longest if is_slow else min(longest, limits.silence)

    def _lose(self, was_alone: bool) -> None:
        """The process has ended: send unanswered requests again, or fail them. was_alone : its batch had one
        request."""
        left, too_late = list(self._unanswered.values()), self._watchdog.has_killed
        self._hear()
        self._end(RESTARTING)
        if self._closed:
            for job in left:
                job.fail(CLOSED)
        elif too_late:
            self._give_up(left, was_alone)
        else:
            self._ask_again(left)
        self._unanswered = {}

    def _ask_again(self, left: list[_Job]) -> None:
        """Put requests back at the head of the queue, to be sent one at a time. Fail those that have used up their
        tries."""
        for job in left:
            job.deaths += 1
            if job.deaths >= TRIES:
                job.fail("the model process stopped twice at this sentence; change it")
        with self._change:
            self._waiting.extendleft(job for job in reversed(left) if not job.future.done())

    def _give_up(self, left: list[_Job], was_alone: bool) -> None:
        """Move requests that were not answered in time to the second lane. A request that has used its full time
        fails."""
        if was_alone and (problem := self._problem(left[0])):
            left[0].fail(problem)
            return
        if self._reading:
            self._slow_models.add(self._reading)
        for job in left:
            job.is_slow = job.is_slow or was_alone or job.request.model_key == self._reading
        self._apart.add(sorted(left, key=lambda job: job.is_slow))

    def _problem(self, alone: _Job) -> str | None:
        """Why a request that was computed alone fails; None if it has not used its full time."""
        limits = self._limits
        if self._reading:
            problem = f"the files of {alone.request.model} were not read after {limits.reading:g} s; try again later"
            return problem if alone.is_slow else None
        if self._computed < limits.request:
            return None
        return f"the models needed more than {limits.request:g} s for this sentence; shorten it"

    def _end(self, state: str) -> None:
        """End the process, if there is one. state : of the lane from now on."""
        process, self._process, self._state = self._process, None, state
        if not process:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was still to be written
                pipe.close()


class Guests(_Lane):
    """The lane of models of the transformers library: each text may take its full time."""

    def __init__(self, limits: Limits):
        super().__init__(replace(limits, request=GUEST_S, reading=GUEST_READING_S, idle=GUEST_IDLE_S), 0, 1, set())

    @property
    def state(self) -> str:
        state = super().state
        return OF_GUEST if state == SILENT else state

    def add(self, jobs: Iterable[_Job]) -> None:
        super().add(replace(job, is_slow=True) for job in jobs)

    def ask(self, request: Request) -> Future:
        job = _Job(request)
        self.add([job])
        return job.future
