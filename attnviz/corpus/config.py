"""The settings of a run over a corpus."""

from dataclasses import dataclass
from pathlib import Path

from attnviz import arguments
from attnviz.arguments import Checked
from attnviz.models.tracing import batches
from attnviz.models.translator import check_beam

KEEP = ("statistics", "weights")
SHARD = 512  # sentences that are computed and written together, whatever the number of workers
SMALLEST = 32  # sentences of a shard, of whatever file
SHARDS = 8  # of a file that is too small for eight of SHARD


@dataclass(frozen=True)
class CorpusConfig(Checked):
    """models : names, see `attnviz.load`. input : a file, see data/records. keep : some of KEEP. root : of models.

    batch_size : sentences that go through a model together. beam : for sentences without a target. shard : sentences
    that are written together; None chooses by the size of the file. Raises ValueError.
    """

    models: tuple[str, ...]
    input: str | Path
    batch_size: int = batches.BATCH
    beam: int = 1
    keep: tuple[str, ...] = ("statistics",)
    root: str | Path | None = None
    shard: int | None = None

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
    """Sentences of a shard of a file with so many. Shards of 512 are the fastest: those of 128 take a ninth longer. But
    a file of one or two shards would leave workers idle, show no progress, and lose all on Ctrl-C."""
    return min(SHARD, max(SMALLEST, -(-records // SHARDS)))
