"""Read ordinary files only. A read from a pipe could wait for ever, and a device may have no end."""

import math
import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotRegularError(OSError):
    """A path that is not an ordinary file, or a file that is too large; `strerror` says which."""


def check(path: str | Path, limit: float = math.inf) -> int:
    """The size in bytes of an ordinary file. NotRegularError for anything else or above `limit`, OSError without a
    file."""
    return _size(os.stat(path), path, limit)


def read(path: str | Path, limit: int) -> bytes:
    """The content of an ordinary file of at most `limit` bytes. Raises NotRegularError, OSError."""
    check(path, limit)  # it says what else is there; opening a socket fails with words of its own
    # Without O_NONBLOCK the mere opening of a pipe waits until somebody writes to it.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        _size(os.fstat(descriptor), path, limit)
        content = file.read(limit + 1)
    if len(content) > limit:  # a file of /proc has no size, and an end that depends
        raise NotRegularError(0, f"more than {limit:,} bytes", str(path))
    return content


def _size(status: os.stat_result, path: str | Path, limit: float) -> int:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
        raise NotRegularError(0, f"not a file but {kind}", str(path))
    if status.st_size > limit:
        raise NotRegularError(0, f"{status.st_size:,} bytes, and at most {limit:,} are read", str(path))
    return status.st_size
