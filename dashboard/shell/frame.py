"""Parts of every page: messages, the last valid scene, the theme, numbers in a link, and moments of a training."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import streamlit as st

from attnviz.service.request import ServiceError
from dashboard.choices.options import trained_title
from dashboard.markup.text import markdown
from dashboard.session import address, memory
from dashboard.session.memory import NoRoom
from dashboard.session.waiting_line import Full
from dashboard.shell import turns
from dashboard.shell.problems import SceneError, Waiting, Wanted, sentence


class PageScene(Protocol):
    """The contents of a page, computed before drawing.

    choices : the visitor's. name : of the contents, for the caption “The page still shows …”. text : the visitor's
    text. heading : lines above saved pictures: model, sentence, translation. warnings : sentences on what is not shown.
    """

    choices: Any
    name: str
    text: str
    heading: Sequence[str]
    warnings: Sequence[str]


Scene = TypeVar("Scene", bound=PageScene)
_PAUSE = 1.5  # s that a moment of a training is shown


@contextmanager
def composed(
    page: str, compose: Callable[[], Scene], wanted: Iterable[Wanted] = (), models: Iterable[str] = ()
) -> Iterator[Scene | None]:
    """The scene that `compose` returns, to be drawn within the block; both happen in the visitor's turn. If composing
    fails, shows the reason and yields the last scene of the page, if any.

    page : the name of the page's folder. wanted, models : the requests that come first, and the models (`turns.turn`).
    """
    notice = st.container(key="notice")
    with ExitStack() as stack:
        try:
            stack.enter_context(turns.turn(notice, wanted, models))
        except (Full, ServiceError) as error:
            scene = _refused(page, SceneError(sentence(str(error))), notice)
        else:
            scene = _composed(page, compose, notice)
        yield scene


def _composed(page: str, compose: Callable[[], Scene], notice) -> Scene | None:
    try:
        scene = compose()
        memory.remember(scene, st.session_state, page)
    except SceneError as error:
        if memory.last(st.session_state, page) is not None:
            address.stay()  # a reload asks the models again where only they failed
        return _refused(page, error, notice)
    except NoRoom as error:
        return _refused(page, SceneError(sentence(str(error))), notice)
    address.drawn()
    _warn(scene, notice)
    return scene


def _refused(page: str, error: SceneError, notice) -> Scene | None:
    """Show the reason why there is no new scene -> the last scene."""
    say = notice.info if isinstance(error, Waiting) else notice.error
    say(markdown(str(error)), icon=":material/info:")
    scene = memory.again(st.session_state, page)
    if scene is not None:
        if scene.text == st.session_state.get("text"):
            notice.caption(f"The page still shows {markdown(scene.name)} that was here before.")
        else:
            notice.caption(f"The page still shows {markdown(scene.name)} of this text:")
            notice.text(scene.text)
        _warn(scene, notice)
    return scene and _drawn_as_chosen(scene)


def _drawn_as_chosen(scene: Scene) -> Scene:
    """The last scene with the controls that decide how it is drawn: they can change while a new text is refused."""
    before = {key: getattr(scene.choices, key) for key in address.DRAWING if hasattr(scene.choices, key)}
    now = {key: st.session_state.get(key, value) for key, value in before.items()}
    return scene if now == before else replace(scene, choices=replace(scene.choices, **now))


def _warn(scene: Scene, notice) -> None:
    for warning in scene.warnings:
        notice.warning(markdown(warning), icon=":material/error:")


def is_dark() -> bool:
    """Does the browser show the dark theme?"""
    return st.context.theme.type == "dark"


def is_embedded() -> bool:
    """Is the page embedded in another page (`?embed=1`)? Then it shows only its maps."""
    return bool(st.context.is_embedded)


def linked_number(key: str, default: int) -> int:
    """The number under `key` in the page's address. A slider reads it too, but ignores values out of range."""
    try:
        return int(st.query_params.get(key, default))
    except ValueError:
        return default


def slider_value(key: str, low: int, high: int) -> int:
    """The value of a slider from `low` to `high`: that of the session, else of the link, clipped to the range.

    It is written to the session only if necessary, because an assignment would override input during this run.
    """
    session, ends = st.session_state, f"ends of {key}"
    if key in session and ends in session:  # a link counts more than what was chosen for a first view
        address.keep(key)
    chosen = session[key] if key in session else linked_number(key, low)
    value = min(max(int(chosen), low), high)
    if session.get(key) != value or session.get(ends) != (low, high):  # a slider with other ends is another slider
        session[key], session[ends] = value, (low, high)
    return value


def keep_place(key: str, places: Sequence, names: Sequence[str]) -> None:
    """Call before a select box whose options change names, such as places in a text: an invalid value becomes the first
    option. A valid value is set again, because the browser would keep showing its old name.
    """
    session, last = st.session_state, f"names of {key}"
    if session.get(key, places[0]) not in places:
        session[key] = places[0]
    elif key in session and session.get(last, names) != names:
        session[key] = session[key]
    session[last] = names


def numbered(words: str, key: str, names: Sequence[str], none: str = "", within=st) -> int:
    """A select box of numbered names that may change, such as the tokens of a text -> the place of the chosen one, from
    0. none : an entry above them, whose place is -1. within : a column of the page."""
    places = range(-1 if none else 0, len(names))
    keep_place(key, places, names)
    return within.selectbox(
        words,
        places,
        format_func=lambda place: none if place < 0 else f"{place + 1} {names[place]}",
        key=key,
        bind="query-params",
    )


def moment(count: int, training: str, key: str) -> int:
    """The control of the moment of a training, from 0; -1 for the model that ships. training : which, in words."""
    return st.select_slider(
        "Trained for",
        [*range(count), -1],
        -1,
        format_func=trained_title,
        key=key,
        bind="query-params",
        help=f"{count} moments of {training}, from the untrained model to the end of a run. That run is another than "
        "the one of the model that ships.",
    )


def play_moments(switch: str, key: str, last: int) -> None:
    """A switch that moves the control of the moment on at intervals, up to the last. switch, key : of both in the
    session."""
    now = st.session_state[key]
    playing = st.toggle("▶ Play the training", key=switch) and now < last
    st.fragment(functools.partial(_to_moment, key, now + 1), run_every=_PAUSE if playing else None)()


def _to_moment(key: str, place: int) -> None:
    if address.runs_alone():
        st.session_state[key] = place
        st.rerun()
