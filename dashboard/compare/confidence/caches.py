"""The judge of each model: the thresholds of its card and the words of its training, read once for all sessions."""

from pathlib import Path

import streamlit as st

from attnviz import confidence
from attnviz.confidence.training_words import FILE
from attnviz.models import checkpoint_files
from attnviz.models.names import CARD, ModelName
from dashboard.session import catalogue


def judge(name: str) -> confidence.Judge | None:
    """None for a model without thresholds on its card, and where its files cannot be read."""
    root = catalogue.root()
    files = (root / name / CARD, root / ModelName.parse(name).pair / FILE)
    stamps = tuple((path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else None for path in files)
    return _judge(name, str(root), stamps) if all(stamps) else None


@st.cache_resource(show_spinner=False, max_entries=32)
def _judge(name: str, root: str, stamps: tuple) -> confidence.Judge | None:
    try:
        return confidence.Judge.load(name, Path(root))
    except checkpoint_files.CheckpointError:
        return None
