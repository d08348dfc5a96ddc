"""What every page has: its messages, the last scene that worked, the theme, and numbers that a link holds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol, TypeVar

import streamlit as st

from attnviz.service.request import ServiceError
from dashboard.markup.text import markdown
from dashboard.session import address, memory
from dashboard.session.memory import NoRoom
from dashboard.session.waiting_line import Full
from dashboard.shell import turns
from dashboard.shell.problems import SceneError, Waiting, Wanted, sentence


class PageScene(Protocol):
    """What a page shows, worked out before anything is drawn.

    name : what it shows, for the caption “The page still shows …”. text : of the person. heading : lines above pictures
        that are saved: model, sentence, translation. warnings : sentences, of what is not shown.
    """

    name: str
    text: str
    heading: Sequence[str]
    warnings: Sequence[str]


Scene = TypeVar("Scene", bound=PageScene)


@contextmanager
def composed(page: str, compose: Callable[[], Scene], wanted: Iterable[Wanted] = ()) -> Iterator[Scene | None]:
    """The scene that `compose` returns, to be drawn within the block: both in the person's turn. When there is nothing
    to compose: why, and the last scene of the page, if there is one.

    page : the name of the page's folder. wanted : what the models are asked for first (`turns.turn`).
    """
    notice = st.container(key="notice")
    with ExitStack() as stack:
        try:
            stack.enter_context(turns.turn(notice, wanted))
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
    """The last scene, under the reason why there is no new one."""
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
    return scene


def _warn(scene: Scene, notice) -> None:
    for warning in scene.warnings:
        notice.warning(markdown(warning), icon=":material/error:")


def is_dark() -> bool:
    """Does the browser show the dark theme?"""
    return st.context.theme.type == "dark"


def is_embedded() -> bool:
    """Does the page stand in a frame of another page, by `?embed=1`? Then it shows its maps alone."""
    return bool(st.context.is_embedded)


def linked_number(key: str, default: int) -> int:
    """The number that the page's address holds under `key`. A slider reads it too, but ignores one beyond its end."""
    try:
        return int(st.query_params.get(key, default))
    except ValueError:
        return default


def slider_value(key: str, low: int, high: int) -> int:
    """What a slider from `low` to `high` is to show: what the session holds, else what the link holds, within its ends.

    It is put into the session only when it must be: an assignment overrides what was pressed while this run was under
    way.
    """
    session, ends = st.session_state, f"ends of {key}"
    chosen = session[key] if key in session else linked_number(key, low)
    value = min(max(int(chosen), low), high)
    if session.get(key) != value or session.get(ends) != (low, high):  # a slider with other ends is another slider
        session[key], session[ends] = value, (low, high)
    return value


def keep_place(key: str, places: Sequence, names: Sequence[str]) -> None:
    """Before a select box whose options have other names at times, such as places in a text: a value that is no option
    becomes the first option. Any other value is set anew with its present name, because the browser would go on showing
    the old one.
    """
    session, last = st.session_state, f"names of {key}"
    if session.get(key, places[0]) not in places:
        session[key] = places[0]
    elif key in session and session.get(last, names) != names:
        session[key] = session[key]
    session[last] = names
