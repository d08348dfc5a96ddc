"""The training configuration of a model: its mechanism's, changed by its task and by the caller."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from attnviz import mechanisms
from attnviz.data import tasks
from attnviz.data.augmentation import augmenter
from attnviz.data.limits import LONGEST
from attnviz.data.tokenizer import SPECIALS
from attnviz.mechanisms import Config
from attnviz.models.checkpoint_files import brief
from attnviz.models.checks import memory, values
from attnviz.networks import decode, registry
from attnviz.networks.registry import build
from attnviz.training.config import TrainingConfig

# Distillation overfits less: soft targets are seldom sure, and n-grams add texts. The `rates` of the recipe stay,
# because the full learning rate was no better here either.
DISTILLATION = {
    "epochs": 8,
    "learning_rate": 3e-3,
    "label_smoothing": 0.0,
    "weight_decay": 0.01,
    "consistency": 0.0,
    "word_dropout": 0.0,
    "ngrams": 6,
    "options": {"dropout": 0.1, "attention_dropout": 0.1},
}


def recipe(mechanism: str) -> TrainingConfig:
    """The recipe of a mechanism. ValueError for an unknown one."""
    return TrainingConfig(mechanism, **mechanisms.find(mechanism).training)


def training_config(pair: str, mechanism: str, options: dict | None = None, **changes) -> TrainingConfig:
    """The recipe of a mechanism, then the changes of the task, of the mechanism on this task, and `changes`. `options`
    are added to the model's options. Options that a task changes for all are left out where the network has none such.

    ValueError for an unknown mechanism, a mechanism of another task, and options with which no model can be built.
    """
    base = recipe(mechanism)
    task = tasks.find(pair)
    if mechanism not in task.mechanisms:
        raise ValueError(f"{mechanism} is not for {pair}; choose one of {', '.join(task.mechanisms)}")
    available = registry.options(mechanism)
    of_task = task.recipe_changes.get("options", {})
    of_task = task.recipe_changes | {"options": {name: of_task[name] for name in of_task if name in available}}
    own = mechanisms.find(mechanism).training_on.get(pair, {})
    joined = {"options": {}}
    for change in ({"options": base.options}, of_task, own, changes, {"options": options or {}}):
        joined = {**joined, **change, "options": {**joined["options"], **change.get("options", {})}}
    config = replace(base, **joined)
    _check_model(mechanism, config.vocabulary, config.options, task.labels)
    if config.augment:
        augmenter.check(pair)
    return config


def _check_model(mechanism: str, vocabulary: int, options: dict, labels: Sequence[str]) -> None:
    """ValueError for options with which no model can be built or trained here: said before any data is read."""
    try:
        _check_numbers(Config(mechanism, len(SPECIALS) + 1, options))
        with torch.device("meta"):  # shapes without numbers
            build(Config(mechanism, len(SPECIALS) + 1, options))
        _check_sizes(mechanism, options, labels)
        memory.check_trainable(Config(mechanism, max(vocabulary, len(SPECIALS) + 1), options))
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # torch raises all of them
        raise ValueError(f"{mechanism} cannot be built with {options}: {brief(error)}") from None


def _check_numbers(config: Config) -> None:
    """ValueError for sizes that no checkpoint may have, with what this machine has: the loader would refuse them."""
    try:
        whole = {name: value for name, value in config.options.items() if type(value) is int}
        values.config(config.to_dict() | {"options": whole})
    except ValueError as error:
        raise ValueError(f"{error} ({memory.in_words()})") from None


def _check_sizes(mechanism: str, options: dict, labels: Sequence[str]) -> None:
    """ValueError for a model with too few positions for the longest text and its output, or with other classes."""
    kind = mechanisms.find(mechanism)
    needed = 2 if kind.writes else LONGEST if kind.classifies else decode.limit(LONGEST)
    if options.get("longest", needed) < needed:
        raise ValueError(f"longest must be at least {needed}, for texts of {LONGEST} pieces and their output")
    if (registry.options(mechanism) | options).get("classes", len(labels)) != len(labels):
        raise ValueError(f"classes must be {len(labels)}: {', '.join(labels)}")
