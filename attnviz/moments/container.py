"""The file of a run's packed moments: their description as JSON, then all levels, packed by LZMA.

The JSON is checked only here: any JSON becomes a Header, or is refused."""

import json
import lzma
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnviz import storage
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_values
from attnviz.models.checkpoint_files import CheckpointError, short, unreadable
from attnviz.moments import codec
from attnviz.moments.codec import Entry, Tensor

LARGEST = 64 * 2**20  # bytes of a file
LEVELS = 2**26  # of all moments of a file together
MEMORY = 2**28  # bytes that LZMA may take beside the levels
COARSEST = 1e4  # the largest step, and the largest factor of a prediction
MAGIC = b"attnviz moments 3\n"
Shapes = dict[str, tuple[int, ...]]
MOST = 32  # moments in a file


@dataclass(frozen=True)
class Moment:
    """A packed moment. update : the update before which it was saved. loss : on validation, nats a token."""

    update: int
    loss: float


@dataclass(frozen=True)
class Header:
    """config, seed : of the run. begins : one number of each untrained tensor. moments : the untrained model first."""

    config: Config
    seed: int
    begins: list[float]
    moments: list[Moment]

    def to_dict(self) -> dict:
        """The JSON that `checked` reads."""
        listed = [{"update": moment.update, "loss": round(moment.loss, 4)} for moment in self.moments]
        return {"config": self.config.to_dict(), "seed": self.seed, "begins": self.begins, "moments": listed}


def checked(content: object) -> Header:
    """Any JSON -> Header. ValueError, TypeError or ArithmeticError if it does not describe moments."""
    if not isinstance(content, dict):
        raise ValueError("it describes no moments")
    if missing := [key for key in ("config", "seed", "begins", "moments") if key not in content]:
        raise ValueError(f"{missing[0]} is missing")
    seed, begins, listed = content["seed"], content["begins"], content["moments"]
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise ValueError("its seed is no whole number")
    if not isinstance(begins, list) or not all(map(is_number, begins)):
        raise ValueError("it does not say how the untrained model begins")
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST:
        raise ValueError(f"it must list 2 to {MOST} moments")
    return Header(checkpoint_values.config(content["config"]), seed, begins, [_moment(entry) for entry in listed])


def is_number(value: Any, least: float = -1e9, most: float = 1e9) -> bool:
    """Is the value a number (not a bool) within these bounds? False for NaN."""
    return type(value) in (int, float) and least <= value <= most


def check_count(paths: Sequence, losses: Sequence[float]) -> None:
    """ValueError unless there are moments to pack, and a loss for each."""
    if not 2 <= len(paths) <= MOST or len(paths) != len(losses):
        raise ValueError(
            f"there must be 2 to {MOST} moments, and a loss for each; got {len(paths)} and {len(losses)} losses"
        )


def _moment(entry: object) -> Moment:
    if not isinstance(entry, dict) or not is_number(entry.get("loss")) or type(entry.get("update")) is not int:
        raise ValueError("a moment has no update or no loss")
    return Moment(entry["update"], entry["loss"])


def write(path: Path, about: dict, entries: Sequence[Entry]) -> None:
    """about : the description of the run and its moments. The file is replaced whole.

    ValueError for a number that is not finite, and for moments that take more than LARGEST.
    """
    coded = [[[name, *tensor.mix, tensor.coded.step, tensor.coded.rank] for name, tensor in e.items()] for e in entries]
    levels = [tensor.coded.levels for entry in entries for tensor in entry.values()]
    text = json.dumps(about | {"coded": coded}, allow_nan=False).encode()
    packed = lzma.compress(_as_bytes(np.concatenate(levels)), lzma.FORMAT_XZ, filters=_FILTERS)
    content = MAGIC + struct.pack("<Q", len(text)) + text + packed
    if len(content) > LARGEST:
        raise ValueError(f"the moments take {len(content):,} bytes, of at most {LARGEST:,}; pack fewer")
    storage.replace(Path(path), lambda temporary: temporary.write_bytes(content))


