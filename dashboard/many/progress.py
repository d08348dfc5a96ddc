"""Measuring the sentences: slice after slice, with the progress and a button that stops it."""

import contextlib
import time
from weakref import WeakSet

import streamlit as st
from streamlit.errors import StreamlitAPIException

from attnviz.service import ServiceError
from attnviz.service.request import RESTARTING, RUNNING
from dashboard.many.running import SLICE, Run
from dashboard.session import caches
from dashboard.session.line import Full
from dashboard.shell import turns
from dashboard.shell.problems import SceneError, sentence

QUICK = 4 * SLICE  # sentences that take no longer than a moment
_STOPPED = "stopped runs of many"


def measure(runs: list[Run]) -> SceneError | None:
    """Do what is left, unless it was stopped -> why it cannot be done, or None.

    A run of this fragment alone does a slice and begins anew. A run of the whole page cannot, so it does slice after
    slice, and ends when anything was pressed: Streamlit would let it finish, since Stop asks for this fragment only.
    """
    left = [run for run in runs if not run.finished]
    if not left:
        return None
    stopped = st.session_state.setdefault(_STOPPED, WeakSet())
    if stopped.issuperset(left):
        count, total = _count(runs)
        words = f"Continue: {total - count:,} of {total:,} are left"
        st.button(words, key="go_on", on_click=stopped.clear)
        return None
    bar, stop = st.empty(), st.empty()
    if sum(run.total for run in runs) > QUICK:
        stop.button("Stop", key="stop", on_click=stopped.update, args=(left,), help="What is measured so far is shown.")
    try:
        while waiting := [run for run in runs if not run.finished]:
            done, total = _count(runs)

            def show(state: str) -> None:
                bar.progress(done / total, words_for(done, total, waiting[0].pace, state))

            show(RUNNING)
            since = time.monotonic()
            with turns.long_turn():
                waiting[0].advance(since, lambda futures: show(caches.state_of(futures)))
            turns.let_go_if_asked()
            with contextlib.suppress(StreamlitAPIException):  # the whole page is run
                st.rerun(scope="fragment")
    except (Full, ServiceError) as error:
        return SceneError(sentence(str(error)))
    bar.empty()
    stop.empty()
    return None


def words_for(done: int, total: int, pace: float, state: str = RUNNING) -> str:
    """What a person reads meanwhile. pace : sentences a second; 0 when it is not known. state : of the models."""
    words = f"{done:,} of {total:,} translations are measured."
    if state == RESTARTING:
        return f"{words} The process of the models has stopped. It is being started again, then this goes on."
    words += turns.AFTER.get(state, "")
    if not pace:
        return words
    seconds = (total - done) / pace
    time_left = f"{seconds:.0f} s" if seconds < 99.5 else f"{seconds / 60:.0f} min"
    return f"{words} {pace:,.0f} a second, about {time_left} left."


def _count(runs: list[Run]) -> tuple[int, int]:
    return sum(run.done for run in runs), sum(run.total for run in runs)
