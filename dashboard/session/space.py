"""Memory, in bytes: how much all visitors hold, and how much one of them may. No Streamlit here.

A visitor holds what their pages show: traces, and what was measured of many sentences. While there is room, each may
hold `share`. When all together hold more than `most`, nobody is sent away: each may then hold an equal part of `most`,
so a visitor with small texts sees no difference.
"""

import sys
import threading
import weakref
from collections.abc import Iterable

from attnviz.trace import Trace

TOKEN = 1000  # bytes of a token with its alternatives, about

Held = tuple[object, int]  # a value that may be shared, and its bytes


def size(answer: Trace | tuple[str, ...]) -> int:
    """Bytes that a trace, or texts, take in memory, about."""
    if isinstance(answer, tuple):
        return sum(map(sys.getsizeof, answer))
    return sum(each.weights.nbytes for each in answer.maps) + TOKEN * (len(answer.source) + len(answer.target))


def sizes(traces: Iterable[Trace]) -> list[Held]:
    """Traces with their bytes."""
    return [(trace, size(trace)) for trace in traces]


class NoRoom(ValueError):
    """A visitor wants to hold more than they may now."""


class Space:
    """share : bytes that one visitor may hold. most : bytes of all. Threads may share it."""

    def __init__(self, share: int, most: int):
        self.share, self.most = share, most
        self._sizes: dict[int, int] = {}  # of the values that are alive, by their id
        self._visitors: weakref.WeakSet[Visitor] = weakref.WeakSet()
        self._lock = threading.RLock()  # a value may die while another is counted

    @property
    def held(self) -> int:
        """Bytes of all values that were counted and are alive, each once however many visitors show it."""
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
        """Count a value until it dies. A second call changes nothing."""
        key = id(value)
        with self._lock:
            if key not in self._sizes:
                self._sizes[key] = taken
                weakref.finalize(value, self._gone, key).atexit = False

    def visitor(self) -> "Visitor":
        """Somebody new. They are counted as long as this object lives."""
        visitor = Visitor(self)
        with self._lock:
            self._visitors.add(visitor)
        return visitor

    def _gone(self, key: int) -> None:
        with self._lock:
            self._sizes.pop(key, None)


class Visitor:
    """What one visitor's pages hold."""

    def __init__(self, space: Space):
        self._space = space
        self._pages: dict[str, int] = {}  # bytes, by the name of the page, the one shown last at the end

    @property
    def held(self) -> int:
        return sum(self._pages.values())

    def show(self, page: str, values: Iterable[Held]) -> list[str]:
        """A page is about to show these -> other pages that must let go of what they showed, so that it fits.

        Raises NoRoom when it does not fit even so. Nothing has changed then.
        """
        each = {id(value): (value, taken) for value, taken in values}
        for value, taken in each.values():
            self._space.count(value, taken)
        wanted, limit = sum(taken for _, taken in each.values()), self._space.limit
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


def _megabytes(count: int) -> str:
    return f"{count / 2**20:,.1f} MB"
