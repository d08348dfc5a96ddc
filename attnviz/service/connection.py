"""Starts the model process, and sends values to and from it: a length of eight bytes, then the value.

Values are pickled, as in multiprocessing, because both ends are this program. User files are never read this way. The
process imports torch for a second, so a server may start it before anything else: only the standard library is imported
here.
"""

import copyreg
import io
import math
import os
import subprocess
import sys
import threading
import time
from dataclasses import is_dataclass
from pathlib import Path
from typing import IO, Any

STARTING, READY = "starting", "ready"  # what the process says of itself before it takes requests
STEPS, STOP = "steps", "stop"  # in place of a request's number: its number of new steps; what ends work at a step


class ModelProcess(subprocess.Popen[bytes]):
    """A process whose input and output are pipes."""

    stdin: IO[bytes]
    stdout: IO[bytes]


class Watchdog:
    """Kills a process that has sent nothing for too long."""

    def __init__(self):
        self.has_killed = False
        self._process: ModelProcess | None = None
        self._end = self._wakes = math.inf  # time.monotonic; when the thread looks next
        self._change, self._closed = threading.Condition(), False
        threading.Thread(target=self._wait, name="watchdog", daemon=True).start()

    def watch(self, process: ModelProcess, seconds: float) -> None:
        """Set how long it may be silent from now on (seconds)."""
        with self._change:
            self.has_killed = self.has_killed and process is self._process
            self._process, self._end = process, time.monotonic() + seconds
            if self._end < self._wakes:  # else it looks again by itself, and need not be woken for every answer
                self._change.notify()

    def rest(self) -> None:
        with self._change:
            self._end = math.inf

    def close(self) -> None:
        with self._change:
            self._closed = True
            self._change.notify()

    def _wait(self) -> None:
        with self._change:
            while not self._closed:
                left = self._end - time.monotonic()
                if left <= 0:
                    self.has_killed, self._end = True, math.inf
                    if self._process:
                        self._process.kill()
                else:
                    self._wakes = self._end
                    self._change.wait(None if left == math.inf else left)


_MODULE = "attnviz.service.process"
_MEMORY = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
_ready_made: list[ModelProcess] = []


def start_ahead() -> None:
    """Start the process that the next call of `model_process` will return."""
    _ready_made.append(started(_MODULE))


def model_process() -> ModelProcess:
    """The model process, which imports this package from the same place as this process."""
    return _ready_made.pop() if _ready_made else started(_MODULE)


def started(module: str) -> ModelProcess:
    """A process that runs a module of this package, on one thread, with the weights of models in large pages of memory
    (of Linux; an edit costs 5 % less), unless whoever started this process chose other settings of memory."""
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return ModelProcess(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_MEMORY | os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )


def write(stream: IO[bytes], value: Any) -> None:
    """Send a value. Raises OSError if the other end is closed."""
    from multiprocessing.reduction import ForkingPickler

    buffer = io.BytesIO()
    pickler: Any = ForkingPickler(buffer)
    pickler.dispatch_table = copyreg.dispatch_table  # tensors as bytes: torch would hand over its memory
    pickler.dump(value)
    content = buffer.getbuffer()
    stream.write(len(content).to_bytes(8, "little"))
    stream.write(content)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    """The next value. Raises EOFError if the other end is closed."""
    from multiprocessing.reduction import ForkingPickler

    return ForkingPickler.loads(_exactly(stream, int.from_bytes(_exactly(stream, 8), "little")))


def frozen(answer: Any) -> Any:
    """A received answer with all weights of its traces made read-only again."""
    from attnviz.trace import Trace

    if isinstance(answer, Trace):
        for attention in answer.maps:
            attention.weights.setflags(write=False)
    elif is_dataclass(answer):
        for part in vars(answer).values():
            frozen(part)
    return answer


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
