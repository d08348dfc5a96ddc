"""The page Watch it learn, by Streamlit's own test driver; the training is a real one, in its process."""

import gc
import io
import re
import time
from pathlib import Path

import pytest
from client import chart_cells
from page_script import script_of
from PIL import Image
from serving import ROOT
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from attnviz import loading
from attnviz.training import apart
from attnviz.training.apart import ENDED, UNSEEN
from attnviz.training.seen import MOST_PAIRS, PRESETS, Ring
from dashboard.choices import pairs, settings
from dashboard.choices.options import LIMIT
from dashboard.server import index_page
from dashboard.session import catalogue, memory
from dashboard.shell.problems import SceneError
from dashboard.train import sidebar, view

SCRIPT = script_of("train")
PATIENCE = 120  # s on a busy machine


@pytest.fixture
def page(monkeypatch):
    """page(**query) -> the page; its training ends with the test."""
    monkeypatch.setattr(apart, "UNSEEN", 10 * PATIENCE)
    apps = []

    def open_page(**query):
        app = AppTest.from_string(SCRIPT, default_timeout=60)
        for key, value in {"racers": ["Luong dot", "Transformer"], "width": "16", **query}.items():
            app.query_params[key] = value
        apps.append(app)
        return app.run()

    yield open_page
    for app in apps:
        if "training" in app.session_state:
            app.session_state["training"].process.kill()
            app.session_state["training"].process.wait()


def seen(app, count):
    """The training, when it has shown so many moments."""
    training, end = app.session_state["training"], time.monotonic() + PATIENCE
    while len(training.moments) < count and training.state != ENDED:
        assert time.monotonic() < end
        time.sleep(0.1)
    return training


def cells(app, key):
    for element in app.get("bidi_component"):
        if f"chart-{key}" in element.proto.id:
            return chart_cells(element.proto)
    return []


def words(app):
    return "".join(element.proto.body for element in app.get("html"))


def sound(app):
    assert not app.exception and not app.error, (app.exception, app.error)
    return app


ONE = {"racers": ["Luong dot"]}  # one model: quicker


def test_a_server_takes_so_many_and_may_take_none(page, monkeypatch):
    """And a training that is killed is said."""
    monkeypatch.setenv(settings.TRAIN, "1")
    first, second = page(**ONE), page(**ONE)
    first.button(key="start").click().run()
    second.button(key="start").click().run()
    assert "1 training runs on this server already" in second.error[0].value and "training" not in second.session_state
    view.stop_training(first.session_state)
    sound(second.button(key="start").click().run())
    training = seen(second, 1)
    training.process.kill()
    training.process.wait()
    end = time.monotonic() + PATIENCE
    while training.state != ENDED and time.monotonic() < end:
        time.sleep(0.05)
    assert "has ended unexpectedly" in words(sound(second.run()))
    monkeypatch.setenv(settings.TRAIN, "0")
    off = page()
    assert off.button(key="start").disabled and "ATTNVIZ_TRAIN=0" in off.info[0].value


def test_what_was_seen_is_gone_back_to_and_taken_along(page):
    """The browser draws the moments, and asks the page for one that stands still."""
    app = page(**ONE)
    app.button(key="start").click().run()
    training = seen(app, 3)
    served = TestClient(Starlette(routes=index_page.routes))
    assert served.get("/training/none").status_code == 404
    answer = served.get(f"/training/{training.name}", params={"after": "<b>"})
    assert b'"state": "running"' in answer.content and b'"moments": [{"batch": 0,' in answer.content
    view.stop_training(app.session_state)
    moments = app.session_state["training"].moments[:3]
    for batch in (moments[1].batch, view.NEWEST):
        app.session_state[view._AT] = batch
        shown = training.moments[-1].batch if batch == view.NEWEST else batch
        assert f"<caption>After {shown} batches, " in words(sound(app.run()))
        charts = [cell["figure"] for cell in cells(app, "learning-maps") + cells(app, "learning-curves")]
        assert [chart["layout"]["meta"]["batch"] for chart in charts] == [shown] * 4
    made = {file: make(moments) for file, make in view._FILES.values()}
    assert made["training.svg"].startswith(b"<?xml") and made["training.pdf"].startswith(b"%PDF")
    assert Image.open(io.BytesIO(made["training.gif"])).n_frames == len(moments)
    assert b"<html" in made["training.html"]


LISTED = """import streamlit as st
from dashboard.session import catalogue
st.session_state["listed"] = catalogue.offered(), catalogue.many_headed()
"""


def listed(**session):
    """What a visitor may choose: pairs and models with heads."""
    app = AppTest.from_string(LISTED)
    for key, value in session.items():
        app.session_state[key] = value
    return sound(app.run()).session_state["listed"]


