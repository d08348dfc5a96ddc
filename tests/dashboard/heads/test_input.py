"""What the page of heads is asked: bad input, other models, links, cards, markup."""

import html
import shutil

import heads_app
import pytest
import tiny
from heads_app import cells, heads_scene, page, sound
from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.usefixtures("models_served")
SENTIMENT = {"model": "Sentiment of a sentence · Self-attention"}
TEXT = "The black dog runs."


def run(**query) -> AppTest:
    return heads_app.run(**{"text": TEXT, **query})


@pytest.mark.parametrize("row, shown", [("99", "last"), ("0", 0), ("-2", 0), ("abc", 0), ("2", 2)])
def test_the_row_of_a_link(row, shown):
    app = sound(run(row=row))
    assert app.session_state["row"] == (len(heads_scene(app).shown.source) if shown == "last" else shown)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "There is no sentence yet"),
        ("   ", "There is no sentence yet"),
        ("a " * 300, "The sentence has 600 characters"),
        ("\u200b", "has no visible character"),
    ],
)
def test_bad_input_is_said_and_the_last_picture_stays(text, message):
    app = run()
    app.text_input(key="text").set_value(text).run()
    assert not app.exception and message in (app.error if text.strip() else app.info)[0].value
    assert cells(app, "overview") and heads_scene(app).choices.text == TEXT


def test_the_card_of_a_trained_model_is_on_the_page(models, monkeypatch):
    shown = page(sound(run(**SENTIMENT)))
    assert (
        '<div class="model"><p>Sentiment of a sentence · Self-attention</p><details class="card"' in shown
        and "MB on disk" in shown
    )
    source = heads_scene(run()).choices.source
    assert f'<div class="model"><p>{html.escape(source.title)}</p><details class="card"' in page(run())


def test_markup_is_text():
    app = sound(run(text="<b>dog</b> & <eos>", tables="true", row="1"))
    assert "<b>dog" not in page(app) and "&lt;" in page(app) and cells(app, "closeup")


def test_a_word_is_enough():
    app = sound(run(text="dog", tables="true", off="encoder layer 1, head 1"))
    assert heads_scene(app).choices.text == "dog" and all(
        cells(app, key) for key in ("overview", "closeup", "compared", "without")
    )


def test_without_a_trained_model_one_of_ones_own_is_asked_for(tmp_path, monkeypatch):
    root = tiny.write_models(tmp_path)
    shutil.rmtree(root / "en-fr" / "transformer")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    app = sound(run())
    assert "Type the folder of a model" in app.info[0].value and not cells(app, "overview")


def test_another_model_takes_its_own_examples():
    app = run(text="")
    app.text_input(key="text").set_value("The black dog is running across the green grass.").run()
    app.selectbox(key="model").set_value("sst2/self-attention").run()
    assert heads_scene(sound(app)).choices.text == "A funny, moving film that never gets dull."
    app.text_input(key="text").set_value("A dog").run()
    app.selectbox(key="model").set_value("en-fr/transformer").run()
    assert heads_scene(sound(app)).choices.text == "A dog"
