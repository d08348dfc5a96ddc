"""The statistics of each model on its test set, read once for all sessions."""

from pathlib import Path

import streamlit as st

from attnviz import storage
from attnviz.across.reference import FILE, Reference, read
from dashboard.session import caches, catalogue


def reference(name: str) -> Reference | None:
    """None for a model without one, and for one that was measured with other weights."""
    file = catalogue.root_of(name) / name / FILE
    measured = _reference(str(file), storage.stamp(file)) if file.is_file() else None
    return measured if measured and measured.weights_sha256 == caches.card(name).get("weights_sha256") else None


@st.cache_resource(show_spinner=False, max_entries=64)
def _reference(file: str, stamp: tuple) -> Reference | None:
    try:
        return read(Path(file))
    except (ValueError, OSError):
        return None
