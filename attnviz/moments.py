"""Moments of a model on its way from untrained to trained: which updates are kept, and their files."""

from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from attnviz import checkpoints
from attnviz.mechanisms import Config

COUNT = 40  # moments of a run, of which few are shipped
FIRST = 10  # updates


@cache
def due(total: int, count: int = COUNT) -> frozenset[int]:
    """The updates of a run of `total` before which a moment is kept: 0, then from FIRST on each a like factor after the last, so that
    the end of the run would be the next."""
    factor = (max(total, FIRST + 1) / FIRST) ** (1 / (count - 1))
    return frozenset({0, *(round(FIRST * factor**number) for number in range(count - 1))})


def keep(folder: Path, update: int, config: Config, weights: dict[str, Tensor]) -> Path:
    """Write the weights as they are before that update, in fp16; -> their file."""
    tensors = {name: value.to(torch.float16) for name, value in weights.items()}
    path = Path(folder) / f"{update:06}.safetensors"
    checkpoints.save_tensors(path, tensors, {"update": update, "config": config.to_dict()})
    return path
