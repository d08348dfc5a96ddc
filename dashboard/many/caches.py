"""What the page of many sentences keeps between reruns, shared by all sessions: runs over sentences, and files."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from weakref import WeakValueDictionary

import streamlit as st

from attnviz.gold import LinkedPair
from attnviz.models.names import ModelName
from dashboard.choices import pairs
from dashboard.many.given import Given, of_path
from dashboard.many.running import Run
from dashboard.session import caches as models

_ALIVE: WeakValueDictionary[tuple, Run] = WeakValueDictionary()  # runs that somebody has


def run(names: Sequence[str], given: Given, forced: bool) -> Run:
    """The run of these sentences through these models, finished or not. As long as somebody has it, all get the same;
    afterwards it is kept while there is room."""
    keys = tuple(models.key(name) for name in names)
    key = keys, given.digest, forced

    def made() -> Run:
        return _ALIVE.get(key) or Run(names, given.records, forced, _statistics, _links(names))

    _ALIVE[key] = shared = models.keep(("run", *key), made, lambda run: run.bytes)
    return shared


def named_file(typed: str, stamp: tuple, most: int) -> Given:
    """The sentences of a file of this machine, read once. stamp : changes when the file does. Raises SceneError."""
    return _named_file(typed, stamp, most)


@st.cache_resource(show_spinner="Reading the file …", max_entries=8)
def _named_file(typed: str, stamp: tuple, most: int) -> Given:
    return of_path(typed)


def _links(names: Sequence[str]) -> dict[tuple[str, str], LinkedPair]:
    """(source, target) -> their links set by hand, of the language pair of these models."""
    return {(pair.source, pair.target): pair for pair in pairs.linked(ModelName.parse(names[0]).pair)}


def _statistics(name: str, texts: Sequence[tuple[str, str | None]]) -> list[Future]:
    """Have texts, each with a target or None, traced by the models: the statistics of each trace, or the whole trace
    where the text has links, for which weights are needed. Raises ServiceError."""
    links = _links([name])
    requests = [models.request(name, text, target, 1) for text, target in texts]
    return models.model_service().submit(
        [replace(request, statistics=(request.text, request.target) not in links) for request in requests]
    )
