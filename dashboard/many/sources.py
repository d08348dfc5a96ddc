"""The controls for the source of sentences: this project, a text field, an uploaded or a named file."""

import os

import streamlit as st

from attnviz import storage
from dashboard.choices import options
from dashboard.choices.options import IN_ADDRESS, LINKED, NAMED, NO_OTHER, PASTED, UPLOADED
from dashboard.choices.settings import is_elsewhere
from dashboard.many import caches, given
from dashboard.many.given import Given
from dashboard.session import address
from dashboard.shell.problems import SceneError, Waiting

FORMATS = ("txt", "tsv", "jsonl", "ndjson", "gz")
_HELP = (
    "One sentence per line. In a TSV file or a pasted text: sentence, tab, translation. In a JSONL file: objects with "
    "`source`, and `target` where there is one."
)


def show(pair: str, other: bool = False) -> Given | SceneError | None:
    """The sentences, or the reason why there are none; None if no other sentences are chosen. other : are they the
    sentences for comparison?"""
    prefix = "other_" if other else ""
    offered = [NO_OTHER] * other + options.sentence_sources()
    source = st.segmented_control(
        "Compare with other sentences" if other else "Sentences",
        offered,
        default=offered[0],
        format_func=options.SENTENCE_SOURCES.get,
        key=f"{prefix}from",
        required=True,
        bind="query-params",
    )
    takers = {LINKED: lambda: given.of_project(pair), PASTED: lambda: _pasted(prefix)}
    takers |= {UPLOADED: lambda: _uploaded(prefix), NAMED: lambda: _named(prefix)}
    try:
        return None if source == NO_OTHER else takers[source]()
    except SceneError as error:
        return error


def _pasted(prefix: str) -> Given:
    key = f"{prefix}lines"
    if key not in st.session_state or (address.came_back() and key in st.query_params):
        st.session_state[key] = st.query_params.get(key, "")
    text = st.text_area(
        "Sentences, one per line",
        key=key,
        height=140,
        help=_HELP,
        placeholder="A dog runs.\nTwo boys play with a ball.",
        persist_state="session",
    )
    address.also(key, lambda held: text if len(text) <= IN_ADDRESS else None, of_picture=True)
    if len(text) > IN_ADDRESS:
        st.caption("These sentences are too long for the address. A link opens this page without them.")
    return given.of_text(text)


def _uploaded(prefix: str) -> Given:
    file = st.file_uploader(
        f"File with one sentence per line, at most {options.most_megabytes()} MB",
        FORMATS,
        key=f"{prefix}upload",
        max_upload_size=options.most_megabytes(),
        help=_HELP,
    )
    session_key = f"{prefix}sentences of a file"
    if file is None:
        if session_key in st.session_state:  # of a visit to this page before
            return st.session_state[session_key][1]
        raise Waiting("Choose a file. (A link to this page does not hold the file.)")
    if st.session_state.get(session_key, (None,))[0] != file.file_id:
        if file.size > options.most_megabytes() * 2**20:
            raise SceneError(f"The file is larger than {options.most_megabytes()} MB. Choose a smaller file.")
        st.session_state[session_key] = file.file_id, given.of_content(file.getvalue(), file.name)
    return st.session_state[session_key][1]


def _named(prefix: str) -> Given:
    typed = st.text_input(
        "File on this machine",
        key=f"{prefix}path",
        bind="query-params",
        placeholder="./sentences.tsv",
        help=f"{_HELP} Parquet files are read too. Every format may be packed with gzip.",
    ).strip()
    if not typed:
        raise Waiting("Type the name of a file on this machine.")
    return caches.named_file(typed, _stamp(typed), options.most_sentences())


def _stamp(typed: str) -> tuple:
    if is_elsewhere(typed):
        return ()
    return storage.stamp(os.path.expanduser(typed))
