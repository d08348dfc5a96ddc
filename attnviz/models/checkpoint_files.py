"""The JSON files of a checkpoint: their places, their contents, and the runs and teachers that its weights come from.
No torch here: a page reads these files before any model.

checkpoints/<pair>/tokenizer.json               one vocabulary for all mechanisms of a pair
checkpoints/<pair>/<mechanism>/config.json      mechanism, vocabulary size, options
                              /model.safetensors  weights in fp16; fp32 once loaded (checkpoints.py)
                              /card.json        what it was trained on, how, and what it scores; may be missing
                              /before/          these three of the finished model that a restart replaced
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from attnviz import arguments, storage
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_values, weights_header
from attnviz.models.names import CARD, CONFIG, RUN, WEIGHTS, ModelName
from attnviz.storage import replace

_PACKAGE = Path(__file__).resolve().parents[1]
# The installed package holds the checkpoints, without the weights of some. In the project they lie beside the package.
IS_INSTALLED = (_PACKAGE / "checkpoints").is_dir()
ROOT = (_PACKAGE if IS_INSTALLED else _PACKAGE.parent) / "checkpoints"
SETTING, DATA, MIRROR = "ATTNVIZ_CHECKPOINTS", "ATTNVIZ_DATA", "ATTNVIZ_MIRROR"
LARGEST = 16 * 2**20  # bytes of a JSON file
LISTED = 400  # characters of the names in an error
_CURVE = ("epoch", "train_loss")  # of each pass, beside its scores on validation
_BEFORE = ("start", "teachers")
_KEPT = ("command", "settings", "data", "epochs", "seconds", "weights_sha256")


class CheckpointError(ValueError):
    """A checkpoint that is missing, incomplete or damaged; the message says which and what to do."""


def roots() -> tuple[Path, ...]:
    """The folders of checkpoints: those of ATTNVIZ_CHECKPOINTS, separated like PATH; by default this project's own.

    For an installed package, the user's data folder comes first, and commands train there.
    """
    folders = os.environ.get(SETTING, "").split(os.pathsep)
    own = (data_folder() / "checkpoints", ROOT) if IS_INSTALLED else (ROOT,)
    return tuple(Path(folder) for folder in folders if folder) or own


def data_folder() -> Path:
    """Where an installed package puts downloads and trained models: the folder of ATTNVIZ_DATA, or the system's user
    data folder."""
    import platformdirs  # only an installed package needs it

    return Path(os.environ.get(DATA) or platformdirs.user_data_dir("attnviz", appauthor=False))


def root_of(name: str, root: Path | None = None) -> Path:
    """`root`; if None, the first of `roots` that has the checkpoint `name`, or the first of `roots` if none has it."""
    if root is not None:
        return Path(root)
    folders = roots()
    trained = name.partition("@")[0]  # of a moment, the model beside which it is packed
    return next((folder for folder in folders if os.path.isfile(folder / trained / CONFIG)), folders[0])


def names(root: Path | None = None) -> list[str]:
    """Names (`pair/mechanism`) of the checkpoints below a folder, or of all `roots`, damaged ones included, in a stable
    order."""
    folders = roots() if root is None else (Path(root),)
    pairs = [pair for folder in folders for pair in _entries(folder)]
    models = (model for pair in pairs for model in _entries(pair) if os.path.exists(os.path.join(model, CONFIG)))
    return sorted({"/".join(model.split(os.sep)[-2:]) for model in models})


def _entries(folder: str | Path) -> list[str]:
    """The paths of the folders in a folder; [] if it cannot be read. The page calls this at every edit, and Path.glob
    takes several times as long."""
    try:
        return [entry.path for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return []


def available(root: str | Path | None = None) -> list[str]:
    """`names` below a folder given by a caller. ValueError for an invalid folder name."""
    return names(None if root is None else arguments.path("root", root))


def missing(name: str, root: Path | None = None) -> CheckpointError:
    """The error for an unknown checkpoint name: the folders searched, the names found, and what to do."""
    existing, folders = names(root), roots() if root is None else (Path(root),)
    mechanisms = {Path(entry).name: entry for entry in reversed(existing)}
    guess = arguments.guess(name, existing) or arguments.guess(name, mechanisms)
    return CheckpointError(
        f"no checkpoint {name!r:.80} in {', '.join(map(short, folders))}{guess}; available: "
        f"{_listed(existing)}; another folder is given as root, or in {SETTING}"
    )


def _listed(existing: list[str]) -> str:
    """Names for a sentence, shortened if there are many."""
    text = ", ".join(existing) or "none"
    return text if len(text) <= LISTED else f"{text[:LISTED].rpartition(',')[0]}, … ({len(existing)} in all)"


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
    """The config of the checkpoint `name`. Raises CheckpointError."""
    if not _is_folder(name, root):
        raise missing(name, root)
    content = read_json(Path(root) / name / CONFIG)
    try:
        return checkpoint_values.config(content)
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

    A model without a card but with a training run is unfinished: {"unfinished": {"epochs": finished, "of": planned}}.
    Otherwise {}.
    """
    path = Path(root) / name / CARD
    if path.exists():
        return checkpoint_values.card(read_json(path))
    run = Path(root) / name / RUN
    return {"unfinished": _progress(run)} if os.path.isfile(run) else {}


