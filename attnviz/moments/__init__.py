"""Moments: the weights of a model at several points of its training.

    >>> moments.moments("en-fr/bahdanau")     # update and loss of each one that ships
    >>> moments.restore("en-fr/bahdanau", 3)  # the model as it was at the fourth; 0 is the untrained one

A training run saves about forty (`train --moments DIR`), in fp16, in a folder of its own. `python -m attnviz moments`
packs a dozen of them into one file that ships, checkpoints/moments/<pair>/<mechanism>.moments. Its first moment is the
untrained model: the seed gives it, so the file holds only the others. The last one is the trained model of that run.
The file needs no checkpoint, and the checkpoint of that name may come from another run.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.arguments import within
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.checkpoint_files import short, unreadable
from attnviz.models.names import MOMENTS
from attnviz.moments import codec, container
from attnviz.moments.container import Header, Moment, check_count, checked
from attnviz.networks.registry import Unfilled, build

__all__ = [
    "Moment",
    "as_kept",
    "due",
    "files",
    "keep",
    "moments",
    "pack",
    "path_for",
    "restore",
    "restored",
    "spaced",
    "untrained",
]
KEPT = 40  # moments that a run keeps
FIRST_UPDATE = 10  # updates before the first one after the untrained model
NEAR = 1e-3  # the most by which a weight of the untrained model may differ from what it was
LARGEST = 2**25  # weights of a model


@cache
def due(total: int, count: int = KEPT) -> frozenset[int]:
    """The updates, of `total`, before which a moment is saved: 0, then from FIRST_UPDATE on a geometric sequence.

    Its next member would be the end of the run, which is saved as well.
    """
    factor = (max(total, FIRST_UPDATE + 1) / FIRST_UPDATE) ** (1 / (count - 1))
    return frozenset({0, *(round(FIRST_UPDATE * factor**number) for number in range(count - 1))})


def keep(folder: Path, update: int, config: Config, weights: dict[str, Tensor]) -> Path:
    """Write the weights before that update, in fp16; returns their file.

    ValueError if a run begins in a folder with moments of another run, which would be mixed up.
    """
    path = Path(folder) / f"{update:06}.safetensors"
    if update == 0 and any(other != path for other in Path(folder).glob("*.safetensors")):
        raise ValueError(f"{folder} holds the moments of another run; choose another folder, or empty this one")
    tensors = {name: value.to(torch.float16) for name, value in weights.items()}
    checkpoints.save_tensors(path, tensors, {"update": update, "config": config.to_dict()})
    return path


def files(folder: Path) -> list[Path]:
    """The files of the saved moments, in the order of the updates. ValueError if there are none."""
    paths = sorted(Path(folder).glob("*.safetensors"), key=lambda path: (len(path.stem), path.stem))
    if not paths:
        raise ValueError(f"{folder} must hold the moments of a run (train --moments); got none")
    return paths


def update_of(path: Path) -> int:
    """The update before which a moment was saved. Raises CheckpointError."""
    return checkpoints.load_metadata(path, "update")["update"]


def check_config(paths: Sequence[Path], config: Config) -> None:
    """ValueError for a moment of a model with another configuration. Raises CheckpointError."""
    for path in paths:
        if checkpoints.load_metadata(path, "config")["config"] != config.to_dict():
            raise ValueError(f"{path} is a moment of another model; choose the folder of the run of this one")


def as_kept(path: Path, config: Config) -> nn.Module:
    """The model of a saved moment, in evaluation mode. ValueError for a moment of another model; raises
    CheckpointError."""
    check_config([path], config)
    with Unfilled():
        model = build(config).eval()
    return _filled(model, _kept_weights(path))


def spaced(losses: Sequence[float], count: int) -> list[int]:
    """The indices of `count` losses, including the first and the last, at about equal distances of the loss.

    losses : in training order, so mostly falling. ValueError for a count below 2, or above the number of losses.
    """
    within("count", count, 2, len(losses))
    wanted = np.linspace(losses[0], losses[-1], count)[1:-1]
    chosen = [0]
    for number, loss in enumerate(wanted, start=1):
        free = range(chosen[-1] + 1, len(losses) - (count - 1 - number))
        chosen.append(min(free, key=lambda place: abs(losses[place] - loss)))
    return [*chosen, len(losses) - 1]


def path_for(name: str, root: Path | None = None) -> Path:
    """The file of the packed moments of `name` below `root`, or beside the model; it may not exist."""
    return checkpoint_files.root_of(name, root) / MOMENTS / f"{name}.moments"


def untrained(config: Config, seed: int) -> nn.Module:
    """The initial model of a run with that seed, in evaluation mode. torch's generator is not changed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed the GPU
        return build(config).eval()


