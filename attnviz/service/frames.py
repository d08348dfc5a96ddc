"""Values between the page's process and its model process: a length of eight bytes, then the value.

As multiprocessing does it, because both ends are this program. Nothing of a person's file is read so.
"""

from multiprocessing.reduction import ForkingPickler
from typing import IO, Any

from attnviz.trace import Trace


def write(stream: IO[bytes], value: Any) -> None:
    """Send a value. Raises OSError when the other end has gone."""
    content = ForkingPickler.dumps(value)
    stream.write(len(content).to_bytes(8, "little"))
    stream.write(content)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    """The next value. Raises EOFError when the other end has gone."""
    return ForkingPickler.loads(_exactly(stream, int.from_bytes(_exactly(stream, 8), "little")))


def frozen(answer: Any) -> Any:
    """A trace with its weights read-only, as they were before they were sent; anything else as it is."""
    if isinstance(answer, Trace):
        for attention in answer.maps:
            attention.weights.setflags(write=False)
    return answer


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
