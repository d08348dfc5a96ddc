"""A race in a process of its own: `Apart` starts it, keeps what it has seen, and tells it to pause, go on or stop.

The process reads commands from its input and ends when that is closed; it writes moments to its output, or a sentence
that says why there are none. It ends too where nobody has looked at `Apart` for a while, as after a closed tab. No
torch here: the page's process does without.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnviz.service import connection
from attnviz.training.seen import Moment, Ring, Settings

PAUSE, GO, ONE, STOP = "pause", "go", "one", "stop"
STARTING, RUNNING, PAUSED, ENDED = "starting", "running", "paused", "ended"
UNSEEN = 10.0  # s without a look, after which it ends
LONGEST = 600.0  # processor seconds of all mechanisms together, after which it ends
_LOOK = 0.5  # s between two looks at whether anybody looks
KILLED = "The training process has ended unexpectedly. What was seen until then is kept. Start it again."


class Apart:
    """A training in a process of its own. moments : those that were seen. state : STARTING, RUNNING, PAUSED or ENDED.
    problem : why it ended, or ""."""

    def __init__(self, task: Any, mechanisms: Sequence[str], settings: Settings, unseen: float | None = None):
        self.ring, self.state, self.problem = Ring(), STARTING, ""
        self._unseen = UNSEEN if unseen is None else unseen
        self._looked, self._lock = time.monotonic(), threading.Lock()
        here = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
        self.process = connection.ModelProcess(
            [sys.executable, "-m", "attnviz.training.apart"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        self._tell((task, list(mechanisms), settings))
        for work in (self._read, self._watch):
            threading.Thread(target=work, daemon=True).start()

    @property
    def moments(self) -> list[Moment]:
        """Those that were seen; whoever asks looks."""
        self._looked = time.monotonic()
        with self._lock:
            return list(self.ring.moments)

    def tell(self, command: str) -> None:
        """PAUSE, GO, ONE (batch) or STOP."""
        self._looked = time.monotonic()
        if self.state == ENDED:
            return
        if command == STOP:
            self.state = ENDED
            self.process.terminate()
            return
        self.state = RUNNING if command == GO else PAUSED
        self._tell(command)

    def _tell(self, value: Any) -> None:
        with contextlib.suppress(OSError):  # it has ended; `_read` says so
            connection.write(self.process.stdin, value)

    def _read(self) -> None:
        """Keep what arrives until there is no more."""
        try:
            while True:
                value = connection.read(self.process.stdout)
                if isinstance(value, str):
                    self.problem, self.state = value, ENDED
                    continue
                with self._lock:
                    self.ring.add(value)
                if self.state == STARTING:
                    self.state = RUNNING
        except (EOFError, OSError):
            if self.state != ENDED:
                self.problem, self.state = KILLED, ENDED
        self.process.wait()

    def _watch(self) -> None:
        """End it where nobody looks."""
        while self.process.poll() is None:
            if time.monotonic() - self._looked > self._unseen:
                self.problem = "Nobody was looking, so the training has ended. What was seen until then is kept."
                self.state = ENDED
                self.process.terminate()
            time.sleep(_LOOK)


class _Commands:
    """What the process was told, read by a thread of its own."""

    def __init__(self):
        self._changed = threading.Condition()
        self.paused, self._batches = False, 0

    def listen(self) -> None:
        """Until the input is closed: then the process ends."""
        try:
            while True:
                command = connection.read(sys.stdin.buffer)
                with self._changed:
                    self.paused = command != GO
                    self._batches += command == ONE
                    self._changed.notify()
        except (EOFError, OSError):
            os._exit(0)  # whatever the other thread computes, nobody waits for it

    def wait(self) -> None:
        """Wait while it is paused, until a batch is asked for or it goes on."""
        with self._changed:
            while self.paused and not self._batches:
                self._changed.wait()
            if self.paused:
                self._batches -= 1


def main() -> None:
    """The process."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand among the replies
    task, names, settings = connection.read(sys.stdin.buffer)
    commands = _Commands()
    threading.Thread(target=commands.listen, daemon=True).start()
    from attnviz.training.race import Race, Rhythm

    try:
        race = Race(task, names, settings)
        rhythm = Rhythm(race)
        shown = rhythm.look()
        connection.write(replies, shown)
        while race.learning and race.seconds < LONGEST:
            if commands.paused and shown.batch != race.batch:  # who pauses sees where it stands
                shown = rhythm.look()
                connection.write(replies, shown)
            commands.wait()
            race.advance()
            if rhythm.due() and not commands.paused:
                shown = rhythm.look()
                connection.write(replies, shown)
        connection.write(replies, rhythm.look())
        ended = f"after {LONGEST:.0f} seconds of computing" if race.learning else "because no mechanism can learn on"
        connection.write(replies, f"The training has ended {ended}.")
    except ValueError as error:
        connection.write(replies, str(error))
    except BrokenPipeError:
        return


if __name__ == "__main__":
    main()
