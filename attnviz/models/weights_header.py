"""The names and shapes of the tensors in a safetensors file, read from its header alone (JSON at its beginning).

A config of a few bytes can describe a model of many gigabytes. A file of weights is as large as its tensors. So the
two are compared before a model is built.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from attnviz import storage

LARGEST = 100_000_000  # bytes of a header, as the safetensors library has it
AXES = 16
Shapes = dict[str, tuple[int, ...]]


class HeaderError(ValueError):
    """A file that is not in the safetensors format, or is smaller than its header requires."""


def shapes(path: str | Path) -> Shapes:
    """The name and the shape of each tensor. Raises HeaderError, OSError (storage.NotRegularError)."""
    header, size = _read(path)
    tensors = {name: _shape(entry) for name, entry in header.items() if name != "__metadata__"}
    if sum(map(math.prod, tensors.values())) > 8 * size:  # eight numbers in a byte is more than any type has
        raise HeaderError("its header describes more numbers than the file holds")
    return tensors


def metadata(path: str | Path) -> dict:
    """The metadata of the file; {} if it has none. Raises as `shapes`."""
    content = _read(path)[0].get("__metadata__")
    return content if isinstance(content, dict) else {}


def _read(path: str | Path) -> tuple[dict, int]:
    """The header, and the size of the file in bytes."""
    size = storage.check_file(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(LARGEST, size - 8):
            raise HeaderError("it is no safetensors file, or it is incomplete")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError):
            raise HeaderError("its header is not JSON") from None
    if not isinstance(header, dict):
        raise HeaderError("its header is not a JSON object")
    return header, size


def in_folder(folder: str | Path) -> Shapes:
    """The same for all safetensors files of a folder together. Raises HeaderError with the name of the file,
    OSError."""
    tensors: Shapes = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        try:
            tensors |= shapes(path)
        except HeaderError as error:
            raise HeaderError(f"{os.path.basename(path)}: {error}") from None
    return tensors


def numbers(tensors: Mapping[str, tuple[int, ...]]) -> int:
    """The number of numbers in all tensors together."""
    return sum(map(math.prod, tensors.values()))


def _shape(entry: object) -> tuple[int, ...]:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    if not isinstance(shape, list) or len(shape) > AXES or any(type(axis) is not int or axis < 0 for axis in shape):
        raise HeaderError("its header has a tensor without a shape")
    return tuple(shape)
