"""A race in a separate process: `Apart` starts it, stores its moments, and makes it pause, continue or stop.

The process reads commands from its input and ends when the input is closed. It writes moments to its output, the models
on request, or a sentence on why training ended. It also ends if nobody has looked at `Apart` for a while, as after a
closed tab. No torch here, because the page's process does not import it.
"""

import contextlib
import gc
import importlib
import os
import queue
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from attnviz.service import connection
from attnviz.storage.folders import TemporaryFolder
from attnviz.training.seen import Moment, Ring, Settings

PAUSE, GO, ONE, KEEP, STOP = "pause", "go", "one", "keep", "stop"
STARTING, RUNNING, PAUSED, DONE, ENDED = "starting", "running", "paused", "done", "ended"
UNSEEN = 10.0  # s without a look, after which it ends
MOST_SECONDS = 600.0  # processor seconds of all mechanisms together, after which it trains no longer
PATIENCE = 60.0  # s that the models are waited for
COMPILER = "torch._dynamo"
NICE = 5  # priority below the processes that answer visitors
_LOOK = 0.5  # s between two looks at whether anybody looks
GONE = "The models have ended with the training. Start it again, and keep them while it is paused."
KILLED = "The training process has ended unexpectedly. What was seen until then is kept. Start it again."


class Apart:
    """A training in a separate process. moments : those received. state : STARTING, RUNNING, PAUSED, DONE (the time
    limit is reached; the models are still available) or ENDED. problem : why training ended early, or "". name : a
    random one, which nobody can guess.

    is_open : will somebody look again, such as a background tab, which polls once a minute?"""

    def __init__(
        self,
        task: Any,
        mechanisms: Sequence[str],
        settings: Settings,
        unseen: float | None = None,
        longest: float = MOST_SECONDS,
        is_open: Callable[[], bool] = lambda: False,
    ):
        self.settings, self.ring, self.state, self.problem = settings, Ring(), STARTING, ""
        self.name = secrets.token_urlsafe(16)
        self._unseen, self._is_open = UNSEEN if unseen is None else unseen, is_open
        self._looked, self._lock = time.monotonic(), threading.Lock()
        self._models: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()  # None when there will be no more
        self._asking = threading.Lock()
        self.process = connection.started("attnviz.training.apart")
        self._tell((task, list(mechanisms), settings, longest))
        for work in (self._read, self._watch):
            threading.Thread(target=work, daemon=True).start()

    @property
    def moments(self) -> list[Moment]:
        """The received moments; reading them counts as looking."""
        self.look()
        return self.received

    @property
    def received(self) -> list[Moment]:
        """The same, without looking."""
        with self._lock:
            return list(self.ring.moments)

    def look(self) -> None:
        """Note that somebody still looks. Without this call the training ends after a while."""
        self._looked = time.monotonic()

    def tell(self, command: str) -> None:
        """PAUSE, GO, ONE (batch) or STOP."""
        self._looked = time.monotonic()
        if self.state == ENDED:
            return
        if command == STOP:
            self.state = ENDED
            self.process.terminate()
        elif self.state != DONE:
            self.state = RUNNING if command == GO else PAUSED
            self._tell(command)

    def models(self) -> bytes:
        """The models as they are now, as a zip of a folder for ATTNVIZ_CHECKPOINTS. ValueError if they no longer
        exist."""
        with self._asking:
            self._looked = time.monotonic()
            content = None
            while not self._models.empty():  # what came after its patience, of an earlier batch
                self._models.get()
            if self.state != ENDED and self.process.poll() is None:
                self._tell(KEEP)
                with contextlib.suppress(queue.Empty):
                    content = self._models.get(timeout=PATIENCE)
            if content is None:
                raise ValueError(GONE)
            return content

    def _tell(self, value: Any) -> None:
        with contextlib.suppress(OSError):  # it has ended; `_read` says so
            connection.write(self.process.stdin, value)

    def _read(self) -> None:
        """Store everything that arrives until the output ends."""
        try:
            while True:
                value = connection.read(self.process.stdout)
                if isinstance(value, bytes):
                    self._models.put(value)
                    continue
                if isinstance(value, str):
                    if self.state != ENDED:
                        self.problem, self.state = value, DONE
                    continue
                with self._lock:
                    self.ring.add(value)
                if self.state == STARTING:
                    self.state = RUNNING
        except (EOFError, OSError):
            if self.state != ENDED:
                self.problem, self.state = self.problem or KILLED, ENDED
        self._models.put(None)
        self.process.wait()

    def _watch(self) -> None:
        """End the process if nobody looks."""
        while self.process.poll() is None:
            if self._is_open():
                self._looked = time.monotonic()
            if time.monotonic() - self._looked > self._unseen:
                self.problem = "Nobody was looking, so the training has ended. What was seen until then is kept."
                self.state = ENDED
                self.process.terminate()
            time.sleep(_LOOK)


