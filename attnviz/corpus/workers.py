"""Shards by several workers: processes of this machine, or actors on a Ray cluster.

The processes end with the one that started them, however it ends. Ray is an extra, `pip install -e '.[ray]'`. The
shards of a node that dies are computed again by others: they are written whole or not at all, so none is lost or
doubled.
"""

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection

import pyarrow as pa

from attnviz.corpus.shards import Done, Shard, Worker

_LOG = logging.getLogger(__name__)
_WORKER: list[Worker] = []  # of a worker's process
ANSWER = 5  # s in which a cluster takes a connection


def in_processes(worker: Worker, shards: Iterable[Shard], workers: int) -> Iterator[Done]:
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


class Actor:
    """A worker on a node of the cluster."""

    def __init__(self, worker: Worker):
        self.worker = worker

    def __call__(self, batch: dict) -> dict:
        """batch : one shard in the column `shard` -> its result in the column `done`."""
        return {"done": [self.worker(shard) for shard in batch["shard"]]}


def on_ray(worker: Worker, shards: Iterable[Shard], workers: int, address: str) -> Iterator[Done]:
    """All shards by `workers` actors, each as soon as it is done. address : of the cluster, or `auto`.

    The input is read through first, into Ray's memory, which goes to disk where it is full; this process keeps none.
    Raises ValueError when Ray is not installed, or there is no such cluster.
    """
    try:
        import ray
        from ray.data.extensions import ArrowPythonObjectArray
    except ImportError:
        raise ValueError("--ray needs Ray; install it with: pip install -e '.[ray]'") from None
    join_cluster(address)
    blocks = [ray.put(pa.table({"shard": ArrowPythonObjectArray.from_objects([shard])})) for shard in shards]
    if not blocks:
        return
    data = ray.data.from_arrow_refs(blocks).map_batches(
        Actor,
        fn_constructor_args=(worker,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    yield from (row["done"] for row in data.iter_rows())


def join_cluster(address: str, **options) -> None:
    """Join the cluster at this address (or `auto`), unless this process is in one. options : of `ray.init`.

    Ray collects statistics of its use and sends them, in a thread that never ends; here it does not, unless
    RAY_USAGE_STATS_ENABLED says so. Raises ImportError without Ray, ValueError when there is no such cluster (at once
    when nothing listens at the address: Ray itself asks again for more than a minute).
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if not ray.is_initialized():
        _check_answers(address)
        try:
            ray.init(address, log_to_driver=False, **options)
        except (ConnectionError, ValueError) as error:
            raise ValueError(f"there is no Ray cluster at {address!r}: {error}") from None


def _check_answers(address: str) -> None:
    """ValueError when the address is a host and a port that take no connection."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():  # auto, local
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"there is no Ray cluster at {address!r}: nothing answers there ({error}). Give the address that "
            "`ray start --head` printed, or start a cluster with it"
        ) from None
