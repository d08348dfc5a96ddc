"""What a run reads must stay as it is while the run is at work: its file of sentences, and its models.

A run reads both several times, hours apart. Without a check, two models could get other sentences under one hash.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attnviz import storage
from attnviz.corpus.config import CorpusConfig
from attnviz.data.records import Record, Unreadable, count, read
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.names import HuggingFaceName, ModelName, is_hugging_face, without_prefix

_REMEDY = "nothing was computed from the new content. Put it back and continue with --resume, or use a new folder"


class InputChanged(ValueError):
    """The file of sentences, or a model, is no longer what the run began with."""


@dataclass
class Sentences:
    """A file of sentences as it was at the beginning of a run. records : their number, readable or not.

    state : size, time and place on the disk, which tell without reading whether the file can have changed.
    """

    path: Path
    sha256: str
    records: int
    state: tuple

    @classmethod
    def of(cls, path: Path) -> "Sentences":
        """Raises ValueError and OSError as `attnviz.data.records.read`, InputChanged when it changes meanwhile."""
        storage.check_file(path)  # it is read several times, so a pipe will not do
        state, digest = storage.stamp(path), storage.sha256(path)
        if not any(isinstance(record, Record) and record.source.strip() for record in read(path)):
            raise ValueError(f"{path} must hold at least one sentence; got none")
        sentences = cls(path, digest, count(path), state)
        sentences.check()
        return sentences

    def shards(self, size: int) -> Iterator[list[Record | Unreadable]]:
        """Lists of `size` records in order. The file is checked after every list is read, before it is given."""
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
        """InputChanged if the file has other content. whole : compare the content, whatever its state says."""
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


def models(config: CorpusConfig) -> dict[str, dict]:
    """What identifies the files of each model. Raises CheckpointError."""
    return {name: _model(name, checkpoint_files.root_of(name, config.root)) for name in config.models}


def check_models(config: CorpusConfig, begun: dict[str, dict]) -> None:
    """InputChanged unless all models have the files that the run began with. begun : of `models`."""
    now = models(config)
    for name in begun:
        if now[name] != begun[name]:
            raise InputChanged(f"the files of {name} changed while the run was at work; begin again in a new folder")


def _model(name: str, root: Path) -> dict:
    if is_hugging_face(name):  # the files of a folder; nothing of a model on the hub
        files = HuggingFaceName(without_prefix(name)).files(root)
        return {"files_sha256": {path.name: checkpoints.sha256(path) for path in files}}
    return {
        "weights_sha256": checkpoints.fingerprint(name, root),
        "tokenizer_sha256": checkpoints.fingerprint_tokenizer(ModelName.parse(name).pair, root),
    }