def read_about(path: Path) -> dict:
    """The description that was written as `about`. Raises CheckpointError."""
    return _read(path)[0]


def read(path: Path, shapes: Shapes, count: int) -> list[Entry]:
    """The moments. shapes : of the tensors of a moment. count : how many there are. Raises CheckpointError."""
    about, packed = _read(path)
    try:
        rows = _rows(about["coded"], shapes, count)
        counts = [codec.count_levels(shapes[name], rank) for row in rows for name, *_, rank in row]
        if sum(counts) > LEVELS:
            raise ValueError(f"more than {LEVELS} levels")
        levels = iter(np.split(_levels(packed, sum(counts)), np.cumsum(counts)[:-1]))
        return [
            {name: Tensor(mix, codec.Coded(step, rank, next(levels))) for name, *mix, step, rank in row} for row in rows
        ]
    except (EOFError, lzma.LZMAError) as error:
        raise unreadable(Path(path), error) from None
    except (LookupError, TypeError, ValueError):
        raise CheckpointError(f"{short(path)} does not fit the model; restore it, or pack it again") from None


def _rows(coded: object, shapes: Shapes, count: int) -> list[list[list]]:
    """The rows of the header, one per tensor: its name, the factors of its prediction, step and rank. ValueError,
    TypeError or LookupError for others."""
    if not isinstance(coded, list) or len(coded) != count:
        raise ValueError(f"there must be {count} moments")
    for entry, factors in zip(coded, codec.predictors(count)):
        if [row[0] for row in entry] != list(shapes):
            raise ValueError("other tensors")
        for _, *mix, step, rank in entry:
            if len(mix) != factors or not all(is_number(factor, -COARSEST, COARSEST) for factor in mix):
                raise ValueError("other predictions")
            if not is_number(step, math.ulp(0.0), COARSEST) or type(rank) is not int:
                raise ValueError("no steps")
    return coded


_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 0, "pb": 0}]


def _as_bytes(levels: np.ndarray) -> bytes:
    """All low bytes, then all high bytes, which are nearly all zero: -1, 1, -2, 2 … are stored as 1, 2, 3, 4 …"""
    wide = levels.astype(np.int32)
    whole = np.where(wide < 0, -2 * wide - 1, 2 * wide).astype("<u2")
    return (whole & 255).astype(np.uint8).tobytes() + (whole >> 8).astype(np.uint8).tobytes()


def _levels(packed: bytes, size: int) -> np.ndarray:
    """That many levels (int16). ValueError when there are fewer or more; EOFError and LZMAError for damaged bytes."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
    parts = np.frombuffer(unpacker.decompress(packed, 2 * size + 1), dtype=np.uint8)
    if not unpacker.eof and len(parts) <= 2 * size:
        raise EOFError("it is cut short")
    if len(parts) != 2 * size:
        raise ValueError(f"{size} levels of two bytes are needed; got {len(parts)} bytes")
    whole = parts[:size].astype(np.int32) + 256 * parts[size:].astype(np.int32)
    return np.where(whole % 2, -(whole + 1) // 2, whole // 2).astype(np.int16)


def _read(path: Path) -> tuple[dict, bytes]:
    """The description of the moments, and the packed levels."""
    try:
        content = storage.read(path, LARGEST)
        if not content.startswith(MAGIC):
            raise ValueError("it holds no moments")
        start = len(MAGIC) + 8
        end = start + struct.unpack("<Q", content[len(MAGIC) : start])[0]
        about = storage.parse_json(content[start:end])
        if not isinstance(about, dict) or "coded" not in about:
            raise ValueError("its header does not describe moments")
        return about, content[end:]
    except (OSError, ValueError, struct.error) as error:
        raise unreadable(Path(path), error) from None
