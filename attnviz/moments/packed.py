"""The packed moments of a checkpoint: a model on its way from untrained to trained.

checkpoints/moments/<pair>/<mechanism>.moments

The untrained model is built again from its seed, and the trained one is the checkpoint, so the file needs neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from attnviz.mechanisms import Config
from attnviz.models import checkpoints
from attnviz.models.checkpoint_files import short
from attnviz.moments import codec, kept
from attnviz.networks.registry import build

FOLDER = "moments"
STEP = 2.0  # see codec.pack; about .8 bits a weight
NEAR = 1e-3  # the most by which a weight of the untrained model may differ from what it was


@dataclass(frozen=True)
class Moment:
    """A packed moment. update : the update before which it was kept. loss : on validation, nats a token."""

    update: int
    loss: float


def path_for(name: str, root: Path = checkpoints.ROOT) -> Path:
    """The file of the packed moments of the checkpoint `name` below `root`; it may not be there."""
    return Path(root) / FOLDER / f"{name}.moments"


def untrained(config: Config, seed: int) -> nn.Module:
    """The model that a run with that seed begins with, in evaluation mode. torch's generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(config).eval()


def pack(name: str, root: Path, paths: Sequence[Path], losses: Sequence[float], step: float = STEP) -> Path:
    """Pack kept moments of the checkpoint `name` below `root`, with their losses on validation; returns the file.

    Raises CheckpointError, and ValueError for a moment of another model.
    """
    _, first, last = _ends(name, root)
    tensors = [{key: value.float().numpy() for key, value in checkpoints.load_tensors(path).items()} for path in paths]
    about = [
        {"update": kept.update(path), "loss": round(loss, 4), "begins": _sample(first)}
        for path, loss in zip(paths, losses, strict=True)
    ]
    path = path_for(name, root)
    codec.pack(path, first, last, tensors, about, step)
    return path


def moments(name: str, root: Path = checkpoints.ROOT) -> list[Moment]:
    """The packed moments of a checkpoint, in their order; none where none are packed. Raises CheckpointError."""
    path = path_for(name, root)
    if not path.is_file():
        return []
    return [Moment(about["update"], about["loss"]) for about in codec.about(path)]


def restore(name: str, number: int, root: Path = checkpoints.ROOT) -> nn.Module:
    """The model as it was at the packed moment `number`, counted from 0, in evaluation mode.

    Raises CheckpointError; IndexError when there is no such moment.
    """
    model, first, last = _ends(name, root)
    path = path_for(name, root)
    about = codec.about(path)
    if not 0 <= number < len(about):
        raise IndexError(f"{name} has packed moments 0 to {len(about) - 1}; got {number}")
    if not np.allclose(about[number]["begins"], _sample(first), atol=NEAR):
        raise checkpoints.CheckpointError(
            f"{short(path)} was packed where the seed gives other initial weights; pack it again"
        )
    weights = codec.unpack(path, first, last, number)
    model.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    return model


def _ends(name: str, root: Path) -> tuple[nn.Module, codec.Weights, codec.Weights]:
    """The trained model, and the weights of the untrained one and its own."""
    trained, _ = checkpoints.load_model(name, root)
    seed = checkpoints.read_card(name, root).get("seed", 1)
    first = untrained(checkpoints.read_config(name, root), seed)
    weights = ({key: value.numpy() for key, value in model.state_dict().items()} for model in (first, trained))
    return trained, *weights


def _sample(weights: codec.Weights) -> list[float]:
    """One number of every tensor, to tell weights by."""
    return [round(float(value.ravel()[value.size // 2]), 4) for _, value in sorted(weights.items())]
