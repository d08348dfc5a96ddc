"""What one session remembers: the last scene that was drawn, which stays on the page when the next one fails; the
visitor's step and difference map; an uploaded trace; and the heads measured so far."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass

from dashboard.session import caches

_HEADING, _SCENE, _CURSOR, _CHANGES, _UPLOAD = "heading", "last scene of ", "cursor", "importance", "saved_trace"


@dataclass
class Cursor:
    """The step and the difference map that a session shows.

    Downloads read it when they are clicked, on a thread without a session; by then the step may have moved without the
    rest of the page being run again.
    """

    step: int = 0  # from 0
    difference: tuple[int, int] | None = None  # places of the two columns whose maps are subtracted


def remember(scene, session: MutableMapping, page: str) -> None:
    """Keep the scene that a page drew last. page : the name of its folder."""
    session[_SCENE + page] = scene
    session[_HEADING] = scene.heading


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


def uploaded_trace(session: MutableMapping, file):
    """The trace in a file that was uploaded (Streamlit's), read once; of one file at a time. Raises ValueError."""
    if session.get(_UPLOAD, (None,))[0] != file.file_id:
        from attnviz.trace import files as trace_files

        session[_UPLOAD] = (file.file_id, trace_files.unpack_for_page(file.getvalue(), file.name))
    return session[_UPLOAD][1]


def head_changes(session: MutableMapping, model: str, text: str, output: str = "") -> list:
    """The heads measured so far (`ablation.importance`), of one model, text and forced output at a time; a list to
    be added to."""
    asked = (*caches.key(model), text, output)
    if session.get(_CHANGES, (None,))[0] != asked:
        session[_CHANGES] = (asked, [])
    return session[_CHANGES][1]
