"""The tour on the page: offered once, one stop at a time, and the answer behind a click. The questions are in
stops.py."""

import html

import streamlit as st

from dashboard.compare.scene import CompareScene
from dashboard.compare.tour import stops
from dashboard.session import catalogue
from dashboard.shell import link_notes

_STOP, _ANSWERED = "tour stop", "tour answered"  # in the session: from 1; the offer needs not be made again
_STEP, _LOOSE = "tour step", "tour step loose"  # in the session: a stop has set the step; it is not in the address
_FIRST = "-1"  # after the stop in the address: the visitor went to the first step, which a slider leaves out there
COOKIE = "attnviz_tour"  # set by tour.js once the offer was answered: then it is not made again in this browser


def arrive() -> None:
    """Take up the stop that a link names. Call it before there is any widget.

    A link that was copied says all that is on the page, but for the step of a stop (`step_binding`); one that says no
    more than `tour=2` gets the view of that stop.
    """
    if _ANSWERED in st.session_state or not stops.offered(catalogue.offered()):
        return
    written = st.query_params.get("tour", "")
    if stop := stops.number(written.removesuffix(_FIRST)):
        view, first = stops.STOPS[stop - 1].view, written.endswith(_FIRST)
        if "text" not in st.query_params:
            _go(stop)
        elif not first and "step" not in st.query_params and st.query_params["text"] == view["text"]:
            st.session_state["step"] = view["step"]
        st.session_state.update({_STOP: stop, _ANSWERED: True})


def show() -> None:
    """The stop with its question; before that the offer. Outside of fragments: another stop changes the sidebar too."""
    stop = _stop()
    if stop is None:
        st.query_params.pop("tour", None)
        _offer()
        return
    st.query_params["tour"] = str(stop)
    with st.container(key="tour"):
        facts, count = stops.STOPS[stop - 1], len(stops.STOPS)
        st.html(
            f'<p class="tour-title">Tour, stop {stop} of {count}: {html.escape(facts.title)}</p>'
            f'<p class="question">{html.escape(facts.question)}</p>'
        )
        with st.container(horizontal=True, key="tour_buttons"):
            if stop > 1:
                st.button("Back", key="tour_back", on_click=_go, args=(stop - 1,))
            if stop < count:
                st.button("Next question", key="tour_next", on_click=_go, args=(stop + 1,), type="primary")
            st.button("Show this stop again", key="tour_again", on_click=_go, args=(stop,), type="tertiary")
            st.button("Finish" if stop == count else "End the tour", key="tour_end", on_click=_leave)


def answer(current: CompareScene) -> None:
    """The answer to the question of the stop, behind a click, worked out from what the page shows."""
    stop = _stop()
    if stop is None:
        return
    facts = stops.STOPS[stop - 1]
    if facts.is_shown(current):
        st.html(
            f'<details class="tour-answer"><summary>Show the answer</summary><p>{facts.answer(current)}</p></details>',
        )
    else:
        st.html(
            '<p class="tour-answer">You have changed the view. <b>Show this stop again</b> above brings its '
            "question back.</p>"
        )


def button() -> None:
    """Begins the tour at any time."""
    if _stop() is None and stops.offered(catalogue.offered()):
        st.button("Take the tour", key="tour_begin", on_click=_go, args=(1,), icon=":material/explore:")


def _stop() -> int | None:
    return st.session_state.get(_STOP)


def _offer() -> None:
    """Made to a visitor who comes without a link, until it is answered in this browser."""
    answered = st.session_state.get(_ANSWERED) or st.context.cookies.get(COOKIE) == "answered"
    if answered or link_notes.came_with_link() or not stops.offered(catalogue.offered()):
        return
    with st.container(key="tour_offer", horizontal=True, vertical_alignment="center"):
        st.html("<p>New here? Five questions show what attention does, in five minutes.</p>", width="content")
        st.button("Take the tour", key="tour_yes", on_click=_go, args=(1,), type="primary")
        st.button("No, thanks", key="tour_no", on_click=_leave)


def _go(stop: int) -> None:
    """To a stop; of the Transformer its last layer."""
    layers, _ = catalogue.layers_and_heads(next(iter(catalogue.many_headed_of(stops.PAIR)), None))
    view = stops.STOPS[stop - 1].view
    st.session_state.update({"layer": layers - 1} | view | {_STOP: stop, _ANSWERED: True, _STEP: True})


def step_binding() -> str | None:
    """What ties the control of the steps to the address: nothing in the run in which a stop sets the step.

    A slider with another end is a new one to Streamlit, and the address, which still names the step of the stop before,
    would override what the stop has set.
    """
    session = st.session_state
    _write_first_step()
    if session.pop(_STEP, False):
        session[_LOOSE] = True
        return None
    if session.pop(_LOOSE, False):
        session["step"] = session["step"]  # an assignment is written into the address
    return "query-params"


def _write_first_step() -> None:
    """Into the address: that the visitor went from the step of a stop to the first one."""
    if stop := _stop():
        went = st.session_state["step"] == 1 != stops.STOPS[stop - 1].view["step"]
        written = f"{stop}{_FIRST}" if went else str(stop)
        if st.query_params.get("tour") != written:
            st.query_params["tour"] = written


def _leave() -> None:
    st.session_state.pop(_STOP, None)
    st.session_state[_ANSWERED] = True
