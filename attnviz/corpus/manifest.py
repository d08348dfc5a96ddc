"""manifest.json: the settings of a run over a corpus, with hashes and versions, so that it can be resumed."""

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import attnviz
from attnviz.corpus import inputs
from attnviz.corpus.config import CorpusConfig
from attnviz.corpus.inputs import Sentences
from attnviz.models.checkpoint_files import CheckpointError, read_json
from attnviz.storage import atomic, folders

FILE, TASK = "manifest.json", "run"
# 2: sentences.parquet has the column aer; 3: parts are in Arrow's format; 4: `--` in folders of weights;
# 5: tokens beside the weights
FORMAT = 5
PACKAGES = ("torch", "numpy", "pyarrow", "safetensors", "tokenizers")


def of(config: CorpusConfig, sentences: Sentences) -> dict:
    """Everything that the files of a run depend on, and the number of records in its input."""
    chosen = {name: value for name, value in asdict(config).items() if name not in ("models", "input", "root")}
    chosen["keep"] = sorted(chosen["keep"])
    return {
        "format": FORMAT,
        "input": {"name": sentences.path.name, "sha256": sentences.sha256, "records": sentences.records},
        "models": inputs.models(config),
        "settings": json.loads(json.dumps(chosen)),
        "versions": {"attnviz": attnviz.__version__} | {name: version(name) for name in PACKAGES},
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
        there = json.loads(path.read_text(encoding="utf-8"))
        apart = [name for name in made if there[name] != made[name]]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged; begin again in a new folder") from None
    if apart:
        raise ValueError(f"{folder} holds a run with other {', '.join(apart)}; begin again in a new folder")


def _is_free(folder: Path) -> bool:
    """Is a folder empty, but for the manifest of a run that stopped before it had computed anything?"""
    if not folder.is_dir() or any(path.name not in (FILE, folders.lock_name(TASK)) for path in folder.iterdir()):
        return False
    try:
        there = read_json(folder / FILE) if (folder / FILE).exists() else {"complete": False}
    except CheckpointError:
        return False
    return there.get("complete") is False


def write(folder: Path, made: dict) -> None:
    text = json.dumps(made, indent=1) + "\n"
    atomic.replace(folder / FILE, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def complete(folder: Path) -> bool:
    return bool(json.loads((folder / FILE).read_text(encoding="utf-8"))["complete"])
