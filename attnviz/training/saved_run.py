"""A training run on disk: training.safetensors holds everything that resuming needs. A resumed run is bit for bit the
same.
"""

import operator
from dataclasses import asdict
from pathlib import Path

import torch

from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.names import RUN
from attnviz.training.optimizer import learning_rate
from attnviz.training.recipes import TrainingConfig
from attnviz.training.trainer import Trainer

FILE = RUN


def exists(folder: Path) -> bool:
    """Does the folder of a checkpoint hold a training run?"""
    return (folder / FILE).exists()


def read(folder: Path) -> dict:
    """The metadata of a saved run: settings, seconds, history and losses. Raises CheckpointError."""
    return checkpoints.load_metadata(folder / FILE, "settings", "seconds", "history", "losses")


def save(trainer: Trainer, folder: Path) -> None:
    """Write the whole state of a trainer; on failure the file is unchanged."""
    tensors = trainer.optimizer.state()
    tensors["rng"] = torch.get_rng_state()
    if trainer.device == "cuda":
        tensors["rng_cuda"] = torch.cuda.get_rng_state()
    tensors["place"] = torch.tensor([trainer.epoch, trainer.batch, trainer.optimizer.updates])
    record = {
        "settings": asdict(trainer.config),
        "seconds": trainer.seconds,
        "history": trainer.history,
        "losses": trainer.losses,
        "data": trainer.batches.digest,
    }
    checkpoints.save_tensors(folder / FILE, tensors, record)


def restore(trainer: Trainer, folder: Path) -> None:
    """Continue from `save`. ValueError when settings or data differ, CheckpointError when the file is damaged.

    The number of epochs may differ if all updates so far would have been the same.
    """
    record = read(folder)
    tensors = checkpoints.load_tensors(folder / FILE)
    difference = _settings_difference(record["settings"], trainer.config, _same_so_far(tensors, record, trainer))
    if not difference and record.get("data") != trainer.batches.digest:
        difference = "data"
    if difference:
        raise ValueError(
            f"{folder} holds a training run with different {difference}; give the same again, use --restart, or choose "
            "another --out"
        )
    try:
        _load(trainer, tensors)
    except (KeyError, RuntimeError) as error:
        raise checkpoint_files.CheckpointError(f"{folder / FILE} does not fit the model ({error})") from None
    trainer.seconds, trainer.history = record["seconds"], record["history"]
    trainer.losses = tuple(record["losses"])


def _load(trainer: Trainer, tensors: dict[str, torch.Tensor]) -> None:
    epoch, batch, updates = tensors["place"].tolist()
    trainer.optimizer.load_state(tensors, updates)
    torch.set_rng_state(tensors["rng"])
    if trainer.device == "cuda" and "rng_cuda" in tensors:  # a run that began on the CPU has none
        torch.cuda.set_rng_state(tensors["rng_cuda"])
    trainer.epoch, trainer.batch = epoch, batch


def _same_so_far(tensors: dict[str, torch.Tensor], record: dict, trainer: Trainer) -> bool:
    """Would the saved updates have been the same with the trainer's number of epochs? Compares their learning rates: a
    constant rate does not depend on the end of the run until it decays."""
    try:
        before, updates = TrainingConfig(**record["settings"]), int(tensors["place"][2])
    except (TypeError, ValueError, KeyError):  # what is wrong is said elsewhere
        return False
    now, total = trainer.config, trainer.batches.total
    totals = ((total // now.epochs * before.epochs, before), (total, now))
    rates = ([learning_rate(update, *ends) for update in range(updates)] for ends in totals)
    return not now.piece_dropout and all(map(operator.eq, *rates))


def _settings_difference(saved: dict, config: TrainingConfig, other_epochs: bool) -> str:
    """In words, the settings of a saved run that differ from the configuration; "" if none do. other_epochs : the
    number of epochs may differ."""
    try:
        before, now = asdict(TrainingConfig(**saved)), asdict(config)
    except (TypeError, ValueError):  # settings that this version does not know
        return "settings"
    for settings in (before, now):
        for name in ("start", "teachers"):
            settings[name] = " ".join(digest[:8] for digest in settings[name].split()) or "none"
    if other_epochs:
        before["epochs"] = now["epochs"]
    different = "; ".join(f"{name} {before[name]}, now {now[name]}" for name in before if before[name] != now[name])
    return different and f"settings ({different})"
