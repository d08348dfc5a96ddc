"""Measuring the sentences: slice after slice, with the progress and a button that stops it."""

import contextlib

import streamlit as st
from streamlit.errors import StreamlitAPIException

from attnviz.service import ServiceError
from dashboard.many.running import SLICE, Run
from dashboard.session.line import Full
from dashboard.shell import turns
from dashboard.shell.problems import SceneError, sentence

QUICK = 4 * SLICE  # sentences that take no longer than a moment
_STOPPED = "stopped runs"


def measure(runs: list[Run]) -> SceneError | None:
    """Do what is left, unless it was stopped -> why it cannot be done, or None.

    A run of this fragment alone does a slice and begins anew, since only then it hears whether Stop was pressed. A run
    of the whole page does all: Streamlit stops it when anything is pressed.
    """
    left = sum(run.total - run.done for run in runs)
    if not left:
        return None
    done, total = sum(run.done for run in runs), sum(run.total for run in runs)
    stopped, key = st.session_state.setdefault(_STOPPED, set()), tuple(map(id, runs))
    if key in stopped:
        st.button(f"Continue: {left:,} of {total:,} are left", key="go_on", on_click=stopped.discard, args=(key,))
        return None
    bar = st.empty()
    if left > QUICK or done > QUICK:
        st.button("Stop", key="stop", on_click=stopped.add, args=(key,), help="What is measured so far is shown.")
    try:
        while waiting := [run for run in runs if not run.finished]:
            done = sum(run.done for run in runs)
            bar.progress(done / total, f"{done:,} of {total:,} translations are measured.")
            with turns.long_turn():
                waiting[0].advance()
            with contextlib.suppress(StreamlitAPIException):  # the whole page is run
                st.rerun(scope="fragment")
    except (Full, ServiceError) as error:
        return SceneError(sentence(str(error)))
    bar.empty()
    return None
