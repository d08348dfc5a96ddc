"""The moments that a run keeps: which updates, and their files.

A run keeps about forty, in fp16, in a folder of its own. A dozen of them are packed and ship (packed.py).
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attnviz.mechanisms import Config
from attnviz.models import checkpoints

COUNT = 40  # moments that a run keeps
FIRST = 10  # updates before the first one after the untrained model


@cache
def due(total: int, count: int = COUNT) -> frozenset[int]:
    """The updates, of `total`, before which a moment is kept: 0, then from FIRST on a geometric sequence.

    Its next member would be the end of the run, which is kept as well.
    """
    factor = (max(total, FIRST + 1) / FIRST) ** (1 / (count - 1))
    return frozenset({0, *(round(FIRST * factor**number) for number in range(count - 1))})


def keep(folder: Path, update: int, config: Config, weights: dict[str, Tensor]) -> Path:
    """Write the weights as they are before that update, in fp16; returns their file.

    ValueError when a run begins where another one kept its moments: those of both would be mixed.
    """
    path = Path(folder) / f"{update:06}.safetensors"
    if update == 0 and any(other != path for other in Path(folder).glob("*.safetensors")):
        raise ValueError(f"{folder} holds the moments of another run; choose another folder, or empty this one")
    tensors = {name: value.to(torch.float16) for name, value in weights.items()}
    checkpoints.save_tensors(path, tensors, {"update": update, "config": config.to_dict()})
    return path


def files(folder: Path) -> list[Path]:
    """The files of the kept moments, in the order of the updates. ValueError when there are none."""
    paths = sorted(Path(folder).glob("*.safetensors"), key=lambda path: (len(path.stem), path.stem))
    if not paths:
        raise ValueError(f"{folder} must hold the moments of a run (train --moments); got none")
    return paths


def update(path: Path) -> int:
    """The update before which a moment was kept. Raises CheckpointError."""
    return checkpoints.load_metadata(path, "update")["update"]


def check_config(paths: Sequence[Path], config: Config) -> None:
    """ValueError for a moment of a model with another configuration. Raises CheckpointError."""
    for path in paths:
        if checkpoints.load_metadata(path, "config")["config"] != config.to_dict():
            raise ValueError(f"{path} is a moment of another model; choose the folder of the run of this one")


def spaced(losses: Sequence[float], count: int) -> list[int]:
    """The places of `count` of the losses, the first and the last among them, at about equal distances from each other.

    losses : on the way, so about falling. ValueError for a count below 2, or for more than there are.
    """
    if not 2 <= count <= len(losses):
        raise ValueError(f"count must be from 2 to {len(losses)}; got {count}")
    wanted = np.linspace(losses[0], losses[-1], count)[1:-1]
    chosen = [0]
    for number, loss in enumerate(wanted, start=1):
        free = range(chosen[-1] + 1, len(losses) - (count - 1 - number))
        chosen.append(min(free, key=lambda place: abs(losses[place] - loss)))
    return [*chosen, len(losses) - 1]
