"""Turns: only as many people compute at once as there are processors, first come, first served; the queue is shown.
Long computations show progress, and end when the visitor changes anything."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import streamlit as st
from streamlit.runtime.scriptrunner import RerunException, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequestType

from attnviz.models.names import is_hugging_face
from attnviz.service import ServiceError
from attnviz.service.request import APART, GUEST_S, OF_GUEST, RESTARTING, RUNNING, SILENT, STARTING, Limits
from dashboard.markup.text import markdown
from dashboard.session.waiting_line import Full, Ticket, WaitingLine, cores
from dashboard.shell.problems import SceneError, Wanted, sentence

SOON = 0.5  # s that a person waits without a word
LOOK = 0.25  # s between two looks at whether the person has typed again
MOST = 500  # people who may wait
# What is said of the models: instead of the place in the queue, and after it.
_INSTEAD = {
    STARTING: "The models are being read.",
    RESTARTING: "The process of the models has stopped. It is being started again; your sentence is kept.",
}
AFTER = {
    OF_GUEST: f" This model is slow. It computes apart from what others wait for, {GUEST_S:g} seconds at most.",
    SILENT: f" The models have not answered for {Limits.quiet:g} seconds. If they still do not answer after "
    f"{Limits.silence:g} seconds, a new process takes over.",
    APART: f" The models need long for this, so it is computed apart from what others wait for, in "
    f"{Limits.request:g} seconds at most.",
}

# The models compute in a process of their own, so one processor is theirs. Threads that draw share one interpreter:
# more than two at once draw fewer pages in all than one after the other.
QUICK = WaitingLine(min(2, max(1, cores() - 1)), MOST)
LONG = WaitingLine(1, MOST)  # what takes seconds: one at a time, and never in the way of a new sentence
GUESTS = WaitingLine(1, MOST)  # pages with a transformers model, which may take minutes: nobody else waits
_here = threading.local()  # the ticket of this thread
FIRST_WORD = 1.0  # s of work without a word
NEXT_WORD = 0.25  # s between two words


@contextmanager
def turn(notice, wanted: Iterable[Wanted] = (), models: Iterable[str] = ()) -> Iterator[None]:
    """The block runs in its turn, after the requests of `wanted` have finished.

    notice : the container for the number of people ahead. wanted : makes the requests, one after the other. models : on
    the page. Raises Full. Typing again stops this: Streamlit ends the run, which frees the place in the line.
    """
    ticket, requested = _line(models, QUICK).join(), []
    try:
        waiting = _Waiting(notice, ticket)
        for traces in wanted:
            requested.append(traces)
            waiting.until(traces.done, traces.state)
        ticket.ready()
        waiting.until(ticket.admitted)
        waiting.end()
        _here.ticket = ticket
        yield
    finally:
        ticket.leave()
        for traces in requested:
            traces.release()


def _line(models: Iterable[str], usual: WaitingLine) -> WaitingLine:
    return GUESTS if any(map(is_hugging_face, models)) else usual


@contextmanager
def long_turn(models: Iterable[str] = ()) -> Iterator[None]:
    """For work of a second or more with these models. The turn of the page ends here, so that a new sentence does not
    wait for this."""
    if ticket := getattr(_here, "ticket", None):
        ticket.leave()
    ticket = _line(models, LONG).join()
    try:
        ticket.ready()
        while not ticket.admitted(LOOK):
            end_if_superseded()
        yield
    finally:
        ticket.leave()


@contextmanager
def errors_shown() -> Iterator[None]:
    """For a panel: if the models cannot be reached, too many people wait, or there is nothing to draw, the block ends
    and the panel says so."""
    try:
        yield
    except (Full, ServiceError) as error:
        st.error(markdown(sentence(str(error))), icon=":material/info:")
    except SceneError as error:
        st.error(markdown(str(error)), icon=":material/info:")


class _Waiting:
    """Waits, and says so after a while, in one line that changes."""

    def __init__(self, notice, ticket: Ticket):
        self._notice, self._ticket = notice, ticket
        self._since, self._line, self._words = time.monotonic(), None, ""

    def until(self, arrived: Callable[[float], bool], state: Callable[[], str] = lambda: RUNNING) -> None:
        """state : of the requests."""
        while not arrived(LOOK):
            end_if_superseded()
            if time.monotonic() - self._since >= SOON:
                self._say(state())

    def end(self) -> None:
        """Take the line away."""
        if self._line:
            self._line.empty()

    def _say(self, state: str) -> None:
        words = words_for(self._ticket.ahead, state)
        if words != self._words:
            self._line = self._line or self._notice.empty()
            self._line.caption(words)
            self._words = words


def words_for(ahead: int, state: str) -> str:
    """The message for a waiting visitor."""
    if state in _INSTEAD:
        return _INSTEAD[state]
    people = f"{ahead} {'person is' if ahead == 1 else 'people are'}"
    place = f"Place {ahead + 1} in the queue: {people} ahead of you." if ahead else "You are next."
    return place + AFTER.get(state, "")


def end_if_superseded() -> None:
    """End this run if the visitor has typed again or left. Nothing is drawn yet, so nothing is lost.

    Streamlit itself ends a run when the page must be rerun, at any access to the session's state. But if only a
    fragment must be rerun, as after a new sentence, Streamlit finishes the run, although its result is no longer
    needed.
    """
    _ = "text" in st.session_state
    context = get_script_run_ctx()
    if context and context.script_requests and context.script_requests._state == ScriptRequestType.RERUN:
        request = context.script_requests.on_scriptrunner_ready()
        if request.type == ScriptRequestType.RERUN:  # and not, meanwhile, a stop
            rerun = with_interrupted(request.rerun_data, context.fragment_ids_this_run)
            came_back = rerun.is_history_navigation or context.is_history_navigation
            raise RerunException(replace(rerun, is_history_navigation=came_back))


def with_interrupted(rerun: RerunData, running: Sequence[str] | None) -> RerunData:
    """The requested rerun, extended by the fragments of the run that it ends, whose remaining parts would be missing.

    running : fragments of the ended run; None for a run of the whole page.
    """
    if not rerun.fragment_id_queue:
        return rerun
    if not running:
        return replace(rerun, fragment_id=None, fragment_id_queue=[], is_fragment_scoped_rerun=False)
    return replace(rerun, fragment_id_queue=list(dict.fromkeys([*running, *rerun.fragment_id_queue])))


class Steps:
    """Called at each step of some work: after FIRST_WORD it shows how many of `count` are done, beside a Stop button.

    When the button is pressed, or anything else on the page is changed, the work ends, and the page is redrawn.

    key : of the button; a page may show several. stop : called when it is pressed; it withdraws the request for the
    work.
    """

    def __init__(self, words: str, count: int, key: str, stop: Callable[[], None]):
        self._words, self._count, self._done = words, max(1, count), 0
        self._key, self._stop = key, stop
        self._next, self._line, self._bar = time.monotonic() + FIRST_WORD, None, None

    def __call__(self) -> None:
        self._done += 1
        end_if_superseded()
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + NEXT_WORD
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
    """A value that is computed once for all callers. If computing is stopped, the next caller restarts it."""

    def __init__(self):
        self._lock, self._value = threading.Lock(), None

    def get(self, make: Callable):
        """The value, made by `make` if there is none yet. Raises what `make` raises.

        A caller who waits for another person's run can leave too.
        """
        while not self._lock.acquire(timeout=LOOK):
            end_if_superseded()
        try:
            if self._value is None:
                self._value = make()
            return self._value
        finally:
            self._lock.release()
