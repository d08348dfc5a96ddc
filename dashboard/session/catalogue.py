"""The models that the page offers: the checkpoints of `checkpoint_files.roots`, and to a visitor those that they have
trained. No torch; only JSON files are read."""

import functools
import itertools
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attnviz import mechanisms
from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.models.names import HuggingFaceName, ModelName, is_hugging_face, without_prefix
from dashboard.choices import pairs, settings

Value = TypeVar("Value")
# in the session: task -> pair and folder of the models that the visitor has trained and opened (`memory.claim`)
TRAINED = "models of train"

ON_HUB = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_places: dict[str, str] = {}  # place of a model of the transformers library -> its name on the page
_naming, _MOST = threading.Lock(), 1000  # a visitor may type any text
_run = threading.local()  # values : what `once` has found in the run of this thread


@contextmanager
def without_damaged(what: str) -> Iterator[None]:
    """For a file that the page can do without: an error ends the block, and the log tells it to whoever runs the
    server. what : the file, or its model."""
    try:
        yield
    except (ValueError, OSError, KeyError, TypeError) as error:
        logging.getLogger("attnviz").warning("the page does without a file of %s: %r", what, error)


@contextmanager
def run() -> Iterator[None]:
    """A run of the page, or of a part of it; within the block `once` caches."""
    before = getattr(_run, "values", None)
    _run.values = {} if before is None else before
    try:
        yield
    finally:
        _run.values = before


def once(function: Callable[..., Value]) -> Callable[..., Value]:
    """Cache a function's results within a `run`; elsewhere it is called every time. A page looks up the folder and
    files of a model twenty times, and the next run must see changes. Do not modify the values."""

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
    """The folder of checkpoints that has a model. If the page offers only other pairs, it is this project's own,
    because the chapters of Learn need its models."""
    if is_hugging_face(name):  # its files lie elsewhere
        return checkpoint_files.ROOT
    if trained := pairs.of_visits.get(ModelName.parse(name).pair):
        return Path(trained.name)
    root = checkpoint_files.root_of(name)
    if os.path.isdir(root / name) or not os.path.isdir(checkpoint_files.ROOT / name):
        return root
    pair = ModelName.parse(name).pair
    has_pair = any(os.path.isdir(folder / pair) for folder in checkpoint_files.roots())
    return root if has_pair or not checkpoint_files.names() else checkpoint_files.ROOT


def guest(typed: str) -> str:
    """The name on the page of a model of the transformers library, with `hf:` before it: its name on the hub, or the
    last part of its folder, numbered if another place has it. No page or file shows folders of this machine."""
    name = HuggingFaceName(without_prefix(typed))
    short = name.place if ON_HUB.fullmatch(name.place) and not is_folder(name) else _last(name.place)
    with _naming:
        taken = {named for place, named in _places.items() if place != name.place}
        numbered = (f"{short}-{number}" for number in itertools.count(2))
        free = next(own for own in itertools.chain([short], numbered) if own not in taken)
        called = _places.setdefault(name.place, free)
        while len(_places) > _MOST:
            del _places[next(iter(_places))]
    return f"{HuggingFaceName(called)}{name.suffix}"


def is_folder(name: HuggingFaceName) -> bool:
    r"""Is it a folder of this machine? A path like \\server\share would contact another machine."""
    return not settings.is_elsewhere(name.place) and os.path.isdir(os.path.expanduser(name.place))


def _last(place: str) -> str:
    return os.path.basename(os.path.normpath(os.path.expanduser(place))) or "model"


def place_of(name: str) -> str:
    """Where a model with a name that `guest` gave is: its folder, or its name on the hub; with its languages."""
    called = HuggingFaceName(without_prefix(name))
    with _naming:
        return next((place for place, own in _places.items() if own == called.place), called.place) + called.suffix


def is_there(name: str) -> bool:
    """Does a folder of this model exist?"""
    return os.path.isdir(root_of(name) / name)


def study_file(name: str) -> Path:
    """The results of a study from the first folder that has them, or from this project."""
    files = [root / "studies" / f"{name}.json" for root in (*checkpoint_files.roots(), checkpoint_files.ROOT)]
    return next(filter(Path.is_file, files), files[0])


@once
def offered() -> dict[str, list[str]]:
    """pair -> its mechanisms, in the order of `MECHANISMS`. A checkpoint may be damaged.

    Without any checkpoint, the default models, so that the page can say that they are missing.
    """
    names: dict[str, list[str]] = {}
    for name in _named():
        if name.task.translates and name.mechanism in MECHANISMS:
            names.setdefault(name.pair, []).append(name.mechanism)
    in_order = {pair: sorted(names[pair], key=list(MECHANISMS).index) for pair in pairs.ordered(names)}
    return in_order or {pairs.DEFAULT: list(pairs.FIRST)}


@once
def attending() -> dict[str, list[str]]:
    """pair -> its mechanisms that attend, those that write last; pairs without one are left out."""
    every = {pair: [name for name in names if MECHANISMS[name].kinds] for pair, names in offered().items()}
    for name in _named():
        if name.task.writes and name.mechanism in name.task.mechanisms:
            every.setdefault(name.pair, []).append(name.mechanism)
    return {pair: names for pair, names in every.items() if names}


def many_headed() -> list[str]:
    """The models with several heads in a layer: those that translate, then those that write, then classifiers."""
    translating = [name for pair in offered() for name in many_headed_of(pair)]
    others = [name for name in _named() if not name.task.translates and name.mechanism in name.task.mechanisms]
    return translating + [str(name) for name in sorted(others, key=lambda name: name.task.classifies)]


def many_headed_of(pair: str) -> list[str]:
    """The models of a language pair, or of texts to write on, with several heads in a layer."""
    return [str(ModelName(pair, name)) for name in attending().get(pair, []) if mechanisms.find(name).multi_head]


@once
def _named() -> list[ModelName]:
    """All checkpoints except those whose folder names are not UTF-8, because no page can show them."""
    trained = st.session_state.get(TRAINED, {}) if get_script_run_ctx(suppress_warning=True) else {}
    in_visit = [name for _, folder in trained.values() for name in checkpoint_files.names(Path(folder.name))]
    names = [*checkpoint_files.names(), *in_visit]
    return [
        ModelName.parse(name) for name in names if name.isascii() or name.encode("utf-8", "replace").decode() == name
    ]


def layers_and_heads(model: str | None) -> tuple[int, int]:
    """The numbers of layers and heads of a model; (1, 1) for None, or when its config cannot be read."""
    if model is None:
        return 1, 1
    try:
        options = checkpoint_files.read_config(model, root_of(model)).options
    except ValueError:
        return 1, 1
    counts = options.get("layers"), options.get("heads")
    return counts if all(type(count) is int and count > 0 for count in counts) else (1, 1)
