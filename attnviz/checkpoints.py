"""The only file that reads or writes weights: safetensors and JSON, never pickle.

    checkpoints/<pair>/tokenizer.json               one vocabulary for all mechanisms of a pair
    checkpoints/<pair>/<mechanism>/config.json      mechanism, vocabulary size, options
                                  /model.safetensors  weights in fp16; fp32 once loaded
                                  /card.json        what it was trained on, how, and what it scores
"""

import hashlib
import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError
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
    except FileNotFoundError:
        raise CheckpointError(f"{_short(path)} is missing; restore it or train the model again") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{_short(path)} is damaged ({error}); restore it or train the model again") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{_short(path)} must hold a JSON object; got {type(content).__name__}")
    return content


def write_json(path: Path, content: dict) -> None:
    _replace(path, lambda temporary: temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8"))


def load_model(name: str, root: Path = ROOT) -> tuple[nn.Module, dict]:
    """The trained model in evaluation mode, fp32, and its config as read. Raises CheckpointError."""
    folder = Path(root) / name
    if not folder.is_dir():
        raise CheckpointError(f"no checkpoint {name!r}; available: {', '.join(names(root)) or 'none'}")
    content = read_json(folder / "config.json")
    try:
        model = build(Config(**content))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{_short(folder / 'config.json')} does not describe a model: {error}") from None
    weights = {key: value.float() for key, value in load_tensors(folder / "model.safetensors").items()}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"{name}: the weights do not fit config.json: {reason}") from None
    return model.eval().requires_grad_(False), content


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
    except FileNotFoundError:
        raise CheckpointError(f"{_short(path)} is missing; restore it or train the model again") from None
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{_short(path)} is damaged ({error}); restore it or train the model again") from None


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors to one safetensors file, whole or not at all."""
    whole = {key: value.detach().to("cpu", copy=True).contiguous() for key, value in tensors.items()}
    _replace(path, lambda temporary: save_file(whole, str(temporary)))


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
    os.replace(temporary, path)


def _short(path: Path) -> str:
    """The path from `checkpoints` on when it is below it: what a reader of the page recognises."""
    path = Path(path)
    return path.relative_to(ROOT.parent).as_posix() if path.is_relative_to(ROOT.parent) else str(path)
