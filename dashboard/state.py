"""What is kept between reruns: the only file with `st.cache_*`.

Shared by all sessions, because nothing in them can change: models, tokenizers and traces (frozen). Private to a session:
the last scene that could be drawn, so that a text that fails takes nothing off the page.
"""

from collections.abc import MutableMapping
from pathlib import Path

import streamlit as st

PAIR = "en-fr"
_SCENE = "last_scene"


def root() -> Path:
    """The checkpoints folder: ATTNVIZ_CHECKPOINTS, or the project's own."""
    import os

    from attnviz import checkpoints

    return Path(os.environ.get("ATTNVIZ_CHECKPOINTS") or checkpoints.ROOT)


def mechanisms(pair: str = PAIR) -> list[str]:
    """Mechanisms of a pair that the page offers, in the order of the registry, damaged or missing checkpoints included."""
    from attnviz.models import MECHANISMS

    return list(MECHANISMS)


def translator(mechanism: str, pair: str = PAIR):
    """The loaded model of a mechanism. Raises CheckpointError. A checkpoint that changes on disk is read again."""
    name = f"{pair}/{mechanism}"
    return _translator(name, str(root()), _stamp(root() / name))


def trace(mechanism: str, text: str, target: str | None, beam: int, pair: str = PAIR):
    """The trace of a text, worked out once. Raises CheckpointError, TextError."""
    name = f"{pair}/{mechanism}"
    return _trace(name, str(root()), _stamp(root() / name), text, target, beam)


def fingerprint(mechanism: str, pair: str = PAIR) -> str:
    name = f"{pair}/{mechanism}"
    return _fingerprint(name, str(root()), _stamp(root() / name))


def remember(scene, session: MutableMapping) -> None:
    session[_SCENE] = scene


def last(session: MutableMapping):
    """The last scene that was drawn in this session, or None."""
    return session.get(_SCENE)


def _stamp(folder: Path) -> tuple:
    """Changes when a file of a checkpoint does."""
    files = [folder / "model.safetensors", folder / "config.json", folder.parent / "tokenizer.json"]
    return tuple((path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else None for path in files)


@st.cache_resource(show_spinner="Reading the trained models …", max_entries=32)
def _translator(name: str, root: str, stamp: tuple):
    import torch

    from attnviz.translator import Translator

    torch.set_num_threads(1)  # one sentence at a time: a second thread only costs
    return Translator.load(name, Path(root))


@st.cache_resource(show_spinner=False, max_entries=512)
def _trace(name: str, root: str, stamp: tuple, text: str, target: str | None, beam: int):
    return _translator(name, root, stamp).trace(text, target, beam)


@st.cache_resource(show_spinner=False, max_entries=32)
def _fingerprint(name: str, root: str, stamp: tuple) -> str:
    from attnviz import checkpoints

    return checkpoints.fingerprint(name, Path(root))
