"""Caches of the page of one step, as in session/caches.py: immutable values, shared by all sessions."""

from dataclasses import replace

import streamlit as st

from attnviz.models.names import is_hugging_face
from dashboard.session import caches as models
from dashboard.shell.turns import Once


def step(column, step: int):
    """One step of attention (`attnviz.inside.Step`) of a `scene.Column`. Raises ValueError."""
    return _step(models.key(column.model), column.text, column.target, step, column.layer, column.head, column.trace)


def other_scores(column, step: int, others: tuple[str, ...]):
    """The same query with other scores (`attnviz.inside.other_scores`), including those learnt by other models (by
    name)."""
    key = models.key(column.model), column.text, column.target, step, others
    return _other_scores(*key, column)


def outcome(column, change, scope, on_step=lambda: None):
    """A translation under a change (`attnviz.intervene.Outcome`). on_step : of `run`. Raises ValueError."""
    from attnviz import intervene

    key = column.text, column.target, str(change), scope, column.languages.target
    return _changing(models.key(column.model), *key).get(
        lambda: intervene.run(
            _producing(column.model, column.languages.target), column.text, change, scope, column.target, on_step
        )
    )


def _producing(name: str, language: str):
    """Any model. One of the transformers library stands beside a pair's: it produces their language, unless it says
    itself which."""
    own = models.model(name)
    return own.producing(language) if is_hugging_face(name) and not own.language else own


def rewritten(column, word, new: str, on_step=lambda: None):
    """A translation with a source word replaced (`attnviz.intervene.Rewritten`). Raises ValueError."""
    from attnviz import intervene

    return _changing(models.key(column.model), column.text, column.target, word, new).get(
        lambda: intervene.rewrite(models.model(column.model), column.text, word, new, column.target, on_step)
    )


def testing(column):
    """The tests of attention of one text, finished or not (`faithfulness.RunningTests`)."""
    return _testing(models.key(column.model), column.text, column.target, column.languages.target)


def integrated(column, on_step=lambda: None):
    """Integrated gradients of all target tokens (`attnviz.faithfulness.Integrated`), once their text is tested.
    on_step : of the subject."""
    from attnviz import faithfulness

    subject = replace(testing(column).tests.subject, on_step=on_step)
    return _integrated(models.key(column.model), column.text, column.target).get(
        lambda: faithfulness.integrated_gradients(subject)
    )


@st.cache_resource(show_spinner=False, max_entries=64)
def _step(key: tuple, text: str, target: str | None, step: int, layer: int, head: int, _trace):
    from attnviz import inside

    return inside.step(models.model(key[0]), _trace, step, layer, head)


@st.cache_resource(show_spinner=False, max_entries=32)
def _other_scores(key: tuple, text: str, target: str | None, at: int, others: tuple, _column):
    from attnviz import inside

    return inside.other_scores(step(_column, at), map(models.model, others))


@st.cache_resource(show_spinner=False, max_entries=64)
def _changing(key: tuple, text: str, target: str | None, *change) -> Once:
    return Once()


@st.cache_resource(show_spinner=False, max_entries=16)
def _testing(key: tuple, text: str, target: str | None, language: str):
    from dashboard.inside import faithfulness

    return faithfulness.RunningTests(_producing(key[0], language), text, target)


@st.cache_resource(show_spinner=False, max_entries=64)
def _integrated(key: tuple, text: str, target: str | None) -> Once:
    return Once()
