"""What is kept between reruns: the only file with `st.cache_*`.

Shared by all sessions, because nothing in them can change: models, tokenizers and traces (frozen). Private to a session:
the last scene that could be drawn, so that a text that fails takes nothing off the page.
"""

import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from attnviz.mechanisms import CLASSIFIERS, MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName
from dashboard.choices import pairs

_SCENE, _PLACE, _FOUND = "last scene of ", "place", "importance"
_SAVED = "saved_trace"
LIBRARY = (
    "hf:"  # before the name of a model for the transformers library: attnviz.loading.PREFIX, which waits for torch
)


@dataclass
class Place:
    """Where a session stands in the picture. Downloads read it when they are clicked, on a thread without a session; by
    then the step may have moved without the rest of the page being run again."""

    step: int = 0  # from 0
    difference: tuple[int, int] | None = None  # places of the two parts whose maps are subtracted


def root() -> Path:
    """The checkpoints folder: ATTNVIZ_CHECKPOINTS, or the project's own."""
    return Path(os.environ.get("ATTNVIZ_CHECKPOINTS") or checkpoint_files.ROOT)


def offered() -> dict[str, list[str]]:
    """pair -> its mechanisms, in the order of the registry; a checkpoint may turn out to be damaged.

    Where there is none at all, what ought to be there: the page then says that it is missing.
    """
    found: dict[str, list[str]] = {}
    for name in checkpoint_files.names(root()):
        model = ModelName.parse(name)
        if model.task.translates and model.mechanism in MECHANISMS:
            found.setdefault(model.pair, []).append(model.mechanism)
    known = {pair: sorted(found[pair], key=list(MECHANISMS).index) for pair in pairs.ordered(found)}
    return known or {pairs.DEFAULT: list(pairs.FIRST)}


def many_headed() -> list[str]:
    """The models with several heads in a layer, those that translate first."""
    names = checkpoint_files.names(root())
    translating = [f"{pair}/transformer" for pair, mechanisms in offered().items() if "transformer" in mechanisms]
    return translating + [name for name in names if ModelName.parse(name).mechanism in CLASSIFIERS]


def layers_and_heads(model: str) -> tuple[int, int]:
    """Of a Transformer, as it was trained; (1, 1) when it cannot be read: then it is not shown either."""
    try:
        options = checkpoint_files.read_config(model, root()).options
    except ValueError:
        return 1, 1
    counts = options.get("layers"), options.get("heads")
    return counts if all(type(count) is int and count > 0 for count in counts) else (1, 1)


def trace(model: str, text: str, target: str | None, beam: int):
    """The trace of a text by a model (`pair/mechanism`), worked out once. Raises CheckpointError, TextError."""
    return _trace(*key(model), text, target, beam)


def model(name: str):
    """Any model, ready to trace: a checkpoint, or after `hf:` one for the transformers library. Raises ValueError."""
    return _own(*key(name)) if name.startswith(LIBRARY) else _trained(*key(name))


def read(model: str, text: str):
    """The trace of a text by any model, with its own output (translation, label, or none). Raises ValueError."""
    return _own_trace(*key(model), text) if model.startswith(LIBRARY) else trace(model, text, None, 1)


def saved(session: MutableMapping, file):
    """The trace in a file that was uploaded (Streamlit's), read once; of one file at a time. Raises ValueError."""
    if session.get(_SAVED, (None,))[0] != file.file_id:
        from attnviz.trace import files as trace_files

        session[_SAVED] = (file.file_id, trace_files.unpack_for_page(file.getvalue(), file.name))
    return session[_SAVED][1]


def measure(choices, shown):
    """The table of heads (`HeadsChoices` and the trace at the level shown), worked out once; not to be written to."""
    return _table(choices.source.key, choices.text, choices.kind, choices.words, choices, shown)


def nearest(choices, shown, head):
    """The other heads by their distance from one head, of the trace at the level shown; worked out once; not to be written to."""
    return _nearest(choices.source.key, choices.text, choices.words, head, shown)


def effect(model: str, text: str, off: tuple):
    """What a model says of a text without some heads (`attnviz.heads.Head`), worked out once."""
    return (_own_effect if model.startswith(LIBRARY) else _effect)(key(model), model, text, off)


def importance(name: str, text: str, target: str | None, only: list):
    """The heads of `only` switched off in turn: an iterator, to be stopped whenever."""
    from attnviz import ablation

    return ablation.importance(model(name), text, target, only)


