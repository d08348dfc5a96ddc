"""A file of sentences through models: statistics of every sentence in a folder of Parquet files.

A run puts shards of the input through each model, by workers, then joins them to one file of statistics and one of
sentences. The files do not depend on the number of workers, nor on how often the run was stopped and resumed.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from attnviz import arguments, loading, storage
from attnviz.arguments import checked
from attnviz.corpus import manifest
from attnviz.corpus.manifest import KEEP, CorpusConfig, Sentences, shard_of
from attnviz.corpus.shards import SENTENCES_SCHEMA, STATISTICS_SCHEMA, Done, Shard, Worker, part, read, read_part
from attnviz.corpus.workers import in_processes, on_ray
from attnviz.storage import folders

__all__ = ["KEEP", "CorpusConfig", "Progress", "read", "run", "skipped", "too_long"]

Backend = Callable[[Worker, Iterable[Shard]], Iterator[Done]]


@dataclass(frozen=True)
class Progress:
    """How far a run has come. done, total : sentences, of all models.

    errors : (model, number of the sentence, reason) of those that the last shard skipped.
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

    workers : processes; 1 computes in this one. resume : go on where the run in this folder was stopped. ray : the
    address of a Ray cluster, or `auto`; its nodes must see the same folder and checkpoints. threads : of each process.
    It can be stopped at any time: what is written stays. No other run may work in the folder until this iterator ends
    or is closed.
    Raises ValueError for impossible settings, or another run in the folder; OSError for files; InputChanged when the
    input or a model becomes another while the run is at work.
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
    """`run` once the folder is locked: no other run writes to it meanwhile."""
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
    model (`Trained.longest`). threads : of torch in this process, as of `run`."""
    models: dict[str, Any] = {name: loading.load(name, config.root, threads) for name in config.models}
    limits = {name: model.longest for name, model in models.items()}
    file, count = parquet.ParquetFile(folder / "sentences.parquet"), 0
    for batch in file.iter_batches(columns=["model", "source_tokens"]):
        rows = zip(batch.column("model").to_pylist(), batch.column("source_tokens").to_pylist())
        count += sum(tokens is not None and 0 < limits[model] < tokens for model, tokens in rows)
    return count


def _check_models(config: CorpusConfig) -> None:
    """Before anything is written: can all models be read, and do they take the beam? Raises ValueError. Hours of the
    first model would be stuck behind a second one that fails."""
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
    """The shards that are not there yet. The input is read once for each model, a few hundred lines at a time.

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
    """Delete the parts, which are joined."""
    parts = folder / "parts"
    for path in [*parts.glob("*.arrow"), *storage.unfinished(folder)]:
        path.unlink()
    if parts.is_dir():
        parts.rmdir()


def _concatenate(paths: list[Path], schema: pa.Schema, target: Path) -> None:
    """One row group for each part. Only words and whole numbers repeat: with a dictionary of the others too, this takes
    four times as long, and the file half as much room again."""
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    with parquet.ParquetWriter(target, schema, compression="zstd", use_dictionary=repeated) as writer:
        for path in paths:
            writer.write_table(read_part(path))
