"""The pages under a limit of memory: a text that takes too much is refused in words, and the last picture stays."""

import pytest
from compare_app import run, scene, sound

from dashboard.many import view
from dashboard.session import memory
from dashboard.session.memory import VisitorMemory


@pytest.fixture(autouse=True)
def tiny_models(root, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))


def limited(monkeypatch, share: int) -> VisitorMemory:
    space = VisitorMemory(share, 2**30)
    monkeypatch.setattr(memory, "visitor_memory", lambda: space)
    return space


def test_a_text_that_takes_too_much_leaves_the_last_picture(monkeypatch):
    space = limited(monkeypatch, 2**30)
    app = run(show=["Bahdanau"], text="The dog runs.")
    sound(app)
    space.share = app.session_state["visitor"].held + 30_000
    app.text_input(key="text").set_value("The black dog runs and the white cat sleeps. " * 8).run()
    assert not app.exception
    (words,) = (box.value for box in app.error)
    assert words.startswith("This needs 0.") and "MB of the server's memory, and each visitor may use 0." in words
    assert scene(app).text == "The dog runs."
    app.text_input(key="text").set_value("The dog runs.").run()
    sound(app)


def test_a_run_over_sentences_that_would_take_too_much_is_not_begun(monkeypatch):
    limited(monkeypatch, 10_000)
    session = {}

    class Runs:
        bytes = 20_000

    monkeypatch.setattr(view.st, "session_state", session)
    error = view._no_room([Runs()])
    assert str(error).startswith("This needs 0.0 MB of the server's memory") and "runs of many" not in session
    Runs.bytes = 5_000
    assert view._no_room([Runs()]) is None and len(session["runs of many"]) == 1


def test_what_another_page_keeps_goes_first(monkeypatch):
    limited(monkeypatch, 100)
    session, first, second = (
        {"last scene of heads": "scene", "kept of heads": "figures", "text": "A dog."},
        Runs(),
        Runs(),
    )
    memory.claim([(first, 60)], session, "heads")
    assert "last scene of heads" in session
    memory.claim([(second, 60)], session, "many")
    assert set(session) == {"text", "visitor"}


class Runs:
    """Anything that takes memory."""
