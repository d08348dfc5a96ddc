"""Caches of the page of many sentences, shared by all sessions: runs over sentences, and files."""

from collections.abc import Container, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

import streamlit as st

from attnviz.service import ServiceError
from dashboard.choices import pairs
from dashboard.many.given import Given, of_path
from dashboard.many.running import Run
from dashboard.many.scene import Corpus, ManyChoices
from dashboard.session import caches as models

_SPECIAL = {("<", ">"), ("[", "]")}  # how special tokens begin and end
SEARCHED = 100  # sentences of a model that are searched for a token: their weights are computed again
Text = tuple[str, str | None]  # and its target
_ALIVE: WeakValueDictionary[tuple, Run] = WeakValueDictionary()  # runs that somebody has


def run(pair: str, names: Sequence[str], given: Given, forced: bool) -> Run:
    """The run of these sentences through these models, finished or not. As long as somebody has it, all get the same;
    afterwards it is kept while there is room. pair : whose links set by hand give an alignment error."""
    keys = tuple(models.key(name) for name in names)
    key = pair, keys, given.digest, forced
    links = {(linked.source, linked.target): linked for linked in pairs.linked(pair)}

    def made() -> Run:
        return _ALIVE.get(key) or Run(names, given.records, forced, partial(_statistics, links), links)

    _ALIVE[key] = shared = models.keep(("run", *key), made, lambda run: run.bytes)
    return shared


def token(names: Sequence[str], corpus: Corpus, text: str, choices: ManyChoices):
    """`heads.search_all` of a token in the sentences that were measured and may have it, at most SEARCHED of each
    model; their texts, each with the target that was forced, if any; and how many are left out. The table is None if no
    trace has the token. Raises ServiceError."""
    from attnviz import heads

    frame = corpus.frame[corpus.frame["error"].isna()]
    special = (text[0], text[-1]) in _SPECIAL  # stands in no sentence, but in its tokens
    has = [special or text.casefold() in f"{row.source}\n{row.translation}".casefold() for row in frame.itertuples()]
    rows = frame[has].drop_duplicates(["model", "source", "translation"])
    some = rows.groupby("model", sort=False).head(SEARCHED)
    texts = [(row.source, row.translation if choices.forced else None) for row in some.itertuples()]
    wanted = [(row.model, *pair) for row, pair in zip(some.itertuples(), texts)]
    requested = models.answers().ask([models.request(*parts, 1) for parts in wanted])
    try:
        traces = [models.trace(*parts) for parts in wanted]
        return heads.search_all(traces, text, choices.kind), texts, len(rows) - len(some)
    except ServiceError:
        raise
    except ValueError:
        return None, texts, 0
    finally:
        requested.release()


@st.cache_resource(show_spinner="Reading the file …", max_entries=8)
def named_file(typed: str, stamp: tuple, most: int) -> Given:
    """The sentences of a file of this machine, read once. stamp : changes with the file. Raises SceneError."""
    return of_path(typed)


def _statistics(links: Container[Text], name: str, texts: Sequence[Text]) -> list[Future]:
    """Have texts, each with a target or None, traced by a model: the statistics of each trace, or the whole trace
    where the text has links, for which weights are needed. Raises ServiceError."""
    requests = [models.request(name, text, target, 1) for text, target in texts]
    return models.model_service().submit(
        [replace(request, statistics=(request.text, request.target) not in links) for request in requests]
    )
