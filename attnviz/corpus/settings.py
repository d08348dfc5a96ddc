"""What a run over a corpus is asked for, and manifest.json, which says it again with hashes and versions."""

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import attnviz
from attnviz import atomic
from attnviz.models import batches, checkpoints
from attnviz.models.names import ModelName

KEEP = ("statistics", "weights")
SHARD = 512  # sentences that are computed and written together, whatever the number of workers
MANIFEST = "manifest.json"
FORMAT = 1
PACKAGES = ("torch", "numpy", "pyarrow", "safetensors", "tokenizers")


@dataclass(frozen=True)
class Settings:
    """models : names, see `attnviz.load`. input : a file, see sources.py. keep : some of KEEP. root : of checkpoints.

    batch_size : sentences that go through a model together. beam : for what is not forced. Raises ValueError.
    """

    models: tuple[str, ...]
    input: str
    batch_size: int = batches.BATCH
    beam: int = 1
    keep: tuple[str, ...] = ("statistics",)
    root: str | None = None
    shard: int = SHARD

    def __post_init__(self):
        if not self.models or len(set(self.models)) != len(self.models):
            raise ValueError(f"models must be different names, at least one; got {', '.join(self.models) or 'none'}")
        if not self.keep or not set(self.keep) <= set(KEEP):
            raise ValueError(f"keep must be some of {', '.join(KEEP)}; got {', '.join(self.keep) or 'nothing'}")
        batches.check_size(self.batch_size)
        batches.check_size(self.shard)


def manifest(settings: Settings, records: int) -> dict:
    """All that the files of a run depend on, and the number of records in its input."""
    root = Path(settings.root) if settings.root else checkpoints.ROOT
    chosen = {name: value for name, value in asdict(settings).items() if name not in ("models", "input", "root")}
    return {
        "format": FORMAT,
        "input": {"name": Path(settings.input).name, "sha256": _sha256(Path(settings.input)), "records": records},
        "models": {name: _model(name, root) for name in settings.models},
        "settings": json.loads(json.dumps(chosen)),
        "versions": {"attnviz": attnviz.__version__} | {name: version(name) for name in PACKAGES},
    }


def _model(name: str, root: Path) -> dict:
    if ":" in name:  # of the transformers library: its files are not ours to know
        return {}
    return {
        "weights_sha256": checkpoints.fingerprint(name, root),
        "tokenizer_sha256": checkpoints.fingerprint_tokenizer(ModelName.parse(name).pair, root),
    }


def begin(folder: Path, made: dict, resume: bool) -> None:
    """Write the manifest into an empty or new folder; to resume, compare it with the one there. Raises ValueError."""
    path = folder / MANIFEST
    if not resume:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ValueError(f"{folder} is not empty; give a new folder, or --resume to continue the run in it")
        write(folder, made | {"complete": False})
        return
    if not path.is_file():
        raise ValueError(f"{folder} holds no run to resume: there is no {MANIFEST}")
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
        apart = [name for name in made if there[name] != made[name]]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged; begin again in a new folder") from None
    if apart:
        raise ValueError(f"{folder} holds a run with other {', '.join(apart)}; begin again in a new folder")


def write(folder: Path, made: dict) -> None:
    text = json.dumps(made, indent=1) + "\n"
    atomic.replace(folder / MANIFEST, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def complete(folder: Path) -> bool:
    return bool(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["complete"])


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
