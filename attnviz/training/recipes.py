"""How a model is trained: one frozen configuration, checked when it is made. It is stored on the card.

It is the recipe of the mechanism, changed by the task and by the caller.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from attnviz import mechanisms
from attnviz.data import MOST_PIECES, augmentation, tasks
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SPECIALS
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_values, machine
from attnviz.models.checkpoint_files import brief
from attnviz.networks import decode, registry
from attnviz.networks.registry import build

LETTERS = range(3, 11)  # of a sequence of a toy task, in a short run
MOST_EPOCHS = 1_000_000  # of a run that a clock ends; a larger number is a mistake


@dataclass(frozen=True)
class TrainingConfig:
    """How to train one model. Lengths and batch sizes count pieces. ValueError for a number out of range."""

    mechanism: str
    epochs: int = 11
    batch_tokens: int = 2000
    learning_rate: float = 1e-3
    warmup: int = 400  # updates; at most a tenth of all updates are used
    label_smoothing: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    beta2: float = 0.999  # decay of Adam's mean of squared gradients
    decay: float = 0.0  # last share of the updates, in which the rate falls to 0; before it is constant. 0: a cosine
    muon: float = 0.0  # factor on the learning rate of matrices within the network, under Muon; 0 means AdamW for all
    average: float = 0.999  # decay of the moving average of the weights, for each update
    consistency: float = 0.0  # alpha of R-Drop, Liang et al. 2021, eq. 4; 0 means one pass and no consistency loss
    word_dropout: float = 0.0  # probability that a source piece is replaced by <unk>
    piece_dropout: float = 0.0  # probability that a BPE merge is skipped, in the first four fifths of the epochs
    augment: float = 0.0  # factor on the shares of sentences that are changed (data/augmentation); 0 means none
    start: str = ""  # SHA-256 of the initial weights; "" means random weights
    teachers: str = ""  # SHA-256 of each teacher's weights, separated by spaces; "" means training on labels
    ngrams: int = 0  # n-grams drawn from each sentence for distillation; needs teachers
    vocabulary: int = 8000
    seed: int = 1
    rates: dict = field(default_factory=dict)  # parameter name -> factor on the learning rate, where it is not 1
    passes: dict = field(default_factory=dict)  # part of the texts -> passes in which each of its texts is read once
    options: dict = field(default_factory=dict)  # of the model, see networks.registry.options

    def __post_init__(self):
        for name, fits, wanted in _BOUNDS:
            if not fits(getattr(self, name)):
                raise ValueError(f"{name} must be {wanted}; got {getattr(self, name)}")


def _bound(names: str, fits: Callable[[float], bool], wanted: str) -> list[tuple]:
    return [(name, fits, wanted) for name in names.split()]


# The range of each number. NaN is in none of them.
_BOUNDS = [
    *_bound("epochs", lambda x: 0 < x <= MOST_EPOCHS, f"from 1 to {MOST_EPOCHS:,}"),
    *_bound("batch_tokens learning_rate clip vocabulary", lambda x: 0 < x < math.inf, "positive and finite"),
    *_bound("warmup weight_decay muon", lambda x: 0 <= x < math.inf, "at least 0 and finite"),
    *_bound("consistency ngrams augment", lambda x: 0 <= x < math.inf, "at least 0 and finite"),
    *_bound("label_smoothing average beta2 decay", lambda x: 0 <= x < 1, "at least 0 and below 1"),
    *_bound("word_dropout piece_dropout", lambda x: 0 <= x < 1, "at least 0 and below 1"),
    *_bound("seed", lambda x: 0 <= x < 2**63, "at least 0 and below 2^63"),
]


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
    are added to the model's options. Options that a task sets for all mechanisms are left out if the network lacks
    them.

    ValueError for an unknown mechanism, a mechanism of another task, and options with which no model can be built.
    """
    base = recipe(mechanism)
    task = tasks.find(pair)
    if mechanism not in task.mechanisms:
        raise ValueError(f"{mechanism} is not for {pair}; choose one of {', '.join(task.mechanisms)}")
    available = registry.options(mechanism)
    of_task = task.recipe_changes.get("options", {})
    of_task = {**task.recipe_changes, "options": {name: of_task[name] for name in of_task if name in available}}
    own = mechanisms.find(mechanism).training_on.get(task.trained_like or pair, {})
    joined: dict[str, Any] = {"options": {}}
    for change in ({"options": base.options}, of_task, own, changes, {"options": options or {}}):
        joined = {**joined, **change, "options": {**joined["options"], **change.get("options", {})}}
    config = replace(base, **joined)
    _check_model(mechanism, config.vocabulary, config.options, task.labels)
    machine.check_batch(config.batch_tokens, config.vocabulary)
    if config.augment:
        augmentation.check(pair)
    return config


def _check_model(mechanism: str, vocabulary: int, options: dict, labels: Sequence[str]) -> None:
    """ValueError for options with which no model can be built or trained here; raised before any data is read."""
    try:
        _check_numbers(Config(mechanism, max(vocabulary, len(SPECIALS) + 1), options))
        with torch.device("meta"):  # shapes without numbers
            build(Config(mechanism, len(SPECIALS) + 1, options))
        _check_sizes(mechanism, options, labels)
        machine.check_trainable(Config(mechanism, max(vocabulary, len(SPECIALS) + 1), options))
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # torch raises all of them
        raise ValueError(
            f"{mechanism} cannot be built with {options}: {machine.too_large(error) or brief(error)}"
        ) from None


def short_run(mechanism: str, options: dict, seed: int = 1, **changes: Any) -> TrainingConfig:
    """The recipe of a run of a minute on a toy task."""
    recipe: dict[str, Any] = dict(
        epochs=MOST_EPOCHS,  # the time ends the run, also of few pairs
        batch_tokens=512,  # about 64 sequences
        learning_rate=3e-3,
        warmup=30,
        label_smoothing=0.0,
        average=0.95,
        decay=1e-6,  # no end is known, towards which the rate could fall
    )
    return TrainingConfig(mechanism, **recipe | changes, seed=seed, options=options)


def short(pairs: Pairs) -> Pairs:
    """The pairs whose source has as many letters as LETTERS allows."""
    return [pair for pair in pairs if len(pair[0].split()) in LETTERS]


def _check_numbers(config: Config) -> None:
    """ValueError for sizes that the checkpoint loader would refuse; the message names this machine's memory."""
    try:
        whole = {
            name: value
            for name, value in config.options.items()
            if type(value) is int or name in checkpoint_values.SIZES
        }
        checkpoint_values.config(config.to_dict() | {"options": whole})
    except ValueError as error:
        large = any(type(value) is int and value > checkpoint_values.LAYERS for value in whole.values())
        raise ValueError(f"{error}{f' ({machine.memory_in_words()})' if large else ''}") from None


def _check_sizes(mechanism: str, options: dict, labels: Sequence[str]) -> None:
    """ValueError for a model with too few positions for the longest text and its output, or with a wrong number of
    classes."""
    kind = mechanisms.find(mechanism)
    needed = 2 if kind.writes else MOST_PIECES if kind.classifies else decode.limit(MOST_PIECES)
    if options.get("longest", needed) < needed:
        raise ValueError(f"longest must be at least {needed}, for texts of {MOST_PIECES} pieces and their output")
    if (registry.options(mechanism) | options).get("classes", len(labels)) != len(labels):
        raise ValueError(f"classes must be {len(labels)}: {', '.join(labels)}")
