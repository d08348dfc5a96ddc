"""A file of sentences through models: statistics of every sentence in a folder of Parquet files.

A run puts shards of the input through each model, by workers, then joins them to one file of statistics and one of
sentences. The files do not depend on the number of workers, nor on how often the run was stopped and resumed.

Workers are processes of this machine, or actors on a Ray cluster. The processes end with the one that started them,
however it ends. Ray is an extra, `pip install -e '.[ray]'`. If a node dies, others compute its shards again. A shard is
written whole or not at all, so none is lost or duplicated.
"""

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from attnviz import arguments, loading, storage
from attnviz.arguments import checked
from attnviz.corpus import manifest
from attnviz.corpus.manifest import KEEP, CorpusConfig, Sentences, shard_of
from attnviz.corpus.shards import SENTENCES_SCHEMA, STATISTICS_SCHEMA, Done, Shard, Worker, part, read, read_part
from attnviz.models.names import is_hugging_face
from attnviz.storage import folders

__all__ = ["KEEP", "CorpusConfig", "Progress", "read", "run"]

Backend = Callable[[Worker, Iterable[Shard]], Iterator[Done]]


@dataclass(frozen=True)
class Progress:
    """How far a run has come. done, total : sentences, of all models.

    errors : (model, number of the sentence, reason) of those that the last shard skipped.

    >>> Path("dog.txt").write_text("The black dog runs.")
    >>> list(corpus.run(corpus.CorpusConfig(("en-fr/bahdanau",), "dog.txt"), "statistics"))[-1]
    Progress(done=1, total=1, errors=())
    """

    done: int
    total: int
    errors: tuple[tuple[str, int, str], ...] = ()


@checked
def run(
    config: CorpusConfig,
    folder: str | Path,
    workers: int = 1,
    resume: bool = False,
    ray: str | None = None,
    threads: int = 1,
) -> Iterator[Progress]:
    """Compute into `folder`, and yield the progress after every shard.

    workers : processes; 1 computes in this one. resume : continue the stopped run in this folder. ray : the
    address of a Ray cluster, or `auto`; its nodes must see the same folder and checkpoints. threads : of each process.
    It can be stopped at any time: what is written stays. No other run may work in the folder until this iterator ends
    or is closed.
    Raises ValueError for impossible settings, or another run in the folder; OSError for files; InputChanged if the
    input or a model changes during the run.

    >>> Path("dog.txt").write_text("The black dog runs.")
    >>> config = corpus.CorpusConfig(("en-fr/bahdanau",), "dog.txt", keep=("weights",))
    >>> [progress.done for progress in corpus.run(config, "weights")]
    [0, 1]
    """
    folder = arguments.path("folder", folder)
    if os.path.lexists(folder) and not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; give the name of a new folder")
    _check_models(config)
    sentences = Sentences.of_file(Path(config.input))
    config = replace(config, shard=config.shard or shard_of(sentences.records))
    with folders.locked(folder, manifest.TASK):
        yield from _run(Worker(config, folder, threads), sentences, _backend(workers, ray), resume)


def _run(worker: Worker, sentences: Sentences, backend: Backend, resume: bool) -> Iterator[Progress]:
    """`run` after the folder is locked, so that no other run writes to it."""
    config, folder = worker.config, worker.folder
    made, records = manifest.contents(config, sentences), sentences.records
    manifest.begin(folder, made, resume)
    total = records * len(config.models)
    if manifest.complete(folder):
        _clear(folder)
        yield Progress(total, total)
        return
    done = sum(shard.sentences for shard in _finished(config, folder, records))
    yield Progress(done, total)
    for result in backend(worker, _shards(config, folder, sentences, made["models"])):
        done += result.sentences
        model = config.models[result.place]
        yield Progress(done, total, tuple((model, number, reason) for number, reason in result.errors))
    sentences.check(whole=True)
    manifest.check_models(config, made["models"])
    _join(config, folder, records)
    manifest.write(folder, made | {"complete": True})
    _clear(folder)  # the last thing: a run that is killed while its parts go is complete


def skipped(folder: Path) -> int:
    """The rows of a finished run's sentences.parquet that have an error in place of a result."""
    file = parquet.ParquetFile(folder / "sentences.parquet")
    return sum(len(batch) - batch.column("error").null_count for batch in file.iter_batches(columns=["error"]))


def too_long(config: CorpusConfig, folder: Path, threads: int = 1) -> int:
    """The rows of a finished run's sentences.parquet whose text has more pieces than nearly all training texts of the
    model (`Trained.longest`); nothing says it of a Hugging Face model. threads : of torch in this process, as of `run`.
    """
    trained = [name for name in config.models if not is_hugging_face(name)]
    root = None if config.root is None else Path(config.root)
    limits = {name: loading.load_checkpoint(name, root, threads).longest for name in trained}
    file, count = parquet.ParquetFile(folder / "sentences.parquet"), 0
    for batch in file.iter_batches(columns=["model", "source_tokens"]):
        rows = zip(batch.column("model").to_pylist(), batch.column("source_tokens").to_pylist())
        count += sum(tokens is not None and 0 < limits.get(model, 0) < tokens for model, tokens in rows)
    return count


