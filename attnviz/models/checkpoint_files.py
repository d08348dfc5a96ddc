"""The JSON files of a checkpoint, and where checkpoints are. No torch here: a page reads these files before any model.

checkpoints/<pair>/tokenizer.json               one vocabulary for all mechanisms of a pair
checkpoints/<pair>/<mechanism>/config.json      mechanism, vocabulary size, options
                              /model.safetensors  weights in fp16; fp32 once loaded (checkpoints.py)
                              /card.json        what it was trained on, how, and what it scores; may be missing
                              /before/          these three of the finished model that a restart replaced
"""

import hashlib
import json
import os
from pathlib import Path

from attnviz import arguments
from attnviz.mechanisms import Config
from attnviz.models.checks import values
from attnviz.models.names import CARD, CONFIG, WEIGHTS, ModelName
from attnviz.storage import json_text, regular_files
from attnviz.storage.atomic import replace

ROOT = Path(__file__).resolve().parents[2] / "checkpoints"


LARGEST = 16 * 2**20  # bytes of a JSON file


class CheckpointError(ValueError):
    """A checkpoint that is missing, incomplete or damaged; the message says which and what to do."""


def names(root: Path = ROOT) -> list[str]:
    """Names (`pair/mechanism`) of the checkpoints below a folder, damaged ones included, in a stable order."""
    return sorted(path.parent.relative_to(root).as_posix() for path in Path(root).glob("*/*/config.json"))


def available(root: str | Path | None = None) -> list[str]:
    """`names` below a folder that a caller names. ValueError for what no folder can be called."""
    return names(ROOT if root is None else arguments.path("root", root))


def read_json(path: Path) -> dict:
    try:
        content = json_text.parse(regular_files.read(path, LARGEST))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{short(path)} must hold a JSON object; got {type(content).__name__}")
    return content


def write_json(path: Path, content: dict) -> None:
    replace(path, lambda temporary: temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8"))


def locate(folder: Path) -> tuple[str, Path]:
    """A checkpoint's folder -> its name (`pair/mechanism`) and the folder of checkpoints."""
    folder = Path(folder).resolve()
    return str(ModelName(folder.parent.name, folder.name)), folder.parent.parent


def read_config(name: str, root: Path = ROOT) -> Config:
    """What the checkpoint `name` was built from. Raises CheckpointError."""
    if not _is_folder(name, root):
        raise CheckpointError(f"no checkpoint {name!r:.80}; available: {', '.join(names(root)) or 'none'}")
    content = read_json(Path(root) / name / CONFIG)
    try:
        return values.config(content)
    except (TypeError, ValueError) as error:  # TypeError: a value of another type
        raise no_model(name, error, root) from None


def _is_folder(name: str, root: Path) -> bool:
    try:
        named = ModelName.parse(name)
    except ValueError:
        return False
    return not {".", ".."} & {named.pair, named.mechanism} and os.path.isdir(Path(root) / name)


def read_card(name: str, root: Path = ROOT) -> dict:
    """The card, cleaned by `values.card`; {} when there is none. Raises CheckpointError."""
    path = Path(root) / name / CARD
    return values.card(read_json(path)) if path.exists() else {}


def no_model(name: str, error: Exception, root: Path = ROOT) -> CheckpointError:
    return CheckpointError(f"{short(Path(root) / name / 'config.json')} does not describe a model: {brief(error)}")


def unreadable(path: Path, error: Exception) -> CheckpointError:
    if isinstance(error, FileNotFoundError):
        return CheckpointError(f"{short(path)} is missing; restore it or train the model again")
    reason = "not a file" if Path(path).is_dir() else getattr(error, "strerror", None) or brief(error)
    return CheckpointError(f"{short(path)} is damaged ({reason}); restore it or train the model again")


def brief(error: Exception) -> str:
    """The message of an error in one line of at most 200 characters. (Messages of torch include a stack trace.)"""
    text = " ".join((str(error).splitlines() or [type(error).__name__])[0].split())
    return text if len(text) <= 200 else f"{text[:199]}…"


def short(path: Path) -> str:
    """The path from `checkpoints` on, if it is below a folder of that name; a reader of the page recognises it."""
    path = Path(path)
    return path.relative_to(ROOT.parent).as_posix() if path.is_relative_to(ROOT.parent) else str(path)


def fingerprint(name: str, root: Path = ROOT) -> str:
    """SHA-256 of a checkpoint's weights."""
    return sha256(Path(root) / name / WEIGHTS)


def sha256(path: Path) -> str:
    """Of a file. Raises CheckpointError."""
    try:
        regular_files.check(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except regular_files.NotRegularError as error:
        raise unreadable(path, error) from None