class _Commands:
    """The commands to the process, read by a separate thread."""

    def __init__(self):
        self._changed = threading.Condition()
        self.paused, self._batches, self._wanted = False, 0, 0

    def listen(self) -> None:
        """Read commands until the input is closed; then the process ends."""
        try:
            while True:
                command = connection.read(sys.stdin.buffer)
                with self._changed:
                    if command == KEEP:
                        self._wanted += 1
                    else:
                        self.paused = command != GO
                        self._batches += command == ONE
                    self._changed.notify()
        except (EOFError, OSError):
            os._exit(0)  # whatever the other thread computes, nobody waits for it

    def wait(self, for_models: bool = False) -> bool:
        """Wait while paused -> False when one batch is requested or training continues, True when the models are
        requested. for_models : wait only for the latter."""
        with self._changed:
            while not self._wanted and (for_models or (self.paused and not self._batches)):
                self._changed.wait()
            if self._wanted:
                self._wanted -= 1
                return True
            if self.paused:
                self._batches -= 1
            return False


class _NoCompiler(ModuleType):
    """A stand-in for torch's compiler. torch's optimisers import the compiler only to switch it off for themselves, and
    that import takes as long as all of torch. Using any other part of the stand-in imports the real one."""

    graph_break = staticmethod(lambda: None)
    disable = staticmethod(lambda function, *_, **__: function)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # what Python asks of every module
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def leave_out_the_compiler() -> None:
    """For a process that trains and compiles nothing: skip that import, which saves a third of its start."""
    sys.modules.setdefault(COMPILER, _NoCompiler(COMPILER))


def main() -> None:
    """The process."""
    with contextlib.suppress(AttributeError):  # Windows has no such call
        os.nice(NICE)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand among the replies
    task, names, settings, longest = connection.read(sys.stdin.buffer)
    commands = _Commands()
    threading.Thread(target=commands.listen, daemon=True).start()
    gc.set_threshold(10_000)  # as in the process of the models: imports make many objects and no garbage
    leave_out_the_compiler()
    from attnviz.training.race import Race

    try:
        race = Race(task, names, settings)
        _train(race, longest, commands, lambda value: connection.write(replies, value))
    except ValueError as error:
        connection.write(replies, str(error))
    except BrokenPipeError:
        return


def _train(race: Any, longest: float, commands: _Commands, send: Callable[[Any], None]) -> None:
    """Send the moments of a Race for `longest` seconds of computing, then provide its models until the input is
    closed."""
    from attnviz.training.race import Rhythm

    rhythm = Rhythm(race)
    shown = rhythm.look()
    send(shown)
    while race.learning and race.seconds < longest:
        if commands.paused and shown.batch != race.batch:  # who pauses sees where it stands
            shown = rhythm.look()
            send(shown)
        if commands.wait():
            send(_packed(race))
            continue
        race.advance()
        if rhythm.due() and not commands.paused:
            shown = rhythm.look()
            send(shown)
    send(rhythm.look())
    ended = f"after {longest:g} seconds of computing" if race.learning else "because no mechanism can learn on"
    send(f"The training has ended {ended}. The models can still be kept.")
    while commands.wait(for_models=True):
        send(_packed(race))


def _packed(race: Any) -> bytes:
    """A zip of the folder that a Race writes its models to."""
    with TemporaryFolder() as folder:
        race.save(Path(folder) / "models")
        return Path(shutil.make_archive(f"{folder}/packed", "zip", f"{folder}/models")).read_bytes()


if __name__ == "__main__":
    main()
