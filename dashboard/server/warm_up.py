"""The work of the server at its start, while the browser is still loading the page (measured by
tests/bench/startup.py)."""

import asyncio
import ctypes
import gc
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from attnviz import service
from attnviz.storage import folders

COLLECT = 2.0  # s between two collections of garbage, at least
LATEST = 1.0  # s more for a quiet moment to come: with 5, memory rises by a quarter while 30 people type
ENOUGH, SELDOM = 100, 60.0  # collections of new objects, those of some twenty edits; s, with fewer of them
DRAWN = 1.0  # s after which the first charts have been drawn, and what they did without may be imported
CLEAN = 2.0  # s between two looks for visitors who have left
M_MMAP_THRESHOLD, LARGE = -3, 256 * 2**10  # of malloc.h; bytes of a large block
SENT = 0.2  # s after which an answer has left


_left = threading.Event()  # visitors have left since the last collection


@asynccontextmanager
async def lifespan(app) -> AsyncIterator[None]:
    from dashboard.server import connections  # not above: the models start before Streamlit is imported

    send_at_once()
    keep_large_blocks_apart()
    leave_settings_alone()
    connections.most_visitors()  # raises the limit of open files
    threading.Thread(target=warm, name="warm", daemon=True).start()
    threading.Thread(target=collect, name="collect", daemon=True).start()
    forgetting = asyncio.create_task(forget_visitors())
    yield
    forgetting.cancel()


def leave_settings_alone() -> None:
    """Settings are read at the start alone. Streamlit would look twenty times a second whether their files have
    changed, which takes two thirds of the processor time of a server that nobody uses."""
    from streamlit.watcher.polling_path_watcher import PollingPathWatcher

    PollingPathWatcher._check_if_path_changed = lambda watcher: None  # type: ignore[method-assign]  # so none looks again


def start_models() -> None:
    """Start the process of the models, which imports torch in parallel to this process."""
    service.prepare()
    from dashboard.session import caches

    threading.Thread(target=caches.start_models, name="start", daemon=True).start()


def warm() -> None:
    """Request the trace of the first example, so that the models are loaded in their process, and import the drawing
    code meanwhile."""
    with _importing():
        from dashboard.choices import pairs
        from dashboard.session import caches, catalogue

        pair, mechanisms = next(iter(catalogue.offered().items()))
        first, text = tuple(pairs.first(mechanisms)), pairs.task(pair).first
        try:
            requested = caches.ask([f"{pair}/{mechanism}" for mechanism in first], text)
        except service.ServiceError as error:  # the page says so too
            print(f"attnviz: {error}", file=sys.stderr)
            return

        from dashboard.compare import scene, view  # noqa: F401
        from dashboard.compare.scene import CompareChoices
        from dashboard.shell.problems import SceneError

        with suppress(SceneError):  # no model can be read: the page says so
            scene.compose(CompareChoices(text, first, pair), caches.trace)
        requested.release()
        time.sleep(DRAWN)  # still in short turns: the first page imports pandas itself, while its charts are being sent
        import pandas  # noqa: F401
    folders.remove_left()


def collect() -> None:
    """Run the garbage collector after some twenty edits, or a minute after fewer.

    Streamlit would run it after each run of a page. It takes 25 ms, or ten times that after hundreds of people have
    left, and blocks all threads. So it runs after an answer, when nobody waits. Without it, large arrays would stay
    until Python's own collection, which counts objects and not bytes.
    """
    last, before = time.monotonic(), _young()
    while True:
        time.sleep(COLLECT)
        made = _young() - before
        if _left.is_set() or made >= ENOUGH or (made and time.monotonic() - last >= SELDOM):
            from dashboard.shell.turns import QUICK

            QUICK.empties(LATEST)
            time.sleep(SENT)
            _left.clear()
            gc.collect()
            give_back()
            last, before = time.monotonic(), _young()


def _young() -> int:
    """The number of collections of Python's youngest generation, which happen at every few hundred new objects."""
    return gc.get_stats()[0]["collections"]


async def forget_visitors() -> None:
    """Delete the sessions of visitors who left longer ago than `server.disconnectedSessionTTL`.

    Streamlit does so only when the next visitor leaves, and until then holds their files and widget values.
    """
    from streamlit import runtime

    stored = runtime.get_instance()._session_mgr._session_storage._cache
    while True:
        await asyncio.sleep(CLEAN)
        for _, left in stored.expire():
            left.session.shutdown()  # else its files go when it is collected, and what is frozen never is
            _left.set()


def give_back() -> None:
    """Return freed memory to the system if the C library retains it (Linux); others return it themselves."""
    _c_library("malloc_trim", 0)


def keep_large_blocks_apart() -> None:
    """Make Linux's C library return large blocks as soon as they are freed. Otherwise it mixes large blocks with small
    ones after the first is freed, and memory used by a hundred visitors remains fragmented."""
    _c_library("mallopt", M_MMAP_THRESHOLD, LARGE)


def _c_library(function: str, *numbers: int) -> None:
    with suppress(OSError, AttributeError, TypeError):  # other systems have no such function
        getattr(ctypes.CDLL(None), function)(*numbers)


@contextmanager
def _importing() -> Iterator[None]:
    """Make imports faster. They create many objects and no garbage, and collecting would take a fifth of torch's
    import. Threads take turns every .2 ms instead of 5, so that the server goes on sending the files of the page."""
    turn = sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(0.0002)
    try:
        yield
    finally:
        sys.setswitchinterval(turn)
        gc.freeze()  # what is here now is here to stay
        gc.enable()


def send_at_once() -> None:
    """Switch Nagle's algorithm off for the sockets this process listens on; their connections inherit that.

    asyncio does so only for a socket made with an explicit protocol, and Streamlit 1.67 makes its own without one: each
    answer of two packets then waits 40 ms for the browser's acknowledgement (59 files of the page: 2.5 s; so: 0.2 s).
    """
    for descriptor in range(3, 64):
        with suppress(OSError):  # nothing there
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with socket.socket(fileno=os.dup(descriptor)) as listening:
                    if listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
