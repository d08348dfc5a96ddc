"""The tour on the page: offered once, one stop at a time, and the answer behind a click. The questions are in
stops.py."""

import html
from collections.abc import Mapping

import streamlit as st

from dashboard.compare.scene import CompareScene
from dashboard.compare.tour import stops
from dashboard.session import address, catalogue
from dashboard.shell import link_notes

_STOP, _ANSWERED = "tour stop", "tour answered"  # in the session: from 1; the offer needs not be made again
# After the stop in the address: what the rest of it leaves out is as on any page, not as at the stop.
_AS_SHOWN = "-as-shown"
COOKIE = "attnviz_tour"  # set by tour.js once the offer was answered: then it is not made again in this browser


def arrive() -> None:
    """Take up the stop that a link names, or the address that Back leads to. Call it before there is any widget.

    What the address leaves out is as the stop has it: `tour=2` alone opens its view.
    """
    if address.came_back():
        st.session_state.pop(_STOP, None)
    elif _ANSWERED in st.session_state:
        return
    written = st.query_params.get("tour", "")
    stop = stops.number(written.removesuffix(_AS_SHOWN))
    if stop and stops.offered(catalogue.offered()):
        if not written.endswith(_AS_SHOWN):
            _go(stop)
        st.session_state.update({_STOP: stop, _ANSWERED: True})


def show() -> None:
    """The stop with its question; before that the offer. Outside of fragments: another stop changes the sidebar too."""
    stop = _stop()
    if stop is None:
        st.query_params.pop("tour", None)
        _offer()
        return
    address.also("tour", _written)
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
    st.session_state.update({"layer": layers - 1} | view | {_STOP: stop, _ANSWERED: True})


def _written(held: Mapping) -> str:
    """The stop, as the address names it. held : what else is in the address."""
    stop, session = _stop(), st.session_state
    view = stops.STOPS[stop - 1].view
    hidden = any(key not in held and session.get(key, value) != value for key, value in view.items())
    return f"{stop}{_AS_SHOWN}" if hidden else str(stop)


def _leave() -> None:
    st.session_state.pop(_STOP, None)
    st.session_state[_ANSWERED] = True
