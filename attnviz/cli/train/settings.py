"""From the arguments of `train` to a training configuration, an output folder, and the command on the card."""

import json
import shlex
import sys
from argparse import Namespace
from dataclasses import fields
from pathlib import Path

from attnviz import mechanisms
from attnviz.cli.shared import arguments
from attnviz.cli.train.corpus import file_labels, own_files
from attnviz.data import corpora, tasks
from attnviz.models import checkpoint_files
from attnviz.models.names import CARD, CONFIG, ModelName
from attnviz.networks.registry import options as model_options
from attnviz.training import recipes
from attnviz.training.config import TrainingConfig
from attnviz.training.trainers import distillation, saved_run

FEW = 10_000  # pairs; a smaller corpus gets smaller batches and more epochs
# Arguments that change the result, so they are part of the command on the card.
_RECORDED = ("val_size", "style", "limit", "repeat", "epochs", "patience", "batch_tokens", "seed", "threads")
# The training settings that --set may name, and their type.
_SETTINGS = {field.name: field.type for field in fields(TrainingConfig) if field.type in (int, float)}


def read(args: Namespace) -> dict:
    """The settings that the arguments change, with `options` of the model. ValueError for arguments that cannot be."""
    options = {name: value for name, value in args.set if name not in _SETTINGS}
    settings = {name: _number(name, value) for name, value in args.set if name in _SETTINGS}
    _check_options(args.mechanism, options)
    _check_folders(args)
    given = {name: getattr(args, name) for name in ("epochs", "batch_tokens", "seed")}
    given = {name: value for name, value in given.items() if value is not None}
    recipe = recipes.DISTILLATION if args.teacher and tasks.find(args.pair).classifies else {}
    return recipe | settings | given | {"options": recipe.get("options", {}) | options}


def config(args: Namespace, changes: dict) -> TrainingConfig:
    """The training configuration. ValueError when it is impossible, also with the teachers."""
    result = recipes.training_config(args.pair, args.mechanism, **changes)
    distillation.check(result, args.teacher)
    return result


def for_corpus(args: Namespace, corpus: corpora.Corpus) -> dict:
    """What a small corpus of one's own changes in the recipe: smaller batches and more epochs, so that there are enough
    updates."""
    if not own_files(args) or len(corpus.train) >= FEW:
        return {}
    return {"batch_tokens": 500, "epochs": 3 * recipes.recipe(args.mechanism).epochs}


def _check_options(mechanism: str, options: dict) -> None:
    """ValueError for a name that is neither an option of the model nor a training setting."""
    allowed = model_options(mechanism) if mechanism in mechanisms.ALL else options
    if unknown := [name for name in options if name not in allowed]:
        raise ValueError(
            f"{unknown[0]} is neither an option of {mechanism} ({', '.join(allowed)}) nor a training setting "
            f"({', '.join(_SETTINGS)})"
        )


def _check_folders(args: Namespace) -> None:
    """ValueError for a folder that does not hold what its argument needs."""
    needed = [("--start", "en-fr/bahdanau", args.start)] if args.start else []
    needed += [("--teacher", "sst2/self-attention", teacher) for teacher in args.teacher]
    for option, example, folder in needed:
        if not (Path(folder) / CONFIG).is_file():
            raise ValueError(
                f"{option} must be the folder of a checkpoint, such as checkpoints/{example}; got {folder or 'nothing'}"
            )
    if args.out and Path(args.out).exists() and not Path(args.out).is_dir():
        raise ValueError(f"--out must be a folder; got the file {args.out}")


def _number(name: str, value: int | float | str) -> int | float:
    """The value of a setting. ValueError when it is not a number, or a fraction where only whole numbers fit."""
    whole = _SETTINGS[name] is int
    if isinstance(value, str | bool) or (whole and not isinstance(value, int)):
        raise ValueError(f"{name} must be a {'whole ' if whole else ''}number; got {value!r:.80}")
    return value


def output_folder(args: Namespace) -> Path:
    """The folder of checkpoints to train in. A finished model without a run to resume is not overwritten without
    --restart."""
    name, root = str(ModelName(args.pair, args.mechanism)), Path(args.out) if args.out else checkpoint_files.roots()[0]
    finished = (root / name / CARD).exists() and not saved_run.exists(root / name)
    if args.restart or not finished:
        return root
    if args.out:
        raise ValueError(f"{root / name} holds a finished model; choose another --out, or replace it with --restart")
    print(f"{root / name} holds a finished model; training in {arguments.TRAINED / name} instead", file=sys.stderr)
    return arguments.TRAINED


def command(args: Namespace) -> str:
    """The command that repeats the run elsewhere. Folders are left to the reader."""
    words = ["python", "-m", "attnviz", "train", "--pair", args.pair, "--mechanism", args.written_mechanism]
    files = own_files(args)
    labels = file_labels(files.values())
    for name, path in files.items():
        words += [_option(name), labels[path]]
    words += [] if files or tasks.find(args.pair).generated else ["--data", "DIR"]
    words += ["--start", last_folders(args.start, 2)] if args.start else []
    for teacher in args.teacher:
        words += ["--teacher", last_folders(teacher, 3)]
    for name in _RECORDED:
        if (value := getattr(args, name)) is not None:
            words += [_option(name), str(value)]
    for name, value in args.set:
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _option(name: str) -> str:
    """source_file -> --source-file."""
    return f"--{name.replace('_', '-')}"


def last_folders(folder: str, count: int) -> str:
    return "/".join(Path(folder).resolve().parts[-count:])
