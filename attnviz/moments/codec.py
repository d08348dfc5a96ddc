"""Moments of one run in one small file: the differences to a prediction, in a few levels, packed by LZMA.

The untrained and the trained model are at hand. The moments between them are coded as pictures of a film are: the
middle one first, then the middle of each half, and so on. Each is predicted tensor by tensor, by least squares, from
the trained model and its nearest neighbours that are coded already, as they will be restored, so errors do not add up.
Only the difference is stored, rounded to steps. Uniform steps are near the best there is (Gish & Pierce 1968).
"""

import json
import lzma
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attnviz.models.checkpoint_files import CheckpointError, short, unreadable
from attnviz.storage import atomic, json_text, regular_files

Weights = dict[str, np.ndarray]  # float32
SMALL = 20_000  # numbers; a tensor of fewer is stored with fine steps, which costs next to nothing
FINE = 0.05  # of the root mean square of the differences of a small tensor
KEYS, COARSER = 3, 1.5  # moments coded first, on which the others rest; the factor on the steps of the others
LARGEST = 64 * 2**20  # bytes of a file
MAGIC = b"attnviz moments 2\n"


def pack(
    path: Path, first: Weights, last: Weights, moments: Sequence[Weights], about: Sequence[dict], step: float
) -> int:
    """Write the moments between `first` and `last`; returns the bytes of the file.

    about : what is to be known of each, such as its update and loss. step : of large tensors, in root mean squares of
    their differences; the larger, the smaller the file. ValueError unless every moment has the same tensors.
    """
    if len(about) != len(moments):
        raise ValueError(f"there must be a description of each of the {len(moments)} moments; got {len(about)}")
    header, stream, coded = [], [], {}
    for place, number in enumerate(_order(len(moments))):
        neighbours = _neighbours(number, coded, last)
        tensors, levels, coded[number] = _coded(
            first, neighbours, moments[number], step * (COARSER if place >= KEYS else 1)
        )
        header.append({"about": about[number], "tensors": tensors})
        stream += levels
    content = _written(header, stream)
    atomic.replace(Path(path), lambda temporary: temporary.write_bytes(content))
    return len(content)


def _order(count: int) -> list[int]:
    """The numbers from 0 to count - 1: the middle one, the middle of each part beside it, and so on."""
    order, parts = [], [(0, count)]
    for low, high in parts:  # grows meanwhile
        if low < high:
            middle = (low + high) // 2
            order.append(middle)
            parts += [(low, middle), (middle + 1, high)]
    return order


def _neighbours(number: int, coded: dict[int, Weights], last: Weights) -> list[Weights]:
    """What predicts a moment, besides the untrained model: the trained one, and the nearest coded on either side."""
    before, after = [at for at in coded if at < number], [at for at in coded if at > number]
    return [last, *(coded[max(before)] for _ in before[:1]), *(coded[min(after)] for _ in after[:1])]


def _coded(first: Weights, neighbours: Sequence[Weights], moment: Weights, step: float):
    """-> what the header says of each tensor, the levels of all tensors, and the moment as it will be restored."""
    if {name: value.shape for name, value in moment.items()} != {name: value.shape for name, value in first.items()}:
        raise ValueError("every moment must have the tensors of the untrained model")
    tensors, stream, restored = {}, [], {}
    for name in sorted(first):
        others = [weights[name] for weights in neighbours]
        mix = _mix(first[name], others, moment[name])
        predicted = _predicted(first[name], others, mix)
        difference = moment[name] - predicted
        size = float(np.sqrt(np.mean(difference**2))) * (FINE if difference.size < SMALL else step) + 1e-12
        levels = np.clip(np.rint(difference / size), -127, 127).astype(np.int8)
        tensors[name] = [*mix, size]
        restored[name] = predicted + levels * np.float32(size)
        stream.append(levels.ravel())
    return tensors, stream, restored


def about(path: Path) -> list[dict]:
    """What was said of each moment when it was packed, in their order. Raises CheckpointError."""
    header, _ = _read(path)
    said = dict(zip(_order(len(header)), (entry["about"] for entry in header)))
    return [said[number] for number in range(len(header))]


def unpack(path: Path, first: Weights, last: Weights, number: int) -> Weights:
    """The moment of that number, from 0. Raises CheckpointError."""
    header, packed = _read(path)
    size = sum(value.size for value in first.values()) * len(header)
    levels = _levels(path, packed, size)
    if any(entry["tensors"].keys() != first.keys() for entry in header) or len(levels) != size:
        raise CheckpointError(f"{short(path)} does not fit the model; restore it, or the model that it was packed for")
    place, coded = 0, {}
    for each, entry in zip(_order(len(header)), header):
        neighbours, restored = _neighbours(each, coded, last), {}
        for name in sorted(first):
            *mix, size = entry["tensors"][name]
            part = levels[place : place + first[name].size].reshape(first[name].shape)
            others = [weights[name] for weights in neighbours]
            restored[name] = _predicted(first[name], others, mix) + part * np.float32(size)
            place += first[name].size
        if each == number:
            return restored
        coded[each] = restored
    raise IndexError(f"{short(path)} has moments 0 to {len(header) - 1}; got {number}")


def _mix(first: np.ndarray, others: Sequence[np.ndarray], moment: np.ndarray) -> list[float]:
    """The factors on the ways from `first` to the others that lead nearest to this moment."""
    ways = np.stack([(other - first).ravel() for other in others]).astype(np.float64)
    square = ways @ ways.T
    square += 1e-9 * np.eye(len(others)) * (1 + np.trace(square))
    factors = np.linalg.solve(square, ways @ (moment - first).ravel().astype(np.float64))
    return [float(np.float32(factor)) for factor in factors]


def _predicted(first: np.ndarray, others: Sequence[np.ndarray], mix: Sequence[float]) -> np.ndarray:
    return first + sum(np.float32(factor) * (other - first) for factor, other in zip(mix, others))


def _written(header: list[dict], stream: list[np.ndarray]) -> bytes:
    text = json.dumps(header).encode()
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 0, "pb": 0}]
    packed = lzma.compress(np.concatenate(stream).tobytes(), lzma.FORMAT_XZ, filters=filters)
    return MAGIC + struct.pack("<Q", len(text)) + text + packed


def _levels(path: Path, packed: bytes, size: int) -> np.ndarray:
    """The levels (int8) of all tensors of all moments; at most one more than `size`."""
    try:
        return np.frombuffer(lzma.LZMADecompressor().decompress(packed, size + 1), dtype=np.int8)
    except (EOFError, lzma.LZMAError) as error:
        raise unreadable(Path(path), error) from None


def _read(path: Path) -> tuple[list[dict], bytes]:
    """The header, and the packed levels."""
    try:
        content = regular_files.read(path, LARGEST)
        if not content.startswith(MAGIC):
            raise ValueError("it holds no moments")
        start = len(MAGIC) + 8
        end = start + struct.unpack("<Q", content[len(MAGIC) : start])[0]
        header = json_text.parse(content[start:end])
        if not isinstance(header, list) or not all(
            isinstance(each, dict) and {"about", "tensors"} <= each.keys() for each in header
        ):
            raise ValueError("its header does not describe moments")
        return header, content[end:]
    except (OSError, ValueError, struct.error) as error:
        raise unreadable(Path(path), error) from None
