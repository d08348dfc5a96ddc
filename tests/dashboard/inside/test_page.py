"""The page of one step run by Streamlit's own test driver: every panel, changes, tests, and what cannot be shown."""

import json

import pytest
import tiny
from streamlit.testing.v1 import AppTest

from attnviz.mechanisms import MECHANISMS
from dashboard.choices.options import title
from dashboard.inside.panels.change import CHANGES, WHERE
from dashboard.pages import PAGES

TEXT = "The black dog runs."
SCRIPT = """import streamlit as st
from dashboard.inside import sidebar, view

with st.sidebar:
    chosen = sidebar.show()
view.show(chosen)
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tiny.write_models(tmp_path_factory.mktemp("one-step"))


@pytest.fixture(autouse=True)
def here(models, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))


def run(**query) -> AppTest:
    app = AppTest.from_string(SCRIPT, default_timeout=90)
    for key, value in {"text": TEXT, **query}.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception and not app.error, (app.exception, app.error)
    return app


def figures(app: AppTest, key: str) -> list[dict]:
    for element in app.get("bidi_component"):
        if f"chart-{key}" in element.proto.id:
            return [json.loads(cell["figure"]) for cell in json.loads(element.proto.json)["cells"]]
    return []


def page(app: AppTest) -> str:
    return "".join(element.proto.body for element in app.get("html"))


@pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].kinds])
def test_every_mechanism_has_a_step_to_open(name):
    app = run(mechanism=title(name), step="2", tables="true")
    scores, parts = figures(app, "opened")
    assert scores["layout"]["meta"]["description"].startswith("Scores and weights of step 2, ")
    assert parts["layout"]["meta"]["description"].startswith("The score of ")
    assert app.latex and "Scores and weights of this step" in page(app)
    asks = {"bahdanau": "<b>before</b>", "transformer": "query matrix"}
    assert asks.get(name, "<b>after</b>") in page(app)


def test_a_model_that_does_not_attend_is_not_on_offer():
    options = run().selectbox(key="mechanism").options
    assert title("fixed-context") not in options and title("bahdanau") in options


def test_the_head_of_a_transformer():
    app = run(mechanism="Transformer", layer="1", head="2")
    assert ", layer 1, head 2." in page(app)


@pytest.mark.parametrize("change", [change for change in CHANGES.values() if change != "no change"])
def test_every_change(change):
    app = run(change=change)
    before, after = figures(app, "changed")
    assert len(before["data"]) == len(after["data"]) == 1
    assert "What the model writes" in page(app) and "Each target token" in page(app)


@pytest.mark.parametrize("where", WHERE.values())
def test_every_place(where):
    app = run(change="uniform", where=where, mechanism="Transformer", alone="true")
    assert "Each target token" in page(app)


def test_the_tests_are_run_when_asked_for():
    assert not figures(run(), "tests")
    app = run(tests="true")
    variation, erased = figures(app, "tests")
    assert variation["layout"]["meta"]["description"].startswith("Total variation of the next-token distribution")
    assert erased["layout"]["meta"]["description"].startswith("Source tokens erased in the order of ")
    attention, beside = figures(app, "saliency")
    assert attention["layout"]["xaxis"]["ticktext"] == beside["layout"]["xaxis"]["ticktext"]
    assert "Permuting attention at a step moves" in page(app) and "Kendall’s τ-b" in page(app)


def test_integrated_gradients_say_how_complete_they_are():
    app = run(tests="true", method="integrated gradients, this step", step="1")
    _, beside = figures(app, "saliency")
    assert "Attributions by integrated gradients" in beside["layout"]["meta"]["description"]


def test_the_debate_is_on_the_page():
    words = page(run())
    assert "Attention is not by itself an explanation." in words and words.count("aclanthology.org") == 3


@pytest.mark.parametrize(
    "text, message", [("", "There is no sentence yet."), ("a" * 501, "The sentence has 501 characters")]
)
def test_a_text_that_cannot_be_shown(text, message):
    app = AppTest.from_string(SCRIPT, default_timeout=60)
    app.query_params["text"] = text
    app.session_state["text"] = text
    app.run()
    said = [element.value for element in (*app.info, *app.error)]
    assert any(message in words for words in said), said


def test_the_navigation_has_the_page():
    page = next(page for page in PAGES if page.path == "inside")
    assert page.title == "Inside a step" and page.folder == "inside"
