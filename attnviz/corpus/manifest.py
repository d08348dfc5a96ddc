"""The input and settings of a corpus run, recorded in manifest.json so that the run can be resumed.

The file of sentences and the models must stay as they are while the run is at work. It reads both several times, hours
apart. Without a check, two models could read different sentences under one hash.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import attnviz
from attnviz import arguments, storage
from attnviz.arguments import Checked
from attnviz.data.records import Record, Unreadable, count, read
from attnviz.models import batches, checkpoint_files, checkpoints
from attnviz.models.checkpoint_files import CheckpointError, read_json
from attnviz.models.names import HuggingFaceName, ModelName, is_hugging_face, without_prefix
from attnviz.models.translator import check_beam
from attnviz.storage import folders

KEEP = ("statistics", "weights")
SHARD = 512  # sentences that are computed and written together, whatever the number of workers
SMALLEST = 32  # sentences of a shard, of whatever file
SHARDS = 8  # of a file that is too small for eight of SHARD
FILE, TASK = "manifest.json", "run"
# 2: sentences.parquet has the column aer; 3: parts are in Arrow's format; 4: `--` in folders of weights;
# 5: tokens beside the weights
FORMAT = 5
PACKAGES = ("torch", "numpy", "pyarrow", "safetensors", "tokenizers")
_REMEDY = "nothing was computed from the new content. Put it back and continue with --resume, or use a new folder"


@dataclass(frozen=True)
class CorpusConfig(Checked):
    """models : names, see `attnviz.load`. input : a file, see data/records. keep : some of KEEP. root : of models.

    batch_size : sentences that go through a model together. beam : for sentences without a target. shard : sentences
    that are written together; None chooses by the size of the file. Raises ValueError.

    >>> corpus.CorpusConfig(models=("en-fr/bahdanau", "en-fr/transformer"), input="sentences.txt", beam=4).keep
    ('statistics',)
    """

    models: tuple[str, ...]
    input: str | Path
    batch_size: int = batches.BATCH
    beam: int = 1
    keep: tuple[str, ...] = ("statistics",)
    root: str | Path | None = None
    shard: int | None = None

    @property
    def size(self) -> int:
        """`shard`. ValueError if it is not yet chosen."""
        if self.shard is None:
            raise ValueError("shard must be chosen by the size of the file, see `shard_of`")
        return self.shard

    def __post_init__(self):
        super().__post_init__()
        for name in ("input", "root"):
            if getattr(self, name) is not None:
                arguments.path(name, getattr(self, name))
        if not self.models or len(set(self.models)) != len(self.models):
            raise ValueError(f"models must be different names, at least one; got {', '.join(self.models) or 'none'}")
        if not self.keep or not set(self.keep) <= set(KEEP):
            raise ValueError(f"keep must be some of {', '.join(KEEP)}; got {', '.join(self.keep) or 'nothing'}")
        check_beam(self.beam)
        batches.check_size(self.batch_size)
        if self.shard is not None:
            batches.check_size(self.shard)


def shard_of(records: int) -> int:
    """The shard size for a file with this number of sentences. Shards of 512 are fastest; shards of 128 take a ninth
    longer. But with only one or two shards workers would be idle, no progress would show, and Ctrl-C would lose
    everything."""
    return min(SHARD, max(SMALLEST, -(-records // SHARDS)))


class InputChanged(ValueError):
    """The file of sentences, or a model, has changed since the run began."""


@dataclass
class Sentences:
    """A file of sentences as it was at the beginning of a run. records : their number, readable or not.

    state : size, modification time and place on the disk, which show without reading whether the file may have changed.
    """

    path: Path
    sha256: str
    records: int
    state: tuple

    @classmethod
    def of_file(cls, path: Path) -> "Sentences":
        """Raises ValueError and OSError as `attnviz.data.records.read`, InputChanged when it changes meanwhile."""
        storage.check_file(path)  # it is read several times, so a pipe will not do
        state, digest = storage.stamp(path), storage.sha256(path)
        if not any(isinstance(record, Record) and record.source.strip() for record in read(path)):
            raise ValueError(f"{path} must hold at least one sentence; got none{_first_problem(path)}")
        sentences = cls(path, digest, count(path), state)
        sentences.check()
        return sentences

    def shards(self, size: int) -> Iterator[list[Record | Unreadable]]:
        """Lists of `size` records in order. The file is checked after each list is read, before the list is yielded."""
        self.check(whole=True)
        records = read(self.path)
        while chunk := self._next(records, size):
            yield chunk

    def _next(self, records: Iterator[Record | Unreadable], size: int) -> list[Record | Unreadable]:
        try:
            chunk = list(islice(records, size))
        except (ValueError, OSError):  # a file that was cut looks damaged
            self.check(whole=True)
            raise
        self.check()
        return chunk

    def check(self, whole: bool = False) -> None:
        """InputChanged if the content of the file has changed. whole : compare the content even if the state is
        unchanged."""
        try:
            state = storage.stamp(self.path)
            if not whole and state == self.state:
                return
            changed = storage.sha256(self.path) != self.sha256
        except OSError as error:
            self._refuse((error.strerror or str(error)).lower())
        if changed:
            self._refuse("its content is another")
        self.state = state

    def _refuse(self, reason: str) -> None:
        raise InputChanged(f"{self.path} changed while the run was at work: {reason}; {_REMEDY}") from None


def _first_problem(path: Path) -> str:
    """The error of the first unreadable line; "" if all lines can be read."""
    problem = next((record for record in read(path) if isinstance(record, Unreadable)), None)
    return f": line {problem.number}: {problem.reason}" if problem else ""


def model_files(config: CorpusConfig) -> dict[str, dict]:
    """Fingerprints of the files of each model. Raises CheckpointError."""
    return {
        name: _files_of(name, checkpoint_files.root_of(name, None if config.root is None else Path(config.root)))
        for name in config.models
    }


def check_models(config: CorpusConfig, begun: dict[str, dict]) -> None:
    """InputChanged unless all models have the files that the run began with. begun : the fingerprints of `models` at
    that time."""
    now = model_files(config)
    for name in begun:
        if now[name] != begun[name]:
            raise InputChanged(f"the files of {name} changed while the run was at work; begin again in a new folder")


def _files_of(name: str, root: Path) -> dict:
    if is_hugging_face(name):
        from attnviz.models.huggingface.folder_rules import FILES, folder

        place = folder(HuggingFaceName(without_prefix(name)).place)  # of a model on the hub: where it was downloaded to
        files = sorted({path for pattern in FILES for path in place.glob(pattern)})
        return {"files_sha256": {path.name: checkpoints.sha256(path) for path in files}}
    return {
        "weights_sha256": checkpoint_files.fingerprint(name, root),
        "tokenizer_sha256": checkpoints.fingerprint_tokenizer(ModelName.parse(name).pair, root),
    }


def contents(config: CorpusConfig, sentences: Sentences) -> dict:
    """Everything that the files of a run depend on, and the number of records in its input."""
    chosen = {name: value for name, value in asdict(config).items() if name not in ("models", "input", "root")}
    chosen["keep"] = sorted(chosen["keep"])
    libraries = [*PACKAGES, *["transformers"] * any(map(is_hugging_face, config.models))]
    return {
        "format": FORMAT,
        "input": {"name": sentences.path.name, "sha256": sentences.sha256, "records": sentences.records},
        "models": model_files(config),
        "settings": json.loads(json.dumps(chosen)),
        "versions": {"attnviz": attnviz.__version__} | {name: version(name) for name in libraries},
    }


def begin(folder: Path, made: dict, resume: bool) -> None:
    """Write the manifest into an empty or new folder, or one where a run has computed nothing. To resume, compare it
    with the one there. Raises ValueError."""
    path = folder / FILE
    if not resume:
        if folder.exists() and not _is_free(folder):
            raise ValueError(f"{folder} is not empty; give a new folder, or --resume to continue the run in it")
        write(folder, made | {"complete": False})
        return
    if not path.is_file():
        raise ValueError(f"{folder} holds no run to resume: there is no {FILE}")
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
        apart = [name for name in made if earlier[name] != made[name]]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged; begin again in a new folder") from None
    if apart:
        raise ValueError(f"{folder} holds a run with other {', '.join(apart)}; begin again in a new folder")


def _is_free(folder: Path) -> bool:
    """Is a folder empty, but for the manifest of a run that stopped before it had computed anything?"""
    if not folder.is_dir() or any(path.name not in (FILE, folders.lock_name(TASK)) for path in folder.iterdir()):
        return False
    try:
        manifest = read_json(folder / FILE) if (folder / FILE).exists() else {"complete": False}
    except CheckpointError:
        return False
    return manifest.get("complete") is False


def write(folder: Path, made: dict) -> None:
    text = json.dumps(made, indent=1) + "\n"
    storage.replace(folder / FILE, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def complete(folder: Path) -> bool:
    return bool(json.loads((folder / FILE).read_text(encoding="utf-8"))["complete"])
