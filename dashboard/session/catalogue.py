"""The models that the page offers: the checkpoints below one folder. No torch; only their JSON files are read."""

import os
from pathlib import Path

from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName
from dashboard.choices import pairs


def root() -> Path:
    """The checkpoints folder: ATTNVIZ_CHECKPOINTS, or the project's own."""
    return Path(os.environ.get("ATTNVIZ_CHECKPOINTS") or checkpoint_files.ROOT)


def offered() -> dict[str, list[str]]:
    """pair -> its mechanisms, in the order of `MECHANISMS`. A checkpoint may be damaged.

    Without any checkpoint, the default models, so that the page can say that they are missing.
    """
    mechanisms: dict[str, list[str]] = {}
    for name in _named():
        if name.task.translates and name.mechanism in MECHANISMS:
            mechanisms.setdefault(name.pair, []).append(name.mechanism)
    in_order = {pair: sorted(mechanisms[pair], key=list(MECHANISMS).index) for pair in pairs.ordered(mechanisms)}
    return in_order or {pairs.DEFAULT: list(pairs.FIRST)}


def attending() -> dict[str, list[str]]:
    """pair -> its mechanisms that attend; pairs without one are left out."""
    every = {pair: [name for name in names if MECHANISMS[name].kinds] for pair, names in offered().items()}
    return {pair: names for pair, names in every.items() if names}


def many_headed() -> list[str]:
    """The models with several heads in a layer, those that translate first."""
    translating = [name for pair in offered() for name in many_headed_of(pair)]
    return translating + [
        str(name) for name in _named() if name.task.classifies and name.mechanism in name.task.mechanisms
    ]


def many_headed_of(pair: str) -> list[str]:
    """The models of a language pair with several heads in a layer."""
    return [str(ModelName(pair, name)) for name in offered().get(pair, []) if MECHANISMS[name].multi_head]


def _named() -> list[ModelName]:
    """All checkpoints but those in folders whose names are no text (bytes that are not UTF-8): no page can show it."""
    names = checkpoint_files.names(root())
    return [
        ModelName.parse(name) for name in names if name.isascii() or name.encode("utf-8", "replace").decode() == name
    ]


def layers_and_heads(model: str | None) -> tuple[int, int]:
    """The numbers of layers and heads of a model; (1, 1) for None, or when its config cannot be read."""
    if model is None:
        return 1, 1
    try:
        options = checkpoint_files.read_config(model, root()).options
    except ValueError:
        return 1, 1
    counts = options.get("layers"), options.get("heads")
    return counts if all(type(count) is int and count > 0 for count in counts) else (1, 1)