def _check_models(config: CorpusConfig) -> None:
    """Check before writing anything that all models load and accept the beam. Otherwise a second model could fail after
    hours of work on the first. Raises ValueError."""
    for name in config.models:
        loading.load(name, config.root).check_beam(config.beam)


def _backend(workers: int, ray: str | None) -> Backend:
    if ray is not None:
        return lambda worker, shards: on_ray(worker, shards, workers, ray)
    return map if workers == 1 else lambda worker, shards: in_processes(worker, shards, workers)


def _numbers(config: CorpusConfig, records: int) -> Iterator[tuple[int, int]]:
    """(index of the model, number of the shard) of all shards, in order."""
    shards = -(-records // config.size)
    return ((place, number) for place in range(len(config.models)) for number in range(shards))


def _is_done(folder: Path, place: int, number: int) -> bool:
    return part(folder, place, number, "sentences").is_file()


def _finished(config: CorpusConfig, folder: Path, records: int) -> Iterator[Done]:
    for place, number in _numbers(config, records):
        if _is_done(folder, place, number):
            yield Done(place, number, min(config.size, records - number * config.size), [])


def _shards(config: CorpusConfig, folder: Path, sentences: Sentences, models: dict) -> Iterator[Shard]:
    """The shards that are not yet computed. The input is read once per model, a few hundred lines at a time.

    models : their files at the beginning. Raises InputChanged."""
    for place, model in enumerate(config.models):
        manifest.check_models(config, models)
        for number, records in enumerate(sentences.shards(config.size)):
            if not _is_done(folder, place, number):
                yield Shard(model, place, number, records)


def _join(config: CorpusConfig, folder: Path, records: int) -> None:
    """Join the parts to one file each, in the order of models and sentences."""
    for what, schema in (("statistics", STATISTICS_SCHEMA), ("sentences", SENTENCES_SCHEMA)):
        if what == "statistics" and what not in config.keep:
            continue
        paths = [part(folder, place, number, what) for place, number in _numbers(config, records)]
        storage.replace(folder / f"{what}.parquet", lambda temporary: _concatenate(paths, schema, temporary))


def _clear(folder: Path) -> None:
    """Delete the parts after they are joined."""
    parts = folder / "parts"
    for path in [*parts.glob("*.arrow"), *storage.unfinished(folder)]:
        path.unlink()
    if parts.is_dir():
        parts.rmdir()


def _concatenate(paths: list[Path], schema: pa.Schema, target: Path) -> None:
    """Write one row group per part. Only words and whole numbers get a dictionary, because only they repeat; with a
    dictionary for all columns this takes four times as long, and the file is half as large again."""
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    with parquet.ParquetWriter(target, schema, compression="zstd", use_dictionary=repeated) as writer:
        for path in paths:
            writer.write_table(read_part(path))


_LOG = logging.getLogger(__name__)
_WORKER: list[Worker] = []  # of a worker's process
ANSWER = 5  # s in which a cluster takes a connection


def in_processes(worker: Worker, shards: Iterable[Shard], workers: int) -> Iterator[Done]:
    """The shards by `workers` processes, each as soon as it is done. Only a few are read ahead.

    When closed or stopped by an exception, it waits for the shards in progress; when interrupted while it waits, it
    kills the processes. Raises RuntimeError when a process died.
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
            with _threads_unheard():
                for process in set(active_children()) - others:  # an interrupted shutdown has left them
                    process.kill()
                pool.shutdown()
            held.close()
            watched.close()


@contextlib.contextmanager
def _threads_unheard() -> Iterator[None]:
    """Print no traceback of a thread that fails in this block. When the workers are killed, a thread of Python's own
    pool may find its queue closed."""
    before, threading.excepthook = threading.excepthook, lambda _: None
    try:
        yield
    finally:
        threading.excepthook = before


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
    """Begin a worker's process. It ignores Ctrl-C: its parent decides, so that a shard in progress is finished."""
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
    """Processes started in this block ignore Ctrl-C, also while they import; this process receives it after the block.
    On Windows, where this is impossible, they ignore it from `_enter` on."""
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

    The whole input is first read into Ray's object store, which spills to disk when full; this process keeps none of
    it. Raises ValueError when Ray is not installed, or there is no such cluster.
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
        Actor, fn_constructor_args=(worker,), batch_size=1, compute=ray.data.ActorPoolStrategy(size=workers), num_cpus=1
    )
    yield from (row["done"] for row in data.iter_rows())


def join_cluster(address: str, **options) -> None:
    """Join the cluster at this address (or `auto`), unless this process is in one. options : of `ray.init`.

    Ray's usage statistics are switched off unless RAY_USAGE_STATS_ENABLED is set: they are sent by a thread that never
    ends. Raises ImportError without Ray, ValueError if there is no such cluster (immediately if nothing listens at the
    address; Ray itself would retry for more than a minute).
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
    """ValueError if the address is a host and port that accept no connection."""
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
