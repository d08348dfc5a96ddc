"""The only file that reads or writes weights: safetensors, never pickle. The JSON files beside them:
checkpoint_files.py."""

import errno
import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from attnviz import arguments, storage
from attnviz.data.tokenizer import SubwordTokenizer
from attnviz.mechanisms import Config
from attnviz.models import weights_header
from attnviz.models.checkpoint_files import (
    ROOT,
    CheckpointError,
    brief,
    fetch,
    is_to_fetch,
    no_model,
    read_card,
    read_config,
    replace,
    sha256,
    short,
    unreadable,
    weights,
    write_json,
)
from attnviz.models.names import CONFIG, TOKENIZER, WEIGHTS, ModelName
from attnviz.networks.registry import Unfilled, build


def load_model(name: str, root: Path = ROOT) -> tuple[nn.Module, dict]:
    """The trained model in evaluation mode, fp32, and its config. Raises CheckpointError."""
    config, path = read_config(name, root), fetch(name, root)
    _check_fits(name, config, root)
    with _possible(name, root), Unfilled():
        model = build(config)
    tensors = {key: value.float() for key, value in load_tensors(path).items()}
    if not all(map(_is_finite, tensors.values())):
        raise CheckpointError(f"{short(path)} is damaged (some weights are not numbers); restore it")
    _fill(name, model, tensors)
    return model.eval().requires_grad_(False), config.to_dict()


def _is_finite(weight: Tensor) -> bool:
    """Are all entries finite? Checks the minimum and maximum, in a tenth of the time of `weight.isfinite().all()`."""
    return not weight.numel() or all(extreme.isfinite() for extreme in weight.aminmax())


def _check_fits(name: str, config: Config, root: Path) -> None:
    """CheckpointError unless the weights in the file have the names and shapes of the model that the config describes.

    Only shapes are compared, so a wrong config cannot fill the memory.
    """
    path = weights(name, root)
    try:
        shapes = weights_header.shapes(path)
    except (weights_header.HeaderError, OSError) as error:
        raise unreadable(path, error) from None
    for layers in (config.options.get(option) for option in ("layers", "encoder_layers")):
        if isinstance(layers, int) and layers > len(shapes):
            raise CheckpointError(
                f"{name}: the weights do not fit config.json: {layers} layers, and {len(shapes)} tensors"
            )
    with _possible(name, root), torch.device("meta"), Unfilled():  # shapes without numbers
        described, held = build(config), {key: torch.empty(shape) for key, shape in shapes.items()}
    _fill(name, described, held)


@contextmanager
def _possible(name: str, root: Path) -> Iterator[None]:
    """CheckpointError for impossible sizes."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # torch raises all of them
        raise no_model(name, error, root) from None


def _fill(name: str, model: nn.Module, weights: dict[str, Tensor]) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = arguments.cut(str(error).splitlines()[-1].strip(), 300)
        raise CheckpointError(f"{name}: the weights do not fit config.json: {reason}") from None


def check(name: str, root: Path = ROOT) -> Config:
    """The config of a checkpoint. Raises CheckpointError when a file is missing or cannot be opened. Weights that are
    to be fetched are not missing."""
    config = read_config(name, root)
    if not is_to_fetch(name, root):
        _header(weights(name, root))
    load_tokenizer(ModelName.parse(name).pair, root)
    return config


def load_tokenizer(pair: str, root: Path = ROOT) -> SubwordTokenizer:
    """The tokenizer of a language pair. Raises CheckpointError."""
    path = Path(root) / pair / TOKENIZER
    if not path.exists():
        raise CheckpointError(f"{short(path)} is missing; restore it or train the pair again")
    try:
        return _tokenizer(path, storage.stamp(path))
    except OSError as error:
        raise unreadable(path, error) from None


@functools.lru_cache(maxsize=8)
def _tokenizer(path: Path, stamp: tuple) -> SubwordTokenizer:
    """Read once for all models of a pair. changed, size : of the file; another file is read again."""
    try:
        text = SubwordTokenizer.load(path)
    except ValueError as error:
        raise CheckpointError(f"{short(path)} is damaged ({brief(error)}); restore it") from None
    if problem := text.problem():
        raise CheckpointError(f"{short(path)} is damaged ({problem}); restore it")
    return text


def save_model(folder: Path, config: Config, weights: dict[str, Tensor]) -> None:
    """Write weights as fp16, and the config beside them; each file whole or not at all.

    CheckpointError, without writing anything, if a weight does not fit into fp16.
    """
    halves = {key: value.half() for key, value in weights.items()}
    if wrong := [key for key, value in halves.items() if not value.isfinite().all()]:
        raise CheckpointError(
            f"weights must be numbers below {torch.finfo(torch.float16).max:,.0f}, which fp16 can hold; those of "
            f"{wrong[0]} are not, so the model is not saved: train it again with a lower learning_rate"
        )
    storage.make_folder(folder)
    save_tensors(folder / WEIGHTS, halves)
    write_json(folder / CONFIG, config.to_dict())


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        storage.check_file(path)
        return load_file(str(path))
    except (SafetensorError, OSError) as error:
        raise unreadable(path, error) from None


def load_metadata(path: Path, *wanted: str) -> dict:
    """The metadata that `save_tensors` wrote. CheckpointError unless it has all keys in `wanted`."""
    header = _header(path)
    try:
        content = json.loads((header or {})["json"])
        missing = [key for key in wanted if key not in content]
    except (KeyError, TypeError, ValueError, RecursionError):
        missing = list(wanted)
    if missing:
        raise CheckpointError(f"{short(path)} must say {', '.join(missing)} beside its tensors; train the model again")
    return content


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict | None = None) -> None:
    """Write tensors and metadata (anything that JSON can hold) to one safetensors file, whole or not at all."""
    whole = {key: value.detach().to("cpu", copy=True).contiguous() for key, value in tensors.items()}
    beside = None if metadata is None else {"json": json.dumps(metadata)}
    replace(path, lambda temporary: _serialise(whole, temporary, beside))


def _serialise(tensors: dict[str, Tensor], path: Path, metadata: dict | None) -> None:
    try:
        save_file(tensors, str(path), metadata)
    except SafetensorError as error:  # a full disc, say
        raise OSError(errno.EIO, str(error)) from None


def fingerprint_tokenizer(pair: str, root: Path = ROOT) -> str:
    """SHA-256 of a pair's tokenizer."""
    return sha256(Path(root) / pair / TOKENIZER)


def verify(name: str, root: Path = ROOT) -> dict:
    """The card. Raises CheckpointError when weights or tokenizer are not those whose hashes are on it."""
    card = read_card(name, root)
    files = {"tokenizer_sha256": Path(root) / ModelName.parse(name).pair / TOKENIZER}
    if not is_to_fetch(name, root):
        files["weights_sha256"] = weights(name, root)
    for key, path in files.items():
        if key in card and card[key] != sha256(path):
            raise CheckpointError(
                f"{short(path)} is damaged, or not the file that card.json was written for; restore it"
            )
    return card


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    """Do two sets of weights hold the same numbers?"""
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def _header(path: Path) -> dict[str, str] | None:
    """The metadata of a safetensors file. Its length and header are checked too."""
    try:
        storage.check_file(path)
        with safe_open(str(path), framework="pt") as file:
            return file.metadata()
    except (SafetensorError, OSError) as error:
        raise unreadable(path, error) from None
