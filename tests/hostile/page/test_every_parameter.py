"""Every parameter of every page with a wrong value: the default is drawn, a note names each of them, and no file that
one names is run."""

import html
import re

import pytest
import tiny
from streamlit.testing.v1 import AppTest

from dashboard.pages import PAGES
from tests.hostile import strategies

FREE = {
    "text",
    "force",
    "own",
    "output",
    "beside_text",
    "find",
    "given",
    "instead",
    "question",
    "guest",
    "token",
}  # any text is right there
FREE |= {f"{prefix}{name}" for prefix in ("", "other_") for name in ("lines", "path")}
SCRIPT = """import streamlit as st
from dashboard.pages import PAGES
from dashboard.session import memory
from dashboard.shell import link_notes

page = next(page for page in PAGES if page.folder == "{folder}")
link_notes.remember(st.session_state)
memory.begin(st.session_state)
with st.sidebar:
    chosen = page.sidebar()
note = st.container()
page.show(chosen)
with note:
    link_notes.show(st.session_state)
"""
CONTROLS = {  # what a page must show for most of its controls to be there
    "compare": {"show": ["Bahdanau", "Transformer"], "subtract": "true"},
    "inside": {"show": ["Bahdanau", "Transformer"], "change": "permuted"},
    "many": {"from": "Pasted", "lines": "a dog\nthe black dog", "other_from": "Pasted", "other_lines": "a man"},
}


@pytest.fixture(scope="module", autouse=True)
def checkpoints(tmp_path_factory):
    root = tiny.write_models(tmp_path_factory.mktemp("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
        yield


def opened(folder: str, query: dict) -> AppTest:
    app = AppTest.from_string(SCRIPT.format(folder=folder), default_timeout=300)
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception and not app.error, (app.exception, app.error)
    return app


def named(app: AppTest) -> set[str]:
    """The parameters that the note names."""
    notes = [info.value for info in app.info if "It shows the default instead." in info.value]
    text = html.unescape(" ".join(notes)).replace("\\", "")
    return set(re.findall(r"(\w+) = “", text))


@pytest.mark.parametrize("value", ["evil.py:EVIL", "-1", "1e999", ["zzz", "<b>y</b>"]])
@pytest.mark.parametrize("folder", [page.folder for page in PAGES])
def test_a_wrong_value(folder, value, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("open('it-ran', 'w')")
    monkeypatch.chdir(tmp_path)
    controls = CONTROLS.get(folder, {})
    wrong = {key: value for key in strategies.parameters() if key not in FREE | controls.keys()}
    app = opened(folder, wrong | controls)
    in_session = {key for key in wrong if key in app.session_state}
    assert len(in_session) > 1 and in_session <= named(app) and not (tmp_path / "it-ran").exists()


@pytest.mark.parametrize("folder", [page.folder for page in PAGES])
def test_no_value(folder):
    """`?show=` names no mechanism, so the page draws its own."""
    app = opened(folder, dict.fromkeys(set(strategies.parameters()) - FREE, ""))
    notes = " ".join(info.value for info in app.info)
    assert "The link gives no value for" in notes and ("show" not in app.session_state or app.session_state["show"])


@pytest.mark.parametrize(
    "query", [{"present": "1"}, {"head": "0"}, {"layer": "0"}, {"step": "99"}, {"step": "1.5"}, {"tables": "2"}]
)
def test_what_is_only_nearly_a_value(query):
    """1 is no word for True here, and heads are counted from 1."""
    app = opened("compare", {"show": ["Transformer"]} | query)
    assert named(app) == set(query)


@pytest.mark.parametrize("folder, controls", [("heads", {}), ("many", {"from": "Pasted", "lines": "a dog\n" * 30})])
def test_a_row_is_a_whole_number(folder, controls):
    assert named(opened(folder, {"row": "1.5"} | controls)) == {"row"}