def pack(
    name: str,
    root: Path,
    paths: Sequence[Path],
    losses: Sequence[float],
    near: Callable[[int, nn.Module], bool] = lambda number, model: False,
) -> Path:
    """Pack kept moments of the run of the checkpoint `name` below `root`, with their losses; returns the file.

    paths : the untrained model first, the trained one last. near : is the restored moment of that number (from 1) near
    enough to the saved one? The coarsest steps for which this holds are used; without it the finest. Raises
    CheckpointError, and ValueError for moments of another model or another seed, or of a run with --start.
    """
    check_count(paths, losses)
    config, seed = checkpoint_files.read_config(name, root), checkpoint_files.read_card(name, root).get("seed", 1)
    check_config(paths, config)
    model = untrained(config, seed)
    first = _weights(model)
    start, *tensors = (_kept_weights(path) for path in paths)
    if not np.allclose(_sample(start), _sample(first), atol=NEAR):
        raise ValueError(f"{paths[0]} must hold the untrained model of a run without --start, with the seed {seed}")
    entries = codec.encode(first, tensors, lambda number, weights: near(number + 1, _filled(model, weights)))
    listed = [Moment(update_of(path), loss) for path, loss in zip(paths, losses)]
    container.write(path_for(name, root), Header(config, seed, _sample(first), listed).to_dict(), entries)
    return path_for(name, root)


def moments(name: str, root: Path | None = None) -> list[Moment]:
    """The moments of `name`, the untrained model first; () if none are packed. Raises CheckpointError."""
    path = path_for(name, root)
    return _header(path).moments if path.is_file() else []


def restore(name: str, number: int, root: Path | None = None) -> nn.Module:
    """The model as it was at the moment `number` of `moments`, counted from 0, in evaluation mode.

    Raises CheckpointError; IndexError when there is no such moment.
    """
    path = path_for(name, root)
    header = _header(path)
    if number not in range(len(header.moments)):
        raise IndexError(f"{name} has moments 0 to {len(header.moments) - 1}; got {number}")
    return next(model for at, model in restored(name, root) if at == number)


def restored(name: str, root: Path | None = None) -> Iterator[tuple[int, nn.Module]]:
    """The number and the model of every moment, in the order in which they are stored, which begins with the untrained
    one. It is always the same model object with new weights. Raises CheckpointError."""
    path = path_for(name, root)
    header = _header(path)
    model = _untrained(header, path)
    first = _weights(model)
    yield 0, model
    entries = container.read(path, {key: value.shape for key, value in first.items()}, len(header.moments) - 1)
    for place, weights in codec.decode(first, entries):
        if not all(np.isfinite(value).all() for value in weights.values()):
            raise checkpoint_files.CheckpointError(
                f"{short(path)} is damaged (some weights are not numbers); restore it"
            )
        yield place + 1, _filled(model, weights)


def _header(path: Path) -> Header:
    try:
        return checked(container.read_about(path))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise unreadable(path, error) from None


def _untrained(header: Header, path: Path) -> nn.Module:
    """The untrained model that a file describes. Its size is checked before memory is allocated. Raises
    CheckpointError."""
    try:
        with torch.device("meta"), Unfilled():
            size = sum(parameter.numel() for parameter in build(header.config).parameters())
        if size > LARGEST:
            raise ValueError(f"a model of {size:,} weights, of at most {LARGEST:,}")
        model = untrained(header.config, header.seed)
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise unreadable(path, error) from None
    begins = _sample(_weights(model))
    if len(begins) != len(header.begins) or not np.allclose(header.begins, begins, atol=NEAR):
        raise checkpoint_files.CheckpointError(
            f"{short(path)} was packed where the seed gives other initial weights; pack it again"
        )
    return model


def _kept_weights(path: Path) -> codec.Weights:
    """The weights of a saved moment. ValueError if some are not finite."""
    weights = {key: value.float().numpy() for key, value in checkpoints.load_tensors(path).items()}
    if not all(np.isfinite(value).all() for value in weights.values()):
        raise ValueError(f"{path} has weights that are not numbers, or too large for 16 bits")
    return weights


def _weights(model: nn.Module) -> codec.Weights:
    return {key: value.numpy().copy() for key, value in model.state_dict().items()}


def _filled(model: nn.Module, weights: codec.Weights) -> nn.Module:
    model.load_state_dict({key: torch.from_numpy(np.ascontiguousarray(value)) for key, value in weights.items()})
    return model


def _sample(weights: codec.Weights) -> list[float]:
    """One number of every tensor, as a fingerprint of the weights."""
    return [round(float(value.ravel()[value.size // 2]), 4) for _, value in sorted(weights.items())]
