"""The sign beside a translation, and why; none for a model without thresholds and for a forced text."""

import io
import re
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import judged
import numpy as np
import pandas as pd
import pytest
from client import chart_cells
from compare_app import charts, run, scene, sound

from attnviz import confidence, loading
from attnviz.confidence.lexicon import Entry
from attnviz.models import checkpoint_files
from dashboard.compare import captions, downloads
from dashboard.compare.caches import judge_translation
from dashboard.compare.captions import sign
from dashboard.session import caches
from dashboard.session.memory import Cursor

WORDS = confidence.TrainingWords.learn(["The black dog is running."])


def judge(unusual, outside=1.0):
    return confidence.Judge(confidence.Scale(0.0, {}, unusual, outside, -0.5), WORDS)


@pytest.fixture(scope="module")
def trace(root):
    return loading.load(judged.NAME, root).trace("The <b>Narita</b> is running.")


def test_reasons_are_escaped_and_the_risk_is_said(trace):
    words = sign(judge_translation(trace, judge(0.1, 0.2)))
    assert words.startswith('<details class="sign outside"><summary>outside what this model has learnt</summary><ul>')
    assert "<li>“Narita” is in no training sentence and was cut into" in words and "<b>" not in words
    assert "<li>Estimated risk that the translation is poor: 50%.</li><li>All this is about" in words
    assert words.endswith("it is not a check of the meaning.</li></ul></details>")


def test_no_sign(root, trace):
    forced = loading.load(judged.NAME, root).trace("The dog is running.", "Le chien court.")
    assert judge_translation(trace, None) is None and judge_translation(forced, judge(0.1)) is None and sign(None) == ""


def test_the_page_shows_the_sign_of_the_model_that_has_thresholds(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(judged.write_models(tmp_path / "models")))
    app = run(text="The Narita is running.", show=["Bahdanau", "Luong (general)"])
    sound(app)
    cells = chart_cells(charts(app)[0].proto)
    marked = ['<details class="sign' in cell["words"] for cell in cells]
    assert marked.count(True) == 1, marked
    _saved(scene(app))


def test_the_sign_reads_translations_that_the_model_draws(tmp_path, monkeypatch):
    scale = judged.SCALE | {"intercept": 5.0, "weights": {"agreement": -0.01}}
    root = judged.write_models(tmp_path / "models", scale, (judged.NAME, "en-fr/transformer"))
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    app = run(text="The dog is running.", show=["Bahdanau", "Luong (general)"])
    sound(app)
    cells = chart_cells(charts(app)[0].proto)
    trace, its_judge = (
        loading.load(judged.NAME, root).trace("The dog is running."),
        confidence.Judge.load(judged.NAME, root),
    )
    expected = sign(judge_translation(trace, its_judge, its_judge.samples(trace.text)))
    assert expected in cells[0]["words"] and "drew at random differ much" in expected


@pytest.mark.parametrize("harm", [lambda weights: weights.unlink(), lambda weights: weights.write_bytes(b"no weights")])
def test_no_sign_and_no_error_where_a_model_that_draws_cannot_be_read(harm, tmp_path, monkeypatch):
    """Before the page is opened, and between two sentences."""
    scale = judged.SCALE | {"weights": {"agreement": -0.01}}
    root = judged.write_models(tmp_path / "models", scale, ("en-fr/luong-dot", "en-fr/transformer"))
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    app = run(text="The dog is running.", show=["Bahdanau"])
    assert _signs(app) == [True]
    harm(root / "en-fr" / "luong-dot" / "model.safetensors")
    app.text_input(key="text").set_value("The black dog.").run()
    sound(app)
    assert _signs(app) == [False]
    downloads.bundle(scene(app), False, Cursor())


