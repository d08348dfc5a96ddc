"""What is run when a person moves something in the middle of a run, and values that are made once."""

import threading

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

from dashboard.shell import turns
from dashboard.shell.turns import Once, with_interrupted


@pytest.mark.parametrize(
    "queued, running, wanted",
    [
        ([], None, []),
        ([], ["panel"], []),  # the whole page is more
        (["panel"], None, []),  # the whole page was under way, and is not finished
        (["panel"], ["panel"], ["panel"]),
        (["panel"], ["page"], ["page", "panel"]),
    ],
)
def test_what_an_ended_run_had_to_draw_is_drawn(queued, running, wanted):
    data = RerunData(query_string="a=1", fragment_id_queue=queued)
    again = with_interrupted(data, running)
    assert again.fragment_id_queue == wanted and again.query_string == "a=1" and again.fragment_id is None


def test_a_page_with_a_model_of_the_transformers_library_keeps_nobody_else_waiting(monkeypatch):
    """As long as it is drawn, whatever it computes: it stands in a line of its own."""
    held = turns.GUESTS.join()
    held.ready()
    with turns.turn(None, models=["en-fr/bahdanau"]), turns.long_turn(["en-fr/bahdanau"]):
        pass
    monkeypatch.setattr(turns, "end_if_superseded", lambda: held.leave())  # whoever waits looks around
    with turns.turn(None, models=["en-fr/bahdanau", "hf:bart"]):
        assert not turns.GUESTS.join().admitted(0)


def test_a_value_is_made_once():
    once, made = Once(), []
    threads = [threading.Thread(target=lambda: once.get(lambda: made.append(1) or "value")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] and once.get(lambda: "another") == "value"


def test_what_was_stopped_is_made_by_the_next_who_asks():
    once = Once()

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once.get(stop)
    assert once.get(lambda: "value") == "value"


def test_who_waits_for_another_persons_run_can_leave(monkeypatch):
    once, begun, end = Once(), threading.Event(), threading.Event()

    def make():
        begun.set()
        end.wait()
        return "value"

    def leave():
        raise KeyboardInterrupt

    first = threading.Thread(target=lambda: once.get(make))
    first.start()
    begun.wait()
    monkeypatch.setattr(turns, "end_if_superseded", leave)
    with pytest.raises(KeyboardInterrupt):
        once.get(make)
    end.set()
    first.join()
    assert once.get(make) == "value"
