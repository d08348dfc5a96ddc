"""The training configuration of each mechanism. What a task changes in it is in the table of tasks (data/tasks)."""

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

_RECURRENT = {"epochs": 20, "options": {"dropout": 0.3}}
# At the full learning rate the bilinear score saturates within one epoch: all weights become 0 or 1, and little is
# learnt.
_BILINEAR = _RECURRENT | {"rates": {"attention.key.weight": 0.1}}
# A key outside the window gives no gradient that would move the window to it. So the predicted place must not move
# before the decoder's state says where in the sentence it is.
_LOCAL = _RECURRENT | {
    "rates": _BILINEAR["rates"] | dict.fromkeys(["attention.hidden.weight", "attention.place.weight"], 0.03)
}
# The dot product saturates in the same way once the GRU units do, so their input weights learn more slowly.
_INPUTS = ["encoder.rnn.weight_ih_l0", "encoder.rnn.weight_ih_l0_reverse", "cell.weight_ih"]
_DOT = _RECURRENT | {"rates": dict.fromkeys(_INPUTS, 0.2)}
_PROJECTIONS = [
    f"{name}.{kind}" for name in ("query", "memory", "output") for kind in ("weight", "bias")
]  # of MultiHead
# Where a mechanism differs from the defaults of TrainingConfig. All mechanisms of a pair share data and vocabulary.
RECIPES = {
    "fixed-context": _RECURRENT,
    "bahdanau": _RECURRENT,
    "luong-dot": _DOT,
    "luong-general": _BILINEAR,
    "luong-concat": _RECURRENT,
    "luong-local": _LOCAL,
    "scaled-dot": _RECURRENT,
    "transformer": {
        "epochs": 55,
        "learning_rate": 2e-3,
        "options": {"width": 192, "hidden": 768, "layers": 3, "heads": 4, "dropout": 0.3},
    },
    # At the full learning rate the self-attention overfits the few training sentences: the dev loss rises from epoch 2
    # on.
    "self-attention": {
        "epochs": 8,
        "learning_rate": 2e-3,
        "warmup": 100,
        "average": 0.98,
        "weight_decay": 0.2,
        "consistency": 6.0,
        "word_dropout": 0.4,
        "vocabulary": 8000,
        "rates": {f"encoder.0.{part}": 0.05 for part in _PROJECTIONS},
        "options": {"attention_dropout": 0.3},
    },
    "writer": {
        "epochs": 5,
        "batch_tokens": 2048,
        "learning_rate": 2e-3,
        "warmup": 100,
        "label_smoothing": 0.0,
        "weight_decay": 0.05,
        "beta2": 0.98,
        "average": 0.99,
        "decay": 0.3,
        "muon": 1.0,
        "vocabulary": 4000,
        "options": {"width": 192, "heads": 6, "layers": 5, "hidden": 512, "dropout": 0.1, "longest": 512},
    },
}
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
    """The recipe of a mechanism. ValueError when there is none."""
    if mechanism not in RECIPES:
        raise ValueError(f"unknown mechanism {mechanism!r:.80}; choose one of {', '.join(RECIPES)}")
    return TrainingConfig(mechanism, **RECIPES[mechanism])


def training_config(pair: str, mechanism: str, options: dict | None = None, **changes) -> TrainingConfig:
    """The recipe of a mechanism, then the changes of the task, then `changes`. `options` are added to the model's
    options.

    ValueError for an unknown mechanism, a mechanism of another task, and options with which no model can be built.
    """
    base = recipe(mechanism)
    task = tasks.find(pair)
    if mechanism not in task.mechanisms:
        raise ValueError(f"{mechanism} is not for {pair}; choose one of {', '.join(task.mechanisms)}")
    of_task = [task.recipe_changes.get(name, {}) for name in ("", mechanism)]
    joined = {"options": {}}
    for change in ({"options": base.options}, *of_task, changes, {"options": options or {}}):
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
