"""Starts the model process, and sends values to and from it: a length of eight bytes, then the value.

Values are pickled, as in multiprocessing, because both ends are this program. User files are never read this way. The
process imports torch for a second, so a server may start it before anything else: only the standard library is imported
here.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

STARTING, READY = "starting", "ready"  # what the process says of itself before it takes requests


class ModelProcess(subprocess.Popen[bytes]):
    """A process whose input and output are pipes."""

    stdin: IO[bytes]
    stdout: IO[bytes]


_MODULE = "attnviz.service.process"
_ready_made: list[ModelProcess] = []


def start_ahead() -> None:
    """Start the process that the next call of `model_process` will return."""
    _ready_made.append(started(_MODULE))


def model_process() -> ModelProcess:
    """The model process, which imports this package from the same place as this process."""
    return _ready_made.pop() if _ready_made else started(_MODULE)


def started(module: str) -> ModelProcess:
    """A process that runs a module of this package, on one thread."""
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return ModelProcess(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )


def write(stream: IO[bytes], value: Any) -> None:
    """Send a value. Raises OSError if the other end is closed."""
    from multiprocessing.reduction import ForkingPickler

    content = ForkingPickler.dumps(value)
    stream.write(len(content).to_bytes(8, "little"))
    stream.write(content)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    """The next value. Raises EOFError if the other end is closed."""
    from multiprocessing.reduction import ForkingPickler

    return ForkingPickler.loads(_exactly(stream, int.from_bytes(_exactly(stream, 8), "little")))


def frozen(answer: Any) -> Any:
    """A received trace with its weights made read-only again; other values are returned unchanged."""
    from attnviz.trace import Trace

    if isinstance(answer, Trace):
        for attention in answer.maps:
            attention.weights.setflags(write=False)
    return answer


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
