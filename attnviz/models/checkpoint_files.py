"""The JSON files of a checkpoint, and where checkpoints are. No torch here: a page reads these files before any model.

checkpoints/<pair>/tokenizer.json               one vocabulary for all mechanisms of a pair
checkpoints/<pair>/<mechanism>/config.json      mechanism, vocabulary size, options
                              /model.safetensors  weights in fp16; fp32 once loaded (checkpoints.py)
                              /card.json        what it was trained on, how, and what it scores; may be missing
                              /before/          these three of the finished model that a restart replaced
"""

import difflib
import json
import os
from pathlib import Path

from attnviz import arguments, storage
from attnviz.mechanisms import Config
from attnviz.models.checks import values, weights_header
from attnviz.models.names import CARD, CONFIG, RUN, WEIGHTS, ModelName
from attnviz.storage.atomic import replace

ROOT = Path(__file__).resolve().parents[2] / "checkpoints"
SETTING = "ATTNVIZ_CHECKPOINTS"


LARGEST = 16 * 2**20  # bytes of a JSON file
LISTED = 400  # characters of the names in an error


class CheckpointError(ValueError):
    """A checkpoint that is missing, incomplete or damaged; the message says which and what to do."""


def roots() -> tuple[Path, ...]:
    """The folders of checkpoints: those of ATTNVIZ_CHECKPOINTS, divided as PATH is; without it this project's own."""
    folders = os.environ.get(SETTING, "").split(os.pathsep)
    return tuple(Path(folder) for folder in folders if folder) or (ROOT,)


def root_of(name: str, root: Path | None = None) -> Path:
    """`root`, or without one the first of `roots` that has the checkpoint `name`; the first of all where none has."""
    if root is not None:
        return Path(root)
    folders = roots()
    return next((folder for folder in folders if os.path.isfile(folder / name / CONFIG)), folders[0])


def names(root: Path | None = None) -> list[str]:
    """Names (`pair/mechanism`) of the checkpoints below a folder, or of all `roots`, damaged ones included, in a stable
    order."""
    folders = roots() if root is None else (Path(root),)
    there = {
        path.parent.relative_to(folder).as_posix() for folder in folders for path in folder.glob("*/*/config.json")
    }
    return sorted(there)


def available(root: str | Path | None = None) -> list[str]:
    """`names` below a folder that a caller names. ValueError for what no folder can be called."""
    return names(None if root is None else arguments.path("root", root))


def missing(name: str, root: Path | None = None) -> CheckpointError:
    """The error for a name that no checkpoint has: where it was searched, what is there, and what to do."""
    there, folders = names(root), roots() if root is None else (Path(root),)
    similar = difflib.get_close_matches(name, there, n=1, cutoff=0.8)
    guess = f"; did you mean {similar[0]}" if similar else ""
    return CheckpointError(
        f"no checkpoint {name!r:.80} in {', '.join(map(short, folders))}{guess}; available: "
        f"{_listed(there)}; another folder is given as root, or in {SETTING}"
    )


def _listed(there: list[str]) -> str:
    """Names, as many as a sentence takes."""
    text = ", ".join(there) or "none"
    return text if len(text) <= LISTED else f"{text[:LISTED].rpartition(',')[0]}, … ({len(there)} in all)"


def read_json(path: Path) -> dict:
    try:
        content = storage.parse_json(storage.read(path, LARGEST))
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
        raise missing(name, root)
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
    """The card, cleaned by `values.card`. Raises CheckpointError.

    A model without one whose training run is there has not been trained to its end: {"unfinished": {"epochs": how many
    it had, "of": how many it was to have}}. Otherwise {}.
    """
    path = Path(root) / name / CARD
    if path.exists():
        return values.card(read_json(path))
    run = Path(root) / name / RUN
    return {"unfinished": _progress(run)} if os.path.isfile(run) else {}


def _progress(run: Path) -> dict[str, int]:
    """How far a saved training run has come; {} where it does not say."""
    try:
        said = json.loads(weights_header.metadata(run)["json"])
        return {"epochs": len(said["history"]), "of": int(said["settings"]["epochs"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def unfinished(card: dict) -> str:
    """What a card says of a run that was stopped, such as `unfinished: 3 of 11 epochs`; "" of a finished model."""
    progress = card.get("unfinished")
    if progress is None:
        return ""
    counts = [progress.get(key) if isinstance(progress, dict) else None for key in ("epochs", "of")]
    return "unfinished" + (": {} of {} epochs".format(*counts) if None not in counts else "")


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
    return arguments.cut(text, 200)


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
        return storage.sha256(path)
    except storage.NotRegularError as error:
        raise unreadable(path, error) from None
