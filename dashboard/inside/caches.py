"""What the page of one step keeps between reruns, as session/caches.py does: values that cannot change, shared by all
sessions."""

import streamlit as st

from dashboard.session import caches as models


def step(model: str, trace, step: int, layer: int, head: int):
    """One step of attention (`attnviz.inside.Step`). Raises ValueError."""
    return _step(models.key(model), trace.text, step, layer, head, trace)


def outcome(model: str, text: str, change, scope):
    """A translation under a change (`attnviz.intervene.Outcome`). Raises ValueError."""
    return _outcome(models.key(model), text, str(change), scope, change)


def tests(model: str, text: str):
    """The tests of attention of one text (`FaithfulnessTests`). Raises ValueError."""
    return _tests(models.key(model), text)


def integrated(model: str, text: str, step: int):
    """Integrated gradients of one target token (`attnviz.faithfulness.Integrated`)."""
    return _integrated(models.key(model), text, step)


@st.cache_resource(show_spinner=False, max_entries=64)
def _step(key: tuple, text: str, step: int, layer: int, head: int, _trace):
    from attnviz import inside

    return inside.step(models.model(key[0]), _trace, step, layer, head)


@st.cache_resource(show_spinner="Decoding with changed attention …", max_entries=32)
def _outcome(key: tuple, text: str, change: str, scope, _change):
    from attnviz import intervene

    return intervene.run(models.model(key[0]), text, _change, scope)


@st.cache_resource(show_spinner="Testing attention …", max_entries=16)
def _tests(key: tuple, text: str):
    from dashboard.inside import faithfulness

    return faithfulness.run(models.model(key[0]), text)


@st.cache_resource(show_spinner=False, max_entries=256)
def _integrated(key: tuple, text: str, step: int):
    from attnviz import faithfulness

    return faithfulness.integrated_gradients(tests(key[0], text).subject, [step])
