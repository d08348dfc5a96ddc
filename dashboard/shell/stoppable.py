"""Work of more than a second that says how far it is and ends when the person moves anything."""

import threading
import time
from collections.abc import Callable

import streamlit as st

from dashboard.shell import turns

SOON = 1.0  # s without a word
EVERY = 0.25  # s between two words


class Steps:
    """Called at each step of some work: after SOON it says how many of `count` are done, beside a Stop button.

    Where the person has pressed it, or moved anything else on the page, the work ends there, and the page is drawn
    anew.

    key : of the button; a page may show several. stop : called when it is pressed; it takes back what asked for
    the work.
    """

    def __init__(self, words: str, count: int, key: str, stop: Callable[[], None]):
        self._words, self._count, self._done = words, max(1, count), 0
        self._key, self._stop = key, stop
        self._next, self._line, self._bar = time.monotonic() + SOON, None, None

    def __call__(self) -> None:
        self._done += 1
        turns.let_go_if_asked()
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        share = min(self._done / self._count, 1.0)
        self._say(share, f"{self._words}: {share:.0%}")

    def end(self) -> None:
        """Take the line away."""
        if self._line:
            self._line.empty()

    def _say(self, share: float, words: str) -> None:
        if self._bar:
            self._bar.progress(share, words)
            return
        self._line = st.empty()
        with self._line.container(horizontal=True, vertical_alignment="center"):
            st.button("Stop", key=self._key, on_click=self._stop)
            self._bar = st.progress(share, words)


class Once:
    """A value that is made once for all who ask. What is stopped while it is made is made by the next who asks."""

    def __init__(self):
        self._lock, self._value = threading.Lock(), None

    def get(self, make: Callable):
        """The value, made by `make` where there is none yet. Raises what `make` raises.

        Who waits for another person's run can leave too.
        """
        while not self._lock.acquire(timeout=turns.LOOK):
            turns.let_go_if_asked()
        try:
            if self._value is None:
                self._value = make()
            return self._value
        finally:
            self._lock.release()
