"""What a link may do: it fills in the controls, and starts nothing that leaves this machine."""

import os

import heads_app
import pytest
import tiny
from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
HF = "A Hugging Face model"
MANY = """import streamlit as st
from dashboard.pages import PAGES

page = next(page for page in PAGES if page.folder == "many")
with st.sidebar:
    chosen = page.sidebar()
page.show(chosen)
"""
COMPARE = MANY.replace('"many"', '"compare"')


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    return tiny.write_models(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def looked_up(checkpoints, monkeypatch):
    """The names that the process of such models was asked to look up on the hub."""
    names = []

    def look_up(lane, jobs):
        for job in jobs:
            names.append(job.request.root)
            job.answer("no network")

    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(checkpoints))
    monkeypatch.setattr("attnviz.service.embedded.Guests.add", look_up)
    return names


@pytest.mark.parametrize(
    "name",
    ["some/model", "gpt2", "hf:some/model", r"\\evil.example\share", "//evil.example/share", r"\/evil.example\share"],
)
def test_a_link_looks_nothing_up_without_a_click(looked_up, name):
    app = heads_app.run(model=HF, own=name, text="a dog")
    assert not app.exception and looked_up == []
    app.run()
    assert looked_up == [] and "Click the button on the left to load it from the Hugging Face hub" in app.info[0].value
    app.button(key="look_up").click().run()
    assert looked_up == [name.removeprefix("hf:")] and not app.exception


@pytest.mark.parametrize("page", ["compare", "inside", "many"])
def test_nor_for_a_model_that_would_stand_beside_ours(looked_up, page):
    app = AppTest.from_string(MANY.replace('"many"', f'"{page}"'), default_timeout=60)
    app.query_params["guest"], app.query_params["text"] = "some/model", "a dog"
    app.run()
    assert not app.exception and not app.error and looked_up == []
    assert any("load it from the Hugging Face hub" in html.proto.body for html in app.get("html"))
    app.button(key="look_up").click().run()
    assert looked_up == ["some/model"] and not app.exception and not app.error
    app.text_input(key="guest").set_value("hf:other/model").run()
    assert looked_up == ["some/model", "other/model"]


def test_another_name_is_another_click(looked_up):
    app = heads_app.run(model=HF, own="some/model", text="a dog")
    app.button(key="look_up").click().run()
    app.text_input(key="own").set_value("other/model").run()
    assert looked_up == ["some/model", "other/model"]  # typed: by the person at the keyboard


@pytest.mark.parametrize("name", [r"\\evil.example\share\x.txt", "//evil.example/x.txt", r" /\evil.example/x.txt"])
def test_a_link_asks_no_other_machine_for_a_file(monkeypatch, checkpoints, name):
    """On Windows, to look whether such a file is there sends the name of the person to that machine."""
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(checkpoints))
    looked, stat = [], os.stat
    monkeypatch.setattr(os, "stat", lambda path, *more, **how: looked.append(str(path)) or stat(path, *more, **how))
    app = AppTest.from_string(MANY, default_timeout=60)
    app.query_params["from"], app.query_params["path"] = "A file on this machine", name
    app.run()
    assert not app.exception and any("Only files on this machine are read" in error.value for error in app.error)
    assert not [path for path in looked if "evil" in path]


@pytest.mark.parametrize("broken", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("script", [COMPARE, heads_app.SCRIPT], ids=["compare", "heads"])
def test_a_visitor_reads_no_folder_of_the_server(tmp_path, monkeypatch, broken, script):
    root = tiny.write_models(tmp_path / "checkpoints")
    for file in root.rglob(broken):
        file.write_text("null")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    app = AppTest.from_string(script, default_timeout=60)
    app.query_params["text"] = "A dog runs."
    app.run()
    shown = " ".join(str(element.value) for element in [*app.error, *app.warning, *app.info, *app.caption])
    assert f"The server's {broken}" in shown.replace("\\", "") and str(tmp_path) not in shown
