"""Caches of the page of one step, as in session/caches.py: immutable values, shared by all sessions."""

import streamlit as st

from attnviz.models.names import is_hugging_face
from dashboard.session import caches as models
from dashboard.shell.turns import Once


def step(column, step: int):
    """One step of attention (`attnviz.inside.Step`) of a `scene.Column`. Raises ValueError."""
    return _step(models.key(column.model), column.text, _output(column), step, column.layer, column.head, column.trace)


def _output(column) -> str | None:
    """The forced text; of a model that writes, what it wrote."""
    return column.trace.translation if column.writes else column.target


def other_scores(column, step: int, others: tuple[str, ...]):
    """The same query with other scores (`attnviz.inside.other_scores`), including those learnt by other models (by
    name)."""
    key = models.key(column.model), column.text, _output(column), step, others
    return _other_scores(*key, column)


def outcome(column, change, scope, on_step=lambda: None):
    """A translation under a change (`attnviz.intervene.Outcome`). on_step : of `run`. Raises ValueError."""

    def decoded():
        how = _steps(column, on_step)
        if column.writes:
            return models.work(column.model, "intervene:written", column.trace, change, scope, **how)
        return models.work(column.model, "intervene:run", column.text, change, scope, column.target, **how)

    key = column.text, _output(column), str(change), scope, column.languages.target
    return _changing(models.key(column.model), *key).get(decoded)


def _steps(column, on_step) -> dict:
    """How `models.work` is done. A model of the transformers library stands beside a pair's: it produces their
    language, unless it says itself which."""
    return {"on_step": on_step, "steps": "on_step", "language": language_of(column.model, column.languages.target)}


def language_of(name: str, language: str) -> str:
    """The language for a model of the transformers library; "" for a trained one, which knows its own."""
    return language if is_hugging_face(name) else ""


def rewritten(column, word, new: str, on_step=lambda: None):
    """A translation with a source word replaced (`attnviz.intervene.Rewritten`). Raises ValueError."""

    def decoded():
        if column.writes:
            return models.work(column.model, "intervene:written_after", column.trace, word, new)
        given = column.text, word, new, column.target
        return models.work(column.model, "intervene:rewrite", *given, on_step=on_step, steps="on_step")

    return _changing(models.key(column.model), column.text, _output(column), word, new).get(decoded)


def testing(column):
    """The tests of attention of one text, finished or not (`faithfulness.RunningTests`)."""
    output = column.trace if column.writes else column.target
    return _testing(models.key(column.model), column.text, _output(column), column.languages.target, output)


def integrated(column, on_step=lambda: None):
    """Integrated gradients of all target tokens (`attnviz.faithfulness.Integrated`), once their text is tested.
    on_step : of the subject."""
    subject = testing(column).tests.subject
    return _integrated(models.key(column.model), column.text, _output(column)).get(
        lambda: models.work(column.model, "faithfulness.sentence:integrated", subject, **_steps(column, on_step))
    )


@st.cache_resource(show_spinner=False, max_entries=64)
def _step(key: tuple, text: str, target: str | None, step: int, layer: int, head: int, _trace):
    return models.work(key[0], "inside:step", _trace, step, layer, head)


@st.cache_resource(show_spinner=False, max_entries=32)
def _other_scores(key: tuple, text: str, target: str | None, at: int, others: tuple, _column):
    from attnviz import inside

    return inside.other_scores(step(_column, at), map(models.model, others))


@st.cache_resource(show_spinner=False, max_entries=64)
def _changing(key: tuple, text: str, target: str | None, *change) -> Once:
    return Once()


@st.cache_resource(show_spinner=False, max_entries=16)
def _testing(key: tuple, text: str, target: str | None, language: str, _output):
    from dashboard.inside import faithfulness

    return faithfulness.RunningTests(key[0], text, _output, language_of(key[0], language))


@st.cache_resource(show_spinner=False, max_entries=64)
def _integrated(key: tuple, text: str, target: str | None) -> Once:
    return Once()
