"""One shard: a few hundred sentences through one model, written to files of its own.

A shard is done when its file of sentences is there. This file is written last, and each file whole or not at all. So a
worker may die at any time. A shard that is computed twice gives the same files. Weights, where a run keeps them, are
written shard by shard too, and read one trace at a time.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import torch
from pyarrow import ipc

from attnviz import alignment, arguments, loading, storage
from attnviz.arguments import checked
from attnviz.corpus import manifest
from attnviz.corpus.manifest import CorpusConfig
from attnviz.data.records import Record, Unreadable
from attnviz.gold import LinkedPair
from attnviz.models import checkpoints
from attnviz.models.checkpoint_files import CheckpointError, read_json
from attnviz.models.measured import NAMES, TraceStatistics
from attnviz.models.names import is_hugging_face
from attnviz.trace import Trace

WEIGHTS_FOLDER = "weights"
_WORD = pa.dictionary(pa.int32(), pa.string())
STATISTICS_SCHEMA = pa.schema(
    [("model", _WORD), ("sentence", pa.int64()), ("kind", _WORD), ("layer", pa.int16()), ("head", pa.int16())]
    + [("step", pa.int16()), ("token", pa.string()), ("argmax_token", pa.string())]
    + [(name, pa.int16() if name == "argmax" else pa.float32()) for name in NAMES]
)
SENTENCES_SCHEMA = pa.schema(
    [("model", _WORD), ("sentence", pa.int64()), ("id", pa.string()), ("source", pa.string())]
    + [("translation", pa.string()), ("forced", pa.bool_()), ("complete", pa.bool_())]
    + [("source_tokens", pa.int16()), ("target_tokens", pa.int16()), ("log_prob", pa.float64())]
    + [("aer", pa.float64()), ("error", pa.string())]
)


class Shard(NamedTuple):
    """model : its name. place : of the model in the config. number : of the shard in the input, from 0."""

    model: str
    place: int
    number: int
    records: list[Record | Unreadable]


class Done(NamedTuple):
    """A shard that is written. errors : (number of the sentence, reason) of those that were skipped."""

    place: int
    number: int
    sentences: int
    errors: list[tuple[int, str]]


def part(folder: Path, place: int, number: int, what: str) -> Path:
    """The path of a shard's file until all shards are done. what : statistics or sentences.

    It is a stream of Arrow, which takes a tenth of the time of a Parquet file to write and to read.
    """
    return folder / "parts" / f"{place}-{number:06}-{what}.arrow"


def read_part(path: Path) -> pa.Table:
    """The part that a worker wrote there."""
    with pa.OSFile(str(path)) as file:
        return ipc.open_stream(file).read_all()


def _write_part(path: Path, table: pa.Table) -> None:
    with ipc.new_stream(str(path), table.schema, options=ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)


@dataclass(frozen=True)
class Worker:
    """Computes shards, one model loaded at a time. config, folder : of the run. threads : of this process."""

    config: CorpusConfig
    folder: Path
    threads: int = 1

    @cached_property
    def _loaded(self) -> dict:
        return {}

    def __call__(self, shard: Shard) -> Done:
        """Compute a shard and write its files."""
        good = [record for record in shard.records if isinstance(record, Record)]
        errors = {record.number: record.reason for record in shard.records if isinstance(record, Unreadable)}
        config, model = self.config, self._model(shard.model)
        whole = "weights" in config.keep or any(record.linked for record in good)
        keep = ("statistics", "maps") if whole else ("statistics",)
        options = {} if config.beam == 1 else {"beam": config.beam}
        outcomes = model.traces(
            [record.source for record in good],
            [record.target for record in good],
            batch_size=config.batch_size,
            keep=keep,
            **options,
        )
        results = {}
        for record, result in zip(good, outcomes, strict=True):
            if isinstance(result, TraceStatistics):
                results[record.number] = result
            else:
                errors[record.number] = str(result)
        self._write(shard, results, errors)
        return Done(shard.place, shard.number, len(shard.records), sorted(errors.items()))

    def _model(self, name: str):
        if name not in self._loaded:
            self._loaded.clear()
            self._loaded[name] = loading.load(name, self.config.root, self.threads)
        return self._loaded[name]

    def _write(self, shard: Shard, results: dict[int, TraceStatistics], errors: dict[int, str]) -> None:
        if "weights" in self.config.keep:
            traces = {number: result.trace for number, result in results.items() if result.trace is not None}
            _write_traces(self.folder, shard.model, shard.number, traces)
        if "statistics" in self.config.keep:
            self._save(shard, "statistics", _statistics(shard.model, results))
        self._save(shard, "sentences", _sentences(shard, results, errors))

    def _save(self, shard: Shard, what: str, table: pa.Table) -> None:
        path = part(self.folder, shard.place, shard.number, what)
        storage.replace(path, lambda temporary: _write_part(temporary, table))


def _statistics(model: str, results: dict[int, TraceStatistics]) -> pa.Table:
    parts = []
    for number, result in results.items():
        columns = result.columns()
        rows = len(columns["step"])
        parts.append(columns | {"model": np.full(rows, model, dtype=object), "sentence": np.full(rows, number)})
    if not sum(len(columns["step"]) for columns in parts):  # no sentence could be read, or there is no attention
        return STATISTICS_SCHEMA.empty_table()
    return pa.table(
        [_array(np.concatenate([columns[field.name] for columns in parts]), field.type) for field in STATISTICS_SCHEMA],
        schema=STATISTICS_SCHEMA,
    )


def _array(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    if kind == _WORD:
        return pa.array(values, pa.string()).dictionary_encode()
    return (
        pa.array(values, kind) if values.dtype == object or not len(values) else pa.array(values).cast(kind, safe=False)
    )


def _error_rate(result: TraceStatistics, pair: LinkedPair) -> float | None:
    """Alignment error rate of the mean of all heads of cross-attention; None for a model without attention."""
    weights = alignment.on_words(result.trace, pair)
    if not weights:
        return None
    mean = weights[None, None] if len(weights) > 1 else next(iter(weights.values()))
    return alignment.count(alignment.argmax(mean), pair).error_rate


def _sentences(shard: Shard, results: dict[int, TraceStatistics], errors: dict[int, str]) -> pa.Table:
    rows = []
    for record in shard.records:
        row = {"model": shard.model, "sentence": record.number, "error": errors.get(record.number)}
        if isinstance(record, Record):
            row |= {"id": record.id, "source": record.source.encode("utf-8", "replace").decode()}
        if result := results.get(record.number):
            if isinstance(record, Record) and record.linked:
                row["aer"] = _error_rate(result, record.linked)
            row |= {name: getattr(result, name) for name in ("translation", "forced", "complete", "log_prob")}
            row |= {"source_tokens": len(result.source), "target_tokens": len(result.target)}
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=SENTENCES_SCHEMA)


def _write_traces(folder: Path, model: str, shard: int, traces: Mapping[int, Trace]) -> None:
    """Write the traces of a shard of a run. traces : number of the sentence -> its trace.

    The tensor `17/cross.0` is the cross map of layer 0 of line 17; all other fields of a trace, such as tokens with
    offsets, are JSON beside the tensors.
    """
    weights = {
        f"{number}/{attention.kind}.{attention.layer}": torch.from_numpy(attention.weights.copy())
        for number, trace in traces.items()
        for attention in trace.maps
    }
    beside = {str(number): trace.to_dict(weights=False) for number, trace in traces.items()}
    record = {"model": model, "sentences": sorted(traces), "traces": beside}
    checkpoints.save_tensors(_weights_folder(folder, model) / f"{shard:06}.safetensors", weights, record)


@checked
def read(folder: str | Path, model: str | None = None) -> Iterator[Trace]:
    """The traces in the folder of a run with `keep` weights, model by model in the order of the sentences.

    model : only of this model. Sentences that were skipped have none. One file is in memory at a time. ValueError for
    a folder without such a run, CheckpointError for a damaged file.

    >>> Path("dog.txt").write_text("The black dog runs.")
    >>> list(corpus.run(corpus.CorpusConfig(("en-fr/bahdanau",), "dog.txt", keep=("weights",)), "weights"))
    >>> [trace.translation for trace in corpus.read("weights")]
    ['Le chien noir court.']
    """
    folder = arguments.path("folder", folder)
    if not (folder / manifest.FILE).is_file():
        raise ValueError(f"{folder} holds no run: there is no {manifest.FILE}")
    made = read_json(folder / manifest.FILE)
    models = list(made.get("models", {}))
    if WEIGHTS_FOLDER not in made.get("settings", {}).get("keep", []):
        raise ValueError(f"{folder} has no weights; run `corpus` with --keep statistics weights")
    if model is not None and model not in models:
        raise ValueError(f"model must be one of {', '.join(models)}; got {model!r:.80}")
    return _traces(
        [path for name in (models if model is None else [model]) for path in _weight_files(folder, name, made)]
    )


def _weight_files(folder: Path, model: str, made: dict) -> list[Path]:
    """All weight files that a run wrote for a model. A missing file of a finished run is an error. made : the
    manifest."""
    if not made.get("complete"):
        return sorted(_weights_folder(folder, model).glob("*.safetensors"))
    shards = math.ceil(made["input"]["records"] / made["settings"]["shard"])
    return [_weights_folder(folder, model) / f"{shard:06}.safetensors" for shard in range(shards)]


def _traces(paths: list[Path]) -> Iterator[Trace]:
    for path in paths:
        try:
            record, tensors = checkpoints.load_metadata(path, "traces"), checkpoints.load_tensors(path)
            traces = [_trace(record["traces"][number], number, tensors) for number in sorted(record["traces"], key=int)]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = "is damaged" if path.exists() else "is missing"
            raise CheckpointError(f"{path} {problem}; run `corpus` again in a new folder") from error
        yield from traces


def _trace(values: dict, number: str, tensors: Mapping[str, torch.Tensor]) -> Trace:
    maps = [
        entry | {"weights": tensors[f"{number}/{entry['kind']}.{entry['layer']}"].numpy()} for entry in values["maps"]
    ]
    return Trace.from_dict(values | {"maps": maps})


def _weights_folder(folder: Path, model: str) -> Path:
    """The folder name in the style of the Hugging Face hub; no name there contains `--`, so every model has its own
    folder. The name of a folder of this machine may contain it, so that of a Hugging Face model is quoted as in an
    address."""
    return folder / WEIGHTS_FOLDER / (quote(model, safe="") if is_hugging_face(model) else model.replace("/", "--"))
