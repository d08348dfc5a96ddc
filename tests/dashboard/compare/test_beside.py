"""A model of the transformers library beside the mechanisms, on the first page and on the page of one step, by
Streamlit's own test driver: named by a visitor or by the operator."""

import json
import shutil

import compare_app
import inside_app
import pytest
from compare_app import scene, sound

import attnviz
from attnviz import loading
from dashboard.choices import settings
from dashboard.choices.options import title
from dashboard.compare import downloads
from dashboard.session import catalogue, memory
from dashboard.shell.downloads import reopening

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT, TARGET = "The black dog runs.", "Le chien noir court."


def named(folder, family):
    return catalogue.guest(str(folder(family)))


def as_named(folder, family):
    """The model with the name that the page gives it."""
    return loading.load_from(str(folder(family)), named(folder, family))


def test_a_visitor_names_a_model_and_it_stands_beside_ours(folder):
    name = named(folder, "marian")
    query = {"text": TEXT, "guest": str(folder("marian")), "show": ["Bahdanau", title(name)], "beam": "beam of 5"}
    app = compare_app.run(**query)
    sound(app)
    ours, theirs = scene(app).columns
    assert (ours.model, theirs.model) == ("en-fr/bahdanau", name) and theirs.title == title(name)
    assert theirs.trace == as_named(folder, "marian").trace(TEXT, beam=5)
    assert len(compare_app.charts(app)) == 3 and not scene(app).warnings
    app = compare_app.run(**query | {"target": "One text for all: typed", "force": TARGET, "tables": "true"})
    sound(app)
    ours, theirs = scene(app).columns
    assert theirs.trace == as_named(folder, "marian").trace(TEXT, TARGET) and theirs.grid.kind == "cross"
    assert scene(app).choices.query()["guest"] == str(folder("marian"))
    written = downloads.manifest(scene(app), memory.Cursor())
    assert str(folder("marian")) not in json.dumps(written) and written["settings"]["guest"] == name
    assert "type the folder of your own model again: marian" in written["reopen"]
    assert "marian" not in written["query"] and "show=Bahdanau" in written["query"]  # its name alone opens nothing
    assert len(written["models"][name]["files_sha256"]["model.safetensors"]) == 64


def test_typing_a_name_chooses_the_model(folder):
    app = compare_app.run(text=TEXT)
    app.text_input(key="guest").input(str(folder("t5"))).run()
    sound(app)
    assert scene(app).columns[-1].model == named(folder, "t5")
    app.text_input(key="guest").input("").run()
    sound(app)
    assert all(column.model.startswith("en-fr/") for column in scene(app).columns)


@pytest.mark.parametrize("typed, problem", [("bert", "reads a text and produces none"), (None, "no folder")])
def test_what_cannot_stand_there_says_why_and_ours_stay(folder, tmp_path, typed, problem):
    place = folder(typed) if typed else tmp_path
    app = compare_app.run(text=TEXT, guest=str(place))
    sound(app)
    assert len(scene(app).columns) == 3
    refusals = [html for html in compare_app.htmls(app) if 'class="over"' in html]
    assert refusals and (problem in refusals[0] or not typed)


def test_the_operator_names_one(folder, monkeypatch):
    name = named(folder, "marian")
    monkeypatch.setenv(settings.BESIDE, f"en-fr={folder('marian')}, en-de={folder('t5')}")
    monkeypatch.setenv(settings.PUBLIC, "1")  # a stranger can name none there
    assert settings.beside() == {"en-fr": [f"hf:{folder('marian')}"], "en-de": [f"hf:{folder('t5')}"]}
    app = compare_app.run(text=TEXT, show=["Transformer", title(name)])
    sound(app)
    assert [column.model for column in scene(app).columns] == ["en-fr/transformer", name]
    assert not [field for field in app.text_input if field.key == "guest"]
    monkeypatch.setenv(settings.BESIDE, "hf:somewhere")
    with pytest.raises(ValueError, match="^ATTNVIZ_BESIDE must list entries such as en-fr=hf:FOLDER-OR-NAME"):
        settings.check()


def test_its_step_is_opened_changed_and_tested(folder, load):
    name = named(folder, "t5")
    shown = {"guest": str(folder("t5")), "show": ["Transformer", title(name)], "text": TEXT}
    forced = {"target": "One text for all: typed", "force": TARGET, "step": "2"}
    app = inside_app.run(**shown, **forced, change="uniform", tables="true", tests="true")
    _, theirs = app.session_state["last scene of inside"].columns
    assert theirs.model == name and theirs.trace == as_named(folder, "t5").trace(TEXT, TARGET)
    words = inside_app.page(app)
    outcome = attnviz.intervene.run(load("t5"), TEXT, attnviz.intervene.Uniform(), target=TARGET)
    assert f"{outcome.total_variation.max():.2f}" in words
    assert len(inside_app.figures(app, "opened")) == 6
    assert len(inside_app.figures(app, "tests")) % 2 == 0 and inside_app.figures(app, "tests")
    assert title(name) in words.partition("No percentile for")[2].partition("<")[0]
    app = inside_app.run(**shown, **forced, change="hide a source token", hidden="6 <eos>")
    last = len(theirs.keys()) - 1  # its own </s>, which has no letters either
    outcome = attnviz.intervene.run(load("t5"), TEXT, attnviz.intervene.Hide((last,)), target=TARGET)
    assert f"{outcome.total_variation.max():.2f}" in inside_app.page(app)


def test_a_model_of_the_hub_is_told_by_its_files_and_each_is_read_once(folder, tmp_path, monkeypatch):
    cached = tmp_path / "models--some--marian"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("1234")
    shutil.copytree(folder("marian"), cached / "snapshots" / "1234")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    local, downloaded = (
        reopening("", {}, [name])["models"][name]["files_sha256"]
        for name in (f"hf:{folder('marian')}", "hf:some/marian")
    )
    assert local == downloaded and {"model.safetensors", "tokenizer.json", "config.json"} <= local.keys()
    monkeypatch.setattr("attnviz.storage.sha256", None)
    assert reopening("", {}, ["hf:some/marian"])["models"]["hf:some/marian"]["files_sha256"] == downloaded