def test_models_are_opened_in_this_visit_alone_and_go_with_it(page, monkeypatch):
    app = page()
    app.button(key="start").click().run()
    training = seen(app, 2)
    training.tell(apart.PAUSE)
    app.run()
    monkeypatch.setattr(memory, "visitor_memory", lambda: memory.VisitorMemory(1000, 1000))
    app.button(key="open-inside").click().run()
    del app.session_state[memory._VISITOR]
    assert "each visitor may use 0.0 MB now" in app.error[0].value and catalogue.TRAINED not in app.session_state
    monkeypatch.undo()
    monkeypatch.setattr(apart, "UNSEEN", 10 * PATIENCE)
    for key in ("open-heads", "open-"):  # the second time takes the place of the first
        sound(app.run().button(key=key).click().run())
    trained = app.session_state[catalogue.TRAINED]
    [(pair, folder)] = trained.values()
    title = "Reverse the sequence · trained in this visit"
    assert pairs.task(pair).title == title and pairs.task(pair).first == pairs.task("reverse").first
    offered, with_heads = listed(**{catalogue.TRAINED: trained})
    assert offered[pair] == ["luong-dot", "transformer"] and f"{pair}/transformer" in with_heads
    model = loading.load_checkpoint(f"{pair}/transformer", catalogue.root_of(f"{pair}/transformer"))
    assert model.trace("a b c").translation and catalogue.layers_and_heads(model.name) == (1, 2)
    others, theirs = listed()
    assert pair not in others and not [name for name in theirs if name.startswith(pair)]
    place = folder.name
    del folder, trained, app.session_state[catalogue.TRAINED]
    gc.collect()
    assert not Path(place).exists() and pair not in pairs.of_visits


def test_pairs_of_ones_own_are_checked_and_written_out(page):
    app = page(task="Pairs of your own", tables="true")
    app.button(key="start").click().run()
    assert "Paste pairs first" in app.error[0].value
    app.text_area(key="pasted_pairs").set_value("a\tb\n" * (MOST_PAIRS + 1)).run()
    assert "At most 5,000 pairs can be trained on; there are 5,001" in app.error[0].value
    assert app.button(key="start").disabled
    app.text_area(key="pasted_pairs").set_value("\n".join(PAIRS)).run()
    trained_and_escaped(app)
    captions = re.findall("<caption>(.*?)</caption>", words(app))
    assert len(captions) == 1 + 2 * 3 + 2 and captions[-1] == "Transformer · multi-head, by batch"


def test_a_tsv_is_uploaded_where_uploads_are_allowed(page, monkeypatch):
    app = page(task="Pairs of your own")
    content = "\n".join(["source\ttarget", *PAIRS, "no tab"]).encode()
    app.file_uploader[0].set_value(("=mine<b>.tsv", content, "text/plain")).run()
    assert app.caption[0].value.startswith("36 pairs of =mine\\<b\\>.tsv. Left out\\: line 38. ")
    trained_and_escaped(app)
    app.file_uploader[0].set_value(("mine.tsv", "a\tb".encode("utf-16"), "text/plain")).run()
    assert "The pairs cannot be read: mine.tsv must be UTF-8 text" in app.error[0].value.replace("\\", "")
    monkeypatch.setenv(settings.PUBLIC, "1")
    assert not page(task="Pairs of your own").file_uploader


PAIRS = [f"<b>{a} ={b}\t{b} {a}</script>" for a in "abcdef" for b in "uvwxyz"]


def trained_and_escaped(app):
    sound(app.button(key="start").click().run())
    seen(app, 1)
    sound(app.run())
    html = words(app) + "".join(cell["words"] for cell in cells(app, "learning-maps"))
    assert "</script>" not in html and "&lt;/script" in html.replace(" ", "")
    view.stop_training(app.session_state)


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "Paste pairs first"),
        (b"a b c\n", "No line of mine.tsv is a pair"),
        (b"a\t" + b"b" * 501, "each of at most 500 characters"),
        (b"\x1f\x8b\x08", "must be UTF-8 text"),
        (b"a\tb\0", "holds a NUL byte"),
        (b"a\tb\n" * 5001, "there are 5,001"),
        (b"a\tb\na\tc\n", "two different texts are needed"),
    ],
)
def test_what_is_no_tsv_of_pairs_is_said(content, reason):
    with pytest.raises(SceneError, match=reason):
        sidebar.pairs_of(content, "mine.tsv")


def test_lines_that_are_no_pairs_are_counted():
    read, left_out = sidebar.pairs_of(b"a\tb\tmore\n\nc\n d \t\ne\tf\n", "mine.tsv")
    assert read == [("a", "b"), ("e", "f")] and left_out.startswith(" Left out: line 3 and 1 more.")


def test_the_limits_that_security_promises_are_those_of_the_code():
    promised = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    numbers = f"{MOST_PAIRS:,} pairs of {LIMIT} characters", f"{Ring().size // 2**20} MB"
    times = f"{UNSEEN:.0f} seconds after its page", f"for {apart.MOST_SECONDS:.0f} seconds of computing"
    assert all(words in promised for words in (*numbers, *times))


def test_what_fails_on_purpose_says_why(page):
    app = sound(page(preset=PRESETS["future"].title))
    assert PRESETS["future"].why in words(app).replace("&#x27;", "'")
    assert not [pill for pill in app.get("button_group") if pill.key == "racers"]