def test_no_sign_where_too_many_wait(tmp_path, monkeypatch):
    scale = judged.SCALE | {"weights": {"agreement": -0.01}}
    root = judged.write_models(tmp_path / "models", scale, (judged.NAME, "en-fr/transformer"))
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    monkeypatch.setattr(caches.model_service().limits, "waiting", 1)  # two models draw
    app = run(text="The dog is running here.", show=["Bahdanau"])
    sound(app)
    assert _signs(app) == [False]


def _signs(app) -> list[bool]:
    return ['<details class="sign' in cell["words"] for cell in chart_cells(charts(app)[0].proto)]


def _saved(current):
    """What is saved says it too: the zip as a table, the page as sentences, both only of the model with thresholds."""
    with zipfile.ZipFile(io.BytesIO(downloads.bundle(current, False, Cursor()))) as archive:
        table = pd.read_csv(io.BytesIO(archive.read("confidence.csv")), encoding="utf-8-sig")
        assert "confidence.csv" in archive.read("index.html").decode()
    assert table["model"].tolist() == [judged.NAME] and table["level"].tolist() == ["outside"]
    assert table["risk"].item() == pytest.approx(1, abs=0.001) and "“Narita” is in no" in table["reasons"].item()
    page = downloads.whole_page(current, Cursor(step=2)).decode()
    assert page.count("This translation is outside what this model has learnt.") == 1
    assert 'value="3"><output' in page  # the step of the page


def test_words_that_no_row_reads_are_named(root):
    made = loading.load(judged.NAME, root).trace("The <b>dog</b> is running.")
    column = SimpleNamespace(trace=made, title="Bahdanau")
    unread = replace(judge(0.1), scale=confidence.Scale(0.0, {}, 0.1, 1.0, -0.5, unread=1.0))
    words = captions.untranslated(column, unread)
    named = "No row of Bahdanau reads <i>b</i>, <i>dog</i>, <i>running</i>"
    assert f"{named}: part of the source is probably untranslated." in words
    assert captions.untranslated(column, unread, unread(made, ())) == words
    assert captions.untranslated(column, judge(0.1)) == "" == captions.untranslated(column, None)
    longest = max(re.findall(r"[^\W\d_]+", made.translation), key=len)  # as if it were the usual translation of a word
    with_lexicon = replace(unread, lexicon=confidence.Lexicon({"dog": Entry((longest,), 9, 9)}))
    assert "reads <i>b</i>, <i>running</i>:" in captions.untranslated(column, with_lexicon)


def test_no_weight_is_said_to_be_below_0(root):
    """The thresholds of some models are that small."""
    made = loading.load(judged.NAME, root).trace("The dog is running.")
    (attention,) = made.maps
    on_eos = np.eye(1, attention.weights.shape[2], attention.weights.shape[2] - 1, dtype=np.float32)
    made = replace(made, maps=(replace(attention, weights=np.broadcast_to(on_eos, attention.weights.shape)),))
    tiny = replace(judge(0.1), scale=confidence.Scale(0.0, {}, 0.1, 1.0, -0.5, unread=2e-8))
    words = captions.untranslated(SimpleNamespace(trace=made, title="Luong dot"), tiny)
    assert "reads <i>dog</i>, <i>running</i>" in words and "below 0.01" in words


def test_how_a_text_is_read_stands_above_the_maps(tmp_path, monkeypatch):
    root = judged.write_models(tmp_path / "models")
    path = root / judged.NAME / "card.json"
    checkpoint_files.write_json(path, checkpoint_files.read_json(path) | {"longest": 3})
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    app = run(text="THE DOG IS RUNNING. THE DOG IS HERE.", show=["Bahdanau", "Luong (general)"])
    sound(app)
    notices = [element.proto.body for element in app.get("html") if 'class="notice"' in element.proto.body]
    long, chosen, reading = notices
    assert "each of its 2 sentences is translated alone" in long and "Sentence 1 of 2: THE DOG IS RUNNING." in chosen
    assert "Words in capitals were read as normal words: “The dog is running.”" in reading
    assert "This text is too long for the model" in reading and "at most 3 pieces" in reading
    assert "translate one at a time" not in reading  # it is one
