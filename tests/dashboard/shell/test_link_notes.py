"""What a link asks for and the page does not have is named, in one sentence."""

import pytest
import serving
from streamlit.testing.v1 import AppTest

from dashboard.pages import PAGES

SCRIPT = """import streamlit as st
from dashboard.pages import PAGES
from dashboard.session import address
from dashboard.shell import link_notes

page = next(page for page in PAGES if page.folder == "{folder}")
link_notes.remember(st.session_state)
with st.sidebar:
    chosen = page.sidebar()
page.show(chosen)
st.session_state["words"] = address.words()
link_notes.show(st.session_state)
"""


@pytest.mark.parametrize(
    "key, values, unknown",
    [
        (
            "show",
            ["bahdanau", "luong-local", "transformer"],
            "show = “luong-local”",
        ),  # names of folders, not of the page
        ("pair", ["Klingon"], "pair = “Klingon”"),
        ("show", ["Yours, trained", "Bahdanau"], "show = “Yours, trained”"),  # of whoever made the link
        ("show", ["Bahdanau"], None),
        ("show", ["Bahdanau", "Luong general", "Transformer"], None),  # the default
    ],
)
def test_a_value_that_there_is_not_is_named_wherever_it_stands(key, values, unknown):
    app = AppTest.from_file(str(serving.ROOT / "dashboard" / "page.py"), default_timeout=120)
    app.query_params[key] = values
    notes = [note.value.replace("\\", "") for note in app.run().info]
    instead = "the others" if "Bahdanau" in values else "the default instead"
    assert notes == ([f"This page has no {unknown}. It shows {instead}."] if unknown else [])


@pytest.mark.parametrize("folder", [page.folder for page in PAGES if page.folder not in ("many", "train")])
def test_a_default_that_a_link_names_is_no_mistake(folder, root, monkeypatch):
    """Streamlit takes it out of the address. A head to compare has another name there than in the session."""
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    plain, linked = (AppTest.from_string(SCRIPT.format(folder=folder), default_timeout=120) for _ in range(2))
    for key, words in plain.run().session_state["words"].items():
        linked.query_params[key] = sorted(words)
    notes = [note.value for note in linked.run().info if "This page has no" in note.value]
    assert not linked.exception and notes == []
