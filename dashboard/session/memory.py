"""What one session remembers: the last scene that was drawn, which stays on the page when the next one fails; the
visitor's step and difference map; and the heads measured so far. What it holds in all is bounded."""

import functools
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass

from dashboard.choices import settings
from dashboard.session import caches
from dashboard.session.space import Held, Space

_HEADING, _SCENE, _CURSOR, _CHANGES, _VISITOR = "heading", "last scene of ", "cursor", "importance", "visitor"


@dataclass
class Cursor:
    """The step and the difference map that a session shows.

    Downloads read it when they are clicked, on a thread without a session; by then the step may have moved without the
    rest of the page being run again.
    """

    step: int = 0  # from 0
    difference: tuple[int, int] | None = None  # places of the two columns whose maps are subtracted


@functools.cache
def space() -> Space:
    """The memory of what all visitors hold."""
    return Space(settings.bytes_of(settings.VISITOR), settings.bytes_of(settings.MEMORY))


def remember(scene, session: MutableMapping, page: str) -> None:
    """Keep the scene that a page drew last. page : the name of its folder. Raises NoRoom (`claim`)."""
    claim(scene.held, session, page)
    session[_SCENE + page] = scene
    session[_HEADING] = scene.heading


def claim(held: Iterable[Held], session: MutableMapping, page: str) -> None:
    """A page is about to hold these; what other pages hold goes if it must. Raises NoRoom when that is not enough."""
    if _VISITOR not in session:
        session[_VISITOR] = space().visitor()
    for dropped in session[_VISITOR].show(page, held):
        for key in [key for key in session if str(key).endswith(f" of {dropped}")]:  # what the page has kept
            del session[key]


def heading(session: MutableMapping) -> Sequence[str]:
    """What a saved picture says of the scene drawn last, whatever the picture shows: model, sentence, translation."""
    return session.get(_HEADING, ())


def begin(session: MutableMapping) -> None:
    """A page is drawn anew: what saved pictures say is not yet known."""
    session[_HEADING] = ()


def last(session: MutableMapping, page: str):
    """The scene that a page drew last in this session, or None."""
    return session.get(_SCENE + page)


def cursor(session: MutableMapping) -> Cursor:
    """The session's one Cursor."""
    if _CURSOR not in session:
        session[_CURSOR] = Cursor()
    return session[_CURSOR]


def head_changes(session: MutableMapping, model: str, text: str, output: str = "") -> list:
    """The heads measured so far (`ablation.importance`), of one model, text and forced output at a time; a list to
    be added to."""
    asked = (*caches.key(model), text, output)
    if session.get(_CHANGES, (None,))[0] != asked:
        session[_CHANGES] = (asked, [])
    return session[_CHANGES][1]
