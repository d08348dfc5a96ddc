"""Work that can be stopped, and values that are made once."""

import threading

import pytest

from dashboard.shell import turns
from dashboard.shell.stoppable import Once


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
    monkeypatch.setattr(turns, "let_go_if_asked", leave)
    with pytest.raises(KeyboardInterrupt):
        once.get(make)
    end.set()
    first.join()
    assert once.get(make) == "value"
