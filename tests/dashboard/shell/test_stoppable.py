"""Work that can be stopped, and values that are made once."""

import threading

import pytest

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
