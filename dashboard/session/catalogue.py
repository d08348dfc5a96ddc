"""The models that the page offers: the checkpoints of `checkpoint_files.roots`. No torch; only JSON files are read."""

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName, is_hugging_face
from dashboard.choices import pairs

Value = TypeVar("Value")

_run = threading.local()  # values : what `once` has found in the run of this thread


@contextmanager
def run() -> Iterator[None]:
    """A run of the page, or of a part of it: within the block `once` looks at files once."""
    before = getattr(_run, "values", None)
    _run.values = {} if before is None else before
    try:
        yield
    finally:
        _run.values = before


def once(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function, called once with the same arguments in a `run`; elsewhere at every call. A page asks for the folder
    and the files of a model twenty times, and the next run sees what has changed. Values are not to be written to."""

    @functools.wraps(function)
    def call(*arguments):
        values = getattr(_run, "values", None)
        if values is None:
            return function(*arguments)
        key = (function, arguments)
        if key not in values:
            values[key] = function(*arguments)
        return values[key]

    return call


@once
def root_of(name: str) -> Path:
    """The folder of checkpoints that has a model. Where the page offers other pairs alone, it is this project's own:
    the chapters of Learn need its models."""
    if is_hugging_face(name):  # its files lie elsewhere
        return checkpoint_files.ROOT
    root = checkpoint_files.root_of(name)
    if os.path.isdir(root / name) or not os.path.isdir(checkpoint_files.ROOT / name):
        return root
    pair = ModelName.parse(name).pair
    has_pair = any(os.path.isdir(folder / pair) for folder in checkpoint_files.roots())
    return root if has_pair or not checkpoint_files.names() else checkpoint_files.ROOT


def is_there(name: str) -> bool:
    """Is there a folder of this model?"""
    return os.path.isdir(root_of(name) / name)


def study_file(name: str) -> Path:
    """The results of a study: of the first folder that has some, or of this project."""
    files = [root / "studies" / f"{name}.json" for root in (*checkpoint_files.roots(), checkpoint_files.ROOT)]
    return next(filter(Path.is_file, files), files[0])


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
    """The models with several heads in a layer: those that translate, then those that write, then classifiers."""
    translating = [name for pair in offered() for name in many_headed_of(pair)]
    others = [name for name in _named() if not name.task.translates and name.mechanism in name.task.mechanisms]
    return translating + [str(name) for name in sorted(others, key=lambda name: name.task.classifies)]


def many_headed_of(pair: str) -> list[str]:
    """The models of a language pair with several heads in a layer."""
    return [str(ModelName(pair, name)) for name in offered().get(pair, []) if MECHANISMS[name].multi_head]


@once
def _named() -> list[ModelName]:
    """All checkpoints but those in folders whose names are no text (bytes that are not UTF-8): no page can show it."""
    names = checkpoint_files.names()
    return [
        ModelName.parse(name) for name in names if name.isascii() or name.encode("utf-8", "replace").decode() == name
    ]


def layers_and_heads(model: str | None) -> tuple[int, int]:
    """The numbers of layers and heads of a model; (1, 1) for None, or when its config cannot be read."""
    if model is None:
        return 1, 1
    try:
        options = checkpoint_files.read_config(model, checkpoint_files.root_of(model)).options
    except ValueError:
        return 1, 1
    counts = options.get("layers"), options.get("heads")
    return counts if all(type(count) is int and count > 0 for count in counts) else (1, 1)
