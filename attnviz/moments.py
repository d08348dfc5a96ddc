"""Moments of a model on its way from untrained to trained: which updates are kept, which of these ship, and how one becomes a model.

A run keeps about forty, in fp16. A dozen of them, spaced by their loss, are packed into one file a model (packing.py):

    checkpoints/moments/<pair>/<mechanism>.moments

The untrained model is built again from its seed, and the trained one is the checkpoint, so that file needs neither.
"""

from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from attnviz import checkpoints, files, packing
from attnviz.mechanisms import Config
from attnviz.models import build

COUNT = 40  # moments that a run keeps
FIRST = 10  # updates
FOLDER = "moments"
STEP = 4.0  # of what is left when a moment is foretold: see packing.pack. About .45 bits a weight
NEAR = 1e-3  # how far a weight of the untrained model may be from what it was


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


def spaced(losses: Sequence[float], count: int) -> list[int]:
    """The places of `count` of the losses, the first and the last among them, about as far from each other as they can be.

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


def untrained(config: Config, seed: int) -> nn.Module:
    """The model that a run with that seed begins with."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(config).eval()


def pack(name: str, root: Path, kept: Sequence[Path], losses: Sequence[float], step: float = STEP) -> Path:
    """Pack kept moments of the checkpoint `name` below `root`, with their losses on validation; -> the file."""
    trained, first, last = _ends(name, root)
    tensors = [{key: value.float().numpy() for key, value in checkpoints.load_tensors(path).items()} for path in kept]
    updates = [checkpoints.load_metadata(path, "update")["update"] for path in kept]
    about = [{"update": update, "loss": round(loss, 4), "begins": _sample(first)} for update, loss in zip(updates, losses, strict=True)]
    path = _file(name, root)
    packing.pack(path, first, last, tensors, about, step)
    return path


def about(name: str, root: Path = checkpoints.ROOT) -> list[dict]:
    """update and loss of each packed moment of a checkpoint, in their order; none where none are packed. Raises CheckpointError."""
    path = _file(name, root)
    return [{key: said[key] for key in ("update", "loss")} for said in packing.about(path)] if path.is_file() else []


def restore(name: str, number: int, root: Path = checkpoints.ROOT) -> nn.Module:
    """The model as it was at the packed moment `number`, from 0, in evaluation mode. Raises CheckpointError, IndexError."""
    trained, first, last = _ends(name, root)
    path = _file(name, root)
    said = packing.about(path)
    if not np.allclose(said[number]["begins"], _sample(first), atol=NEAR):
        raise checkpoints.CheckpointError(f"{files.short(path)} was packed where chance draws other first weights; pack it again")
    weights = next(islice(packing.unpack(path, first, last), number % len(said), None))
    trained.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    return trained


def _ends(name: str, root: Path) -> tuple[nn.Module, packing.Weights, packing.Weights]:
    """The trained model, and the weights of the untrained one and its own."""
    trained, _ = checkpoints.load_model(name, root)
    seed = checkpoints.read_card(name, root).get("seed", 1)
    first = untrained(checkpoints.read_config(name, root), seed)
    return trained, *({key: value.numpy() for key, value in model.state_dict().items()} for model in (first, trained))


def _sample(weights: packing.Weights) -> list[float]:
    """Some numbers of every tensor, to tell weights by."""
    return [round(float(value.ravel()[value.size // 2]), 4) for _, value in sorted(weights.items())]


def _file(name: str, root: Path) -> Path:
    return Path(root) / FOLDER / f"{name}.moments"
