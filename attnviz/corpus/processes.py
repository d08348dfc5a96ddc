"""Shards in several processes of this machine, which end with the process that started them, however it ends."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection

from attnviz.corpus.shards import Done, Shard, Worker

_LOG = logging.getLogger(__name__)
_WORKER: list[Worker] = []  # of a worker's process


def compute(worker: Worker, shards: Iterable[Shard], workers: int) -> Iterator[Done]:
    """The shards by `workers` processes, each as soon as it is done. Only as many are read as they can take soon.

    Closed, or stopped by an exception, it waits for the shards that have begun; interrupted while it waits, it kills
    the processes. Raises RuntimeError when a process died.
    """
    context, others = get_context("spawn"), set(active_children())
    watched, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_enter, initargs=(worker, watched))
    try:
        yield from _results(pool, shards, workers)
    except BrokenProcessPool:
        raise RuntimeError(
            "a worker died, perhaps because memory ran out; what is done is kept, and --resume continues"
        ) from None
    except KeyboardInterrupt:
        _LOG.warning("interrupted: the shards that have begun are finished first; Ctrl-C again ends them at once")
        raise
    finally:
        try:
            pool.shutdown(cancel_futures=True)
        finally:
            for process in set(active_children()) - others:  # an interrupted shutdown has left them
                process.kill()
            pool.shutdown()
            held.close()
            watched.close()


def _results(pool: ProcessPoolExecutor, shards: Iterable[Shard], workers: int) -> Iterator[Done]:
    pending: set[Future] = set()
    for shard in shards:
        with _uninterrupted():  # the first call starts the processes
            pending.add(pool.submit(_compute, shard))
        if len(pending) >= 2 * workers:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in finished)
    while pending:
        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in finished)


def _enter(worker: Worker, watched: Connection) -> None:
    """Begin a worker's process. At Ctrl-C the process that started it decides: what has begun is finished."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(watched,), daemon=True).start()
    _WORKER[:] = [worker]


def _end_with(watched: Connection) -> None:
    """End this process when the other end of a pipe is closed. The system closes it for a process that was killed."""
    with contextlib.suppress(EOFError, OSError):
        watched.recv_bytes()
    os._exit(1)  # without waiting for the shard; its files are written whole or not at all


def _compute(shard: Shard) -> Done:
    return _WORKER[0](shard)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes that are started in this block hear no Ctrl-C, not even while they import; this one hears it after the
    block. On Windows, which cannot do that, they hear it until `_enter`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
