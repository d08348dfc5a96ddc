"""The model process: `python -m attnviz.service.process`. It reads batches from its input and ends when the input is
closed.

First it writes "starting" four times a second, so that a slow start differs from a hang, then "ready". For each batch
it writes (place, answer) of every request; (None, model key) when it begins to read the files of a model, and (None,
None) when it has read them; (STEPS, n) when work has done n more steps. See connection.py.
"""

import contextlib
import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import IO

from attnviz.service import connection
from attnviz.service.request import Stopped

EVERY = 0.1  # s between two words on steps
UNUSED = "torch._meta_registrations"  # shapes of torch's operations, for compiled models


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the page's process; its end is the end of this one
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand among the replies
    gc.disable()  # imports make many objects and no garbage: a fifth of the time of torch's import
    with _beating(replies):
        import_torch()
        import torch

        from attnviz.service.batch import Models, answers

    gc.freeze()  # what is here now is here to stay
    gc.enable()

    torch.set_num_threads(1)
    models = Models(lambda key: connection.write(replies, (None, key)), _Steps(replies).step)
    try:
        connection.write(replies, connection.READY)
        while True:
            requests = connection.read(sys.stdin.buffer)
            for answer in answers(models, () if requests == connection.STOP else requests):
                connection.write(replies, answer)
    except (EOFError, BrokenPipeError):
        return


class _Steps:
    """Tells the page of the steps of work, and ends work that nobody wants any more."""

    def __init__(self, replies: IO[bytes]):
        self._replies, self._count, self._next = replies, 0, 0.0

    def step(self) -> None:
        """Raises Stopped."""
        self._count += 1
        if time.monotonic() < self._next:
            return
        connection.write(self._replies, (connection.STEPS, self._count))
        self._count, self._next = 0, time.monotonic() + EVERY
        with contextlib.suppress(OSError, ValueError):  # Windows cannot ask whether a pipe has something
            if select.select([sys.stdin.buffer], [], [], 0)[0] and connection.read(sys.stdin.buffer) == connection.STOP:
                raise Stopped("the work was ended, because nobody wants it any more")


@contextlib.contextmanager
def _beating(replies: IO[bytes]) -> Iterator[None]:
    """During the block, a thread reports that the process is starting."""
    is_over = threading.Event()

    def beat() -> None:
        with contextlib.suppress(OSError):  # the other end has gone: the next reply ends this process
            while not is_over.wait(0.25):
                connection.write(replies, connection.STARTING)

    thread = threading.Thread(target=beat, name="beat")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def import_torch() -> None:
    """Import torch without UNUSED, which would take a quarter of the time. A later import of UNUSED works.

    With a user's mechanism, import all of torch, because its file may use any part.
    """
    from attnviz import mechanisms

    own = any(map(mechanisms.was_added, mechanisms.ALL))
    if not own:
        sys.modules[UNUSED] = ModuleType(UNUSED)
    import torch  # noqa: F401

    if not own:
        del sys.modules[UNUSED]


if __name__ == "__main__":
    main()
