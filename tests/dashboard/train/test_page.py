"""The page Watch it learn, by Streamlit's own test driver; the training is a real one, in its process."""

import time

import pytest
from client import chart_cells
from streamlit.testing.v1 import AppTest

from attnviz.training import apart
from attnviz.training.apart import ENDED, PAUSED
from attnviz.training.seen import MOST_PAIRS, PRESETS
from dashboard.choices import settings
from dashboard.train import running

SCRIPT = """import streamlit as st
from dashboard.session import address
from dashboard.train import sidebar, view

address.begin()
with st.sidebar:
    chosen = sidebar.show()
view.show(chosen)
address.settle()
"""
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


def test_a_race_is_seen_paused_gone_back_over_and_stopped(page):
    app = sound(page(task="Sort the sequence"))
    assert "correct alignment is on the letter that is written" in words(app) and not cells(app, "learning-maps")
    sound(app.button(key="start").click().run())
    seen(app, 2)
    sound(app.run())
    sound(app.button(key="pause").click().run())
    training = app.session_state["training"]
    assert training.state == PAUSED and "Paused." in words(app)
    count = 0
    while count < len(training.moments):  # the batch that was under way ends, and is shown
        count = len(training.moments)
        time.sleep(3)
    app.run()
    last = len(training.moments) - 1
    assert app.slider(key="moment").value == last
    shown = {}
    for place in (0, last):
        sound(app.slider(key="moment").set_value(place).run())
        maps, curves = cells(app, "learning-maps"), cells(app, "learning-curves")
        assert len(maps) == 3 and len(curves) == 1
        assert f"After {training.moments[place].batch} batches" in words(app)
        shown[place] = maps[0]["figure"]["data"][0]["z"]
        assert "Luong · dot · batch" in str(maps[0]["figure"]["layout"]["annotations"])
    assert shown[0] != shown[last]
    assert app.get("download_button")
    sound(app.button(key="single").click().run())
    sound(app.button(key="stop").click().run())
    assert training.process.wait(PATIENCE) is not None and "The training has ended." in words(app)


def test_a_server_takes_so_many_and_may_take_none(page, monkeypatch):
    monkeypatch.setenv(settings.TRAIN, "1")
    first, second = page(), page()
    first.button(key="start").click().run()
    second.button(key="start").click().run()
    assert "1 training runs on this server already" in second.error[0].value and "training" not in second.session_state
    running.stop(first.session_state)
    sound(second.button(key="start").click().run())
    monkeypatch.setenv(settings.TRAIN, "0")
    off = page()
    assert off.button(key="start").disabled and "ATTNVIZ_TRAIN=0" in off.info[0].value


def test_a_killed_training_is_said(page):
    app = page()
    app.button(key="start").click().run()
    training = seen(app, 1)
    training.process.kill()
    training.process.wait()
    end = time.monotonic() + PATIENCE
    while training.state != ENDED and time.monotonic() < end:
        time.sleep(0.05)
    assert "has ended unexpectedly" in words(sound(app.run()))


def test_pairs_of_ones_own_are_checked(page):
    app = page(task="Pairs of your own")
    app.button(key="start").click().run()
    assert "Paste pairs first" in app.error[0].value
    app.text_area(key="pasted_pairs").set_value("a\tb\n" * (MOST_PAIRS + 1)).run()
    app.button(key="start").click().run()
    assert "At most 5,000 pairs can be trained on; there are 5,001" in app.error[0].value
    lines = [f"<b>{a} ={b}\t{b} {a}</script>" for a in "abcdef" for b in "uvwxyz"]
    app.text_area(key="pasted_pairs").set_value("\n".join(lines)).run()
    sound(app.button(key="start").click().run())
    seen(app, 1)
    sound(app.run())
    html = words(app) + "".join(cell["words"] for cell in cells(app, "learning-maps"))
    assert "</script>" not in html and "&lt;/script" in html.replace(" ", "")


def test_what_fails_on_purpose_says_why(page):
    app = sound(page(preset=PRESETS["future"].title))
    assert PRESETS["future"].why in words(app).replace("&#x27;", "'")
    assert not [pill for pill in app.get("button_group") if pill.key == "racers"]
