"""Moments of one run in one small file: what each differs from what its neighbours foretell, in a few levels, packed by LZMA.

A moment between the untrained model and the trained one, both at hand anyway, is foretold tensor by tensor as a mix of the moment
before it and of the way from the one to the other (least squares). Only what is left is stored, rounded to steps. Each moment is
foretold from the one before it as restored, so errors do not add up. Gish and Pierce 1968: uniform steps are near the best there is.
"""

import json
import lzma
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from attnviz import files

Weights = dict[str, np.ndarray]  # float32
SMALL = 20_000  # numbers of a tensor that is stored with fine steps: it costs next to nothing
FINE = 0.05  # of what is left of a small tensor (its root mean square)
MAGIC = b"attnviz moments 1\n"


def pack(path: Path, first: Weights, last: Weights, moments: Sequence[Weights], about: Sequence[dict], step: float) -> int:
    """Write the moments between `first` and `last`; -> bytes. about : what is to be known of each, such as its update and loss.

    step : of large tensors, as a multiple of the root mean square of what is left; the larger, the smaller the file.
    ValueError unless every moment has the same tensors.
    """
    if len(about) != len(moments):
        raise ValueError(f"there must be a description of each of the {len(moments)} moments; got {len(about)}")
    header, stream, before = [], [], first
    for moment, said in zip(moments, about):
        if {name: value.shape for name, value in moment.items()} != {name: value.shape for name, value in first.items()}:
            raise ValueError("every moment must have the tensors of the untrained model")
        entry, restored = {}, {}
        for name in sorted(first):
            mix = _mix(first[name], last[name], before[name], moment[name])
            foretold = _foretold(first[name], last[name], before[name], mix)
            left = moment[name] - foretold
            size = float(np.sqrt(np.mean(left**2))) * (FINE if left.size < SMALL else step) + 1e-12
            levels = np.clip(np.rint(left / size), -127, 127).astype(np.int8)
            entry[name] = [*mix, size]
            restored[name] = foretold + levels * np.float32(size)
            stream.append(levels.ravel())
        header.append({"about": said, "tensors": entry})
        before = restored
    content = _written(header, stream)
    files.replace(Path(path), lambda temporary: temporary.write_bytes(content))
    return len(content)


def about(path: Path) -> list[dict]:
    """What was said of each moment when it was packed. Raises files.CheckpointError."""
    return [entry["about"] for entry in _read(path)[0]]


def unpack(path: Path, first: Weights, last: Weights) -> Iterator[Weights]:
    """The moments in their order, each restored from the one before it. Raises files.CheckpointError."""
    header, levels = _read(path)
    if sum(value.size for value in first.values()) * len(header) != len(levels):
        raise files.CheckpointError(f"{files.short(path)} does not fit the model; restore it, or the model that it was packed for")
    place, before = 0, first
    for entry in header:
        restored = {}
        for name in sorted(first):
            *mix, size = entry["tensors"][name]
            part = levels[place : place + first[name].size].reshape(first[name].shape)
            restored[name] = _foretold(first[name], last[name], before[name], mix) + part * np.float32(size)
            place += first[name].size
        before = restored
        yield restored


def _mix(first: np.ndarray, last: np.ndarray, before: np.ndarray, moment: np.ndarray) -> list[float]:
    """How much of the way to the last, and of that to the moment before, foretells this one best."""
    ways = np.stack([(last - first).ravel(), (before - first).ravel()]).astype(np.float64)
    square = ways @ ways.T + 1e-9 * np.eye(2) * (1 + np.trace(ways @ ways.T))
    return [float(np.float32(part)) for part in np.linalg.solve(square, ways @ (moment - first).ravel().astype(np.float64))]


def _foretold(first: np.ndarray, last: np.ndarray, before: np.ndarray, mix: Sequence[float]) -> np.ndarray:
    return first + np.float32(mix[0]) * (last - first) + np.float32(mix[1]) * (before - first)


def _written(header: list[dict], stream: list[np.ndarray]) -> bytes:
    said = json.dumps(header).encode()
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 0, "pb": 0}]
    packed = lzma.compress(np.concatenate(stream).tobytes(), lzma.FORMAT_XZ, filters=filters)
    return MAGIC + struct.pack("<Q", len(said)) + said + packed


def _read(path: Path) -> tuple[list[dict], np.ndarray]:
    try:
        content = Path(path).read_bytes()
        if not content.startswith(MAGIC):
            raise ValueError("it holds no moments")
        start = len(MAGIC) + 8
        end = start + struct.unpack("<Q", content[len(MAGIC) : start])[0]
        return json.loads(content[start:end]), np.frombuffer(lzma.decompress(content[end:]), dtype=np.int8)
    except (OSError, ValueError, EOFError, lzma.LZMAError, struct.error) as error:
        raise files.unreadable(Path(path), error) from None