def _progress(run: Path) -> dict[str, int]:
    """The progress of a saved training run; {} if not recorded."""
    try:
        record = json.loads(weights_header.metadata(run)["json"])
        return {"epochs": len(record["history"]), "of": int(record["settings"]["epochs"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def unfinished(card: dict) -> str:
    """The note on a card of a stopped run, such as `unfinished: 3 of 11 epochs`; "" for a finished model."""
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
    """The path from `checkpoints` on, if it is below a folder of that name, so that a reader recognises it."""
    path = Path(path)
    return path.relative_to(ROOT.parent).as_posix() if path.is_relative_to(ROOT.parent) else str(path)


def weights(name: str, root: Path = ROOT) -> Path:
    """The file of a checkpoint's weights. For a package installed without them: where `fetch` puts them."""
    beside = Path(root) / name / WEIGHTS
    if not IS_INSTALLED or Path(root) != ROOT or beside.is_file():
        return beside
    return data_folder() / "fetched" / name / WEIGHTS


def is_to_fetch(name: str, root: Path = ROOT) -> bool:
    """Are the weights of a checkpoint neither in the installed package nor fetched yet?"""
    path = weights(name, root)
    return not path.is_relative_to(root) and not path.is_file()


def fetch(name: str, root: Path = ROOT) -> Path:
    """`weights`, downloaded first if the package was installed without them. They come from the address of
    ATTNVIZ_MIRROR, and their SHA-256 must be that of the card. Raises CheckpointError."""
    path = weights(name, root)
    if not is_to_fetch(name, root):
        return path
    mirror, sha256 = os.environ.get(MIRROR, "").strip().rstrip("/"), read_card(name, root).get("weights_sha256")
    if not mirror or not sha256:
        raise CheckpointError(
            f"the weights of {name} are not part of the installed package; set {MIRROR} to the address of a copy of "
            f"the project's folder checkpoints, such as https://example.org/checkpoints, or {SETTING} to that folder"
        )
    if not mirror.startswith(("https://", "http://")):
        raise CheckpointError(f"{MIRROR} must begin with https:// or http://; got {mirror!r:.200}")
    _retrieve(f"{mirror}/{name}/{WEIGHTS}", sha256, path)
    return path


def _retrieve(url: str, sha256: str, path: Path) -> None:
    """Fetch a file. CheckpointError if that fails or its SHA-256 differs; then no file remains."""
    import pooch  # 0.1 s, and only this needs them
    import requests

    pooch.get_logger().setLevel("WARNING")
    bar = sys.stderr is not None and sys.stderr.isatty()
    try:
        pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=path.name, path=path.parent, progressbar=bar)
    except requests.HTTPError as error:
        reason = f"the server answers {brief(error)}"
    except requests.RequestException as error:
        offline = isinstance(error, requests.ConnectionError | requests.Timeout)
        reason = "no server answers there; is this machine connected to the network?" if offline else brief(error)
    except ValueError:  # of pooch alone, for another hash
        reason = "the file there has another SHA-256 than the card of the model says, so nothing is kept"
    except OSError as error:
        reason = f"{path.parent}: {error.strerror or brief(error)}; set {DATA} to a folder that can be written to"
    else:
        return
    raise CheckpointError(f"cannot fetch {url}: {reason}")


def fingerprint(name: str, root: Path = ROOT) -> str:
    """SHA-256 of a checkpoint's weights; taken from the card if they are not yet fetched."""
    return read_card(name, root)["weights_sha256"] if is_to_fetch(name, root) else sha256(weights(name, root))


def sha256(path: Path) -> str:
    """Of a file. Raises CheckpointError."""
    try:
        return storage.sha256(path)
    except storage.NotRegularError as error:
        raise unreadable(path, error) from None


def begun(folder: Path | None) -> dict:
    """The entry `start` for the card of a run that started from the checkpoint in `folder` (root/pair/mechanism).

    It holds what the card of that checkpoint says of its own training, which may have a `start` too. {} for a run that
    started from random weights (None). Raises CheckpointError.
    """
    if folder is None:
        return {}
    card = read_card(*locate(folder))
    return {"start": _training_fields(card) | {"history": _curve(card.get("history"))}}


def taught(folders: Sequence[Path]) -> dict:
    """The entry `teachers` for the card of a run that learnt from the checkpoints in `folders`.

    It holds what the card of each says of its training. {} without teachers. Raises CheckpointError.
    """
    cards = [read_card(*locate(folder)) for folder in folders]
    return {"teachers": [_training_fields(card) | {"best": card.get("best")} for card in cards]} if folders else {}


def _training_fields(card: dict) -> dict:
    return {key: card.get(key) for key in _KEPT} | {key: card[key] for key in _BEFORE if key in card}


def _curve(history: list | None) -> list[dict]:
    """The scores after each epoch, without times and memory."""
    passes = [entry for entry in history if isinstance(entry, dict)] if isinstance(history, list) else []
    return [{key: value for key, value in entry.items() if key in _CURVE or key.startswith("val_")} for entry in passes]


def teachers(card: dict) -> list[dict]:
    """The entries of a card about its teachers."""
    cards = card.get("teachers")
    return [teacher for teacher in cards if isinstance(teacher, dict)] if isinstance(cards, list) else []


def runs(card: dict) -> list[dict]:
    """The entries of a card about each run, the first run first; the card itself is the last."""
    cards = [card]
    while isinstance(start := cards[0].get("start"), dict) and start:
        cards.insert(0, start)
    return cards
