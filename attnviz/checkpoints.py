"""The only file that reads or writes weights: safetensors and JSON, never pickle.

    checkpoints/<pair>/tokenizer.json               one vocabulary for all mechanisms of a pair
    checkpoints/<pair>/<mechanism>/config.json      mechanism, vocabulary size, options
                                  /model.safetensors  weights in fp16; fp32 once loaded
                                  /card.json        what it was trained on, how, and what it scores; may be missing
"""

import hashlib
import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from attnviz.models import Config, build
from attnviz.text import Text

ROOT = Path(__file__).resolve().parent.parent / "checkpoints"


class CheckpointError(ValueError):
    """A checkpoint that is missing, incomplete or damaged; the message says which and what to do."""


def names(root: Path = ROOT) -> list[str]:
    """Names (`pair/mechanism`) of the checkpoints below a folder, damaged ones included, in a stable order."""
    return sorted(path.parent.relative_to(root).as_posix() for path in Path(root).glob("*/*/config.json"))


def read_json(path: Path) -> dict:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # ValueError: bad JSON, or bytes that are not UTF-8
        raise _unreadable(path, error) from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{_short(path)} must hold a JSON object; got {type(content).__name__}")
    return content


def write_json(path: Path, content: dict) -> None:
    _replace(path, lambda temporary: temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8"))


def load_model(name: str, root: Path = ROOT) -> tuple[nn.Module, dict]:
    """The trained model in evaluation mode, fp32, and its config. Raises CheckpointError."""
    folder = Path(root) / name
    if not folder.is_dir():
        raise CheckpointError(f"no checkpoint {name!r}; available: {', '.join(names(root)) or 'none'}")
    config = _config(folder)
    try:
        model = build(config)
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # torch raises them all for impossible sizes
        raise _no_model(folder, error) from None
    weights = {key: value.float() for key, value in load_tensors(folder / "model.safetensors").items()}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"{name}: the weights do not fit config.json: {reason}") from None
    return model.eval().requires_grad_(False), config.to_dict()


def read_card(name: str, root: Path = ROOT) -> dict:
    """What the card says; nothing when there is none. Raises CheckpointError."""
    path = Path(root) / name / "card.json"
    return read_json(path) if path.exists() else {}


def check(name: str, root: Path = ROOT) -> Config:
    """The config of a checkpoint, once its files are there and can be opened. Raises CheckpointError."""
    folder = Path(root) / name
    config = _config(folder)
    _header(folder / "model.safetensors")
    load_text(name.split("/")[0], root)
    return config


def load_text(pair: str, root: Path = ROOT) -> Text:
    """The tokenizer of a language pair. Raises CheckpointError."""
    path = Path(root) / pair / "tokenizer.json"
    if not path.is_file():
        raise CheckpointError(f"{_short(path)} is missing; restore it or train the pair again")
    try:
        return Text.load(path)
    except Exception as error:  # the tokenizers library raises plain Exception
        raise CheckpointError(f"{_short(path)} is damaged ({error}); restore it") from None


def save_model(folder: Path, config: Config, weights: dict[str, Tensor]) -> None:
    """Write weights as fp16, and the config beside them; each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    save_tensors(folder / "model.safetensors", {key: value.half() for key, value in weights.items()})
    write_json(folder / "config.json", config.to_dict())


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(str(path))
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from None


def load_metadata(path: Path, *wanted: str) -> dict:
    """What `save_tensors` wrote beside the tensors. CheckpointError unless it has all keys `wanted`."""
    try:
        content = json.loads(_header(path)["json"])
        missing = [key for key in wanted if key not in content]
    except (KeyError, TypeError, ValueError, RecursionError):
        missing = wanted
    if missing:
        raise CheckpointError(f"{_short(path)} must say {', '.join(missing)} beside its tensors; train the model again")
    return content


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict | None = None) -> None:
    """Write tensors, and beside them metadata that JSON can hold, to one safetensors file, whole or not at all."""
    whole = {key: value.detach().to("cpu", copy=True).contiguous() for key, value in tensors.items()}
    beside = None if metadata is None else {"json": json.dumps(metadata)}
    _replace(path, lambda temporary: save_file(whole, str(temporary), beside))


def fingerprint(name: str, root: Path = ROOT) -> str:
    """SHA-256 of a checkpoint's weights."""
    return hashlib.sha256((Path(root) / name / "model.safetensors").read_bytes()).hexdigest()


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    """Do two sets of weights hold the same numbers?"""
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def _replace(path: Path, write) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    write(temporary)
    temporary.chmod(0o644)  # safetensors leaves its files to their owner alone
    os.replace(temporary, path)


def _config(folder: Path) -> Config:
    content = read_json(folder / "config.json")
    try:
        return Config(**content)
    except (TypeError, ValueError) as error:  # TypeError: a key that is missing, unknown or of another type
        raise _no_model(folder, error) from None


def _no_model(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{_short(folder / 'config.json')} does not describe a model: {error}")


def _header(path: Path) -> dict[str, str] | None:
    """The metadata of a safetensors file, whose length and header are checked on the way."""
    try:
        with safe_open(str(path), framework="pt") as file:
            return file.metadata()
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    if isinstance(error, FileNotFoundError):
        return CheckpointError(f"{_short(path)} is missing; restore it or train the model again")
    reason = "not a file" if Path(path).is_dir() else getattr(error, "strerror", None) or error
    return CheckpointError(f"{_short(path)} is damaged ({reason}); restore it or train the model again")


def _short(path: Path) -> str:
    """The path from `checkpoints` on when it is below it: what a reader of the page recognises."""
    path = Path(path)
    return path.relative_to(ROOT.parent).as_posix() if path.is_relative_to(ROOT.parent) else str(path)
