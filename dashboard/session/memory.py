"""The memory of a session, which is bounded: the last drawn scene, which stays on the page if the next one fails; the
visitor's step and difference map; the heads measured so far; and the models that the visitor has trained."""

import functools
import io
import secrets
import threading
import weakref
import zipfile
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnviz.storage.folders import TemporaryFolder
from attnviz.trace import Trace
from dashboard.choices import pairs, settings
from dashboard.session import caches, catalogue
from dashboard.session.traces import size

_HEADING, _SCENE, _CURSOR, _CHANGES, _VISITOR = "heading", "last scene of ", "cursor", "importance", "visitor"

Held = tuple[object, int]  # a value that may be shared, and its bytes


class NoRoom(ValueError):
    """A visitor exceeds the currently allowed memory."""


class VisitorMemory:
    """The memory held by all visitors, and the limit per visitor.

    A visitor holds the data of their pages: traces, and measurements of many sentences. While there is room, each may
    hold `share`. When all together hold more than `most`, nobody is refused: each may then hold an equal part of
    `most`. A visitor with short texts sees no difference.

    share : bytes that one visitor may hold. most : bytes of all. Threads may share it.
    """

    def __init__(self, share: int, most: int):
        self.share, self.most = share, most
        self._sizes: dict[int, int] = {}  # of the values that are alive, by their id
        self._visitors: weakref.WeakSet[Visitor] = weakref.WeakSet()
        self._lock = threading.RLock()  # a value may die while another is counted

    @property
    def held(self) -> int:
        """Bytes of all counted values that are alive, each counted once for any number of visitors."""
        with self._lock:
            return sum(self._sizes.values())

    @property
    def limit(self) -> int:
        """Bytes that one visitor may hold now."""
        if self.held <= self.most:
            return self.share
        with self._lock:
            return min(self.share, self.most // max(1, len(self._visitors)))

    def count(self, value: object, taken: int) -> None:
        """Count a value while it is alive. A second call changes nothing."""
        key = id(value)
        with self._lock:
            if key not in self._sizes:
                self._sizes[key] = taken
                weakref.finalize(value, self._gone, key).atexit = False

    def visitor(self) -> "Visitor":
        """A new visitor, counted as long as this object lives."""
        visitor = Visitor(self)
        with self._lock:
            self._visitors.add(visitor)
        return visitor

    def _gone(self, key: int) -> None:
        with self._lock:
            self._sizes.pop(key, None)


class Visitor:
    """The values held by one visitor's pages."""

    def __init__(self, memory: VisitorMemory):
        self._memory = memory
        self._pages: dict[str, int] = {}  # bytes, by the name of the page, the one shown last at the end

    @property
    def held(self) -> int:
        return sum(self._pages.values())

    def show(self, page: str, values: Iterable[Held]) -> list[str]:
        """Register the values that a page is about to show -> other pages whose values must be dropped to make room.

        Raises NoRoom, without any change, if that is not enough.
        """
        by_id = {id(value): (value, taken) for value, taken in values}
        for value, taken in by_id.values():
            self._memory.count(value, taken)
        wanted, limit = sum(taken for _, taken in by_id.values()), self._memory.limit
        if wanted > limit:
            raise NoRoom(
                f"this needs {_megabytes(wanted)} of the server's memory, and each visitor may use "
                f"{_megabytes(limit)} now; use shorter or fewer texts, or choose fewer models"
            )
        self._pages.pop(page, None)
        dropped = []
        for other in list(self._pages):
            if wanted + self.held <= limit:
                break
            dropped.append(other)
            del self._pages[other]
        self._pages[page] = wanted
        return dropped


@dataclass
class Cursor:
    """The step and the difference map that a session shows.

    Downloads read it when they are clicked, on a thread without a session; by then the step may have moved without the
    rest of the page being run again.
    """

    step: int = 0  # from 0
    difference: tuple[int, int] | None = None  # places of the two columns whose maps are subtracted


@functools.cache
def visitor_memory() -> VisitorMemory:
    """The memory of all visitors."""
    return VisitorMemory(settings.bytes_of(settings.VISITOR), settings.bytes_of(settings.MEMORY))


def remember(scene, session: MutableMapping, page: str) -> None:
    """Keep the scene that a page drew last. page : the name of its folder. Raises NoRoom (`claim`)."""
    claim(scene.held, session, page)
    session[_SCENE + page] = scene
    session[_HEADING] = scene.heading


def claim(held: Iterable[Held], session: MutableMapping, page: str) -> None:
    """Reserve memory for a page's values; values of the visitor's other pages are dropped if necessary. Raises NoRoom
    if that is not enough."""
    if _VISITOR not in session:
        session[_VISITOR] = visitor_memory().visitor()
    for dropped in session[_VISITOR].show(page, held):
        for key in [key for key in session if str(key).endswith(f" of {dropped}")]:  # what the page has kept
            del session[key]


def heading(session: MutableMapping) -> Sequence[str]:
    """The heading of saved pictures of the last drawn scene: model, sentence, translation."""
    return session.get(_HEADING, ())


def begin(session: MutableMapping) -> None:
    """Begin drawing a page; the heading of saved pictures is not yet known."""
    session[_HEADING] = ()


def last(session: MutableMapping, page: str):
    """The scene that a page drew last in this session, or None."""
    return session.get(_SCENE + page)


def again(session: MutableMapping, page: str):
    """The last scene, which the page is about to draw again."""
    scene = last(session, page)
    if scene is not None:
        session[_HEADING] = scene.heading
    return scene


def cursor(session: MutableMapping) -> Cursor:
    """The session's one Cursor."""
    if _CURSOR not in session:
        session[_CURSOR] = Cursor()
    return session[_CURSOR]


def head_changes(session: MutableMapping, model: str, text: str, output: str = "") -> list:
    """The heads measured so far (`ablation.importance`), of one model, text and forced output at a time; a list to
    be added to."""
    subject = (*caches.key(model), text, output)
    if session.get(_CHANGES, (None,))[0] != subject:
        session[_CHANGES] = (subject, [])
    return session[_CHANGES][1]


def sizes(traces: Iterable[Trace]) -> list[Held]:
    """Traces with their bytes."""
    return [(trace, size(trace)) for trace in traces]


def _megabytes(count: int) -> str:
    return f"{count / 2**20:,.1f} MB"


def keep_models(archive: bytes, session: MutableMapping) -> str:
    """Put trained models where this visit's other pages find them -> their pair. archive : a zip with the folder of a
    task. ValueError where there is no room for them.

    The folder goes with the session: nothing else holds it."""
    folder = TemporaryFolder()
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        files.extractall(folder.name)
    (made,) = Path(folder.name).iterdir()
    pair = f"{made.name}~{secrets.token_hex(8)}"  # no two visits share what is computed with them
    made.rename(made.with_name(pair))
    trained = session.get(catalogue.TRAINED, {}) | {made.name: (pair, folder)}
    claim([(models, _size_of_models(models)) for _, models in trained.values()], session, "train")
    session[catalogue.TRAINED], pairs.of_visits[pair] = trained, folder
    return pair


def _size_of_models(folder: TemporaryFolder) -> int:
    """Bytes of models in memory: twice as many as of their files, whose numbers are halves."""
    return 2 * sum(file.stat().st_size for file in Path(folder.name).rglob("*.*"))
