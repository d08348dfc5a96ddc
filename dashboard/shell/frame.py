"""What every page has: its messages, the last scene that worked, the theme, and numbers that a link holds."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import streamlit as st

from dashboard.markup.text import markdown
from dashboard.session import memory
from dashboard.shell.problems import SceneError, Waiting


class PageScene(Protocol):
    """What a page shows, worked out before anything is drawn.

    name : what it shows, for the caption “Below is still …”. text : of the person. heading : lines above pictures that
        are saved: model, sentence, translation. warnings : sentences, of what is not shown.
    """

    name: str
    text: str
    heading: Sequence[str]
    warnings: Sequence[str]


Scene = TypeVar("Scene", bound=PageScene)


def composed(page: str, compose: Callable[[], Scene]) -> Scene | None:
    """The scene that `compose` returns. When it raises SceneError: its message, and the last scene of the page, if
    there is one.

    page : the name of the page's folder.
    """
    notice = st.container(key="notice")
    try:
        scene = compose()
    except SceneError as error:
        say = notice.info if isinstance(error, Waiting) else notice.error
        say(markdown(str(error)), icon=":material/info:")
        scene = memory.last(st.session_state, page)
        if scene is None:
            return None
        notice.caption(f"Below is still {markdown(scene.name)} of this text:")
        notice.text(scene.text)
    else:
        memory.remember(scene, st.session_state, page)
    for warning in scene.warnings:
        notice.warning(markdown(warning), icon=":material/error:")
    return scene


def is_dark() -> bool:
    """Does the browser show the dark theme?"""
    return st.context.theme.type == "dark"


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