def found(session: MutableMapping, model: str, text: str) -> list:
    """What a session has found of the importance of heads: of one text at a time, to be added to."""
    asked = (*key(model), text)
    if session.get(_FOUND, (None,))[0] != asked:
        session[_FOUND] = (asked, [])
    return session[_FOUND][1]


def fingerprint(model: str) -> str:
    """SHA-256 of a model's weights."""
    return _fingerprint(*key(model))


def context_width(model: str) -> int:
    """Numbers in the one vector that stands for the sentence, of a model without attention."""
    return _trained(*key(model)).model.summary.out_features


def card(model: str) -> dict:
    """What is known of a model: its card, and `bytes` of its weights; {} when the card cannot be read."""
    return _card(model, str(root()), _stamp(*(root() / model / name for name in ("card.json", "model.safetensors"))))


def remember(scene, session: MutableMapping, page: str) -> None:
    """Keep the scene that a page drew last. page : the name of its folder."""
    session[_SCENE + page] = scene


def last(session: MutableMapping, page: str):
    """The scene that a page drew last in this session, or None."""
    return session.get(_SCENE + page)


def place(session: MutableMapping) -> Place:
    """The session's one Place."""
    if _PLACE not in session:
        session[_PLACE] = Place()
    return session[_PLACE]


def key(model: str) -> tuple[str, str, tuple]:
    """Name, root, and a stamp that changes when a file of the model does: then it is read again."""
    if model.startswith(LIBRARY):
        folder = Path(os.path.expanduser(model.removeprefix(LIBRARY)))
        files_ = (
            [path for end in ("json", "safetensors") for path in sorted(folder.glob(f"*.{end}"))]
            if os.path.isdir(folder)
            else []
        )
        return model, os.path.abspath(folder), _stamp(*files_)
    folder = root() / model
    return (
        model,
        str(root()),
        _stamp(folder / "model.safetensors", folder / "config.json", folder.parent / "tokenizer.json"),
    )


def _stamp(*paths: Path) -> tuple:
    return tuple((path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else None for path in paths)


@st.cache_resource(show_spinner="Reading the trained models …", max_entries=32)
def _trained(name: str, root: str, stamp: tuple):
    if ModelName.parse(name).task.classifies:
        from attnviz.models.classifier import Classifier as Kind
    else:
        from attnviz.models.translator import Translator as Kind
    return Kind.load(name, Path(root))


@st.cache_resource(show_spinner=False, max_entries=256)
def _trace(name: str, root: str, stamp: tuple, text: str, target: str | None, beam: int):
    import torch

    torch.set_num_threads(1)  # holds for the calling thread, and every rerun has its own; a second one only costs here
    found = _trained(name, root, stamp)
    return found.trace(text, target, beam) if beam > 1 else found.trace(text, target)


# Models that people bring, and their traces, are large: 12 layers of 12 heads on 512 tokens are 150 MB. Few are kept.
@st.cache_resource(show_spinner="Reading the model …", max_entries=2)
def _own(name: str, root: str, stamp: tuple):
    from attnviz import loading

    return loading.load(name)


@st.cache_resource(show_spinner="Reading the text …", max_entries=4)
def _own_trace(name: str, root: str, stamp: tuple, text: str):
    return _own(name, root, stamp).trace(text)


@st.cache_resource(show_spinner="Measuring every head …", max_entries=64)
def _table(source: tuple, text: str, kind: str, words: bool, _choices, _shown):
    from dashboard.heads import scene

    return scene.measure(_choices, _shown)


@st.cache_resource(show_spinner=False, max_entries=64)
def _nearest(source: tuple, text: str, words: bool, head, _shown):
    from attnviz import heads

    return heads.nearest(_shown, head)


def _without(key: tuple, name: str, text: str, off: tuple):
    from attnviz import ablation

    return ablation.effect(model(name), off, text)


_effect = st.cache_resource(_without, show_spinner="Asking again without them …", max_entries=32)
_own_effect = st.cache_resource(_without, show_spinner="Asking again without them …", max_entries=1)


@st.cache_resource(show_spinner=False, max_entries=32)
def _fingerprint(name: str, root: str, stamp: tuple) -> str:
    from attnviz.models import checkpoints

    return checkpoints.fingerprint(name, Path(root))


@st.cache_resource(show_spinner=False, max_entries=64)
def _card(name: str, root: str, stamp: tuple) -> dict:
    written, weights = stamp
    try:
        known = checkpoint_files.read_card(name, Path(root)) if written else {}
    except checkpoint_files.CheckpointError:
        known = {}
    return known | ({"bytes": weights[1]} if weights else {})
