"""The queue: the number of concurrent computations is limited by the processors, first come, first served. No Streamlit
here."""

import itertools
import os
import threading
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds of processor time in each period, and the period


class Full(ValueError):
    """The queue is full."""


class Ticket:
    """A place in a line. It may first wait for something else (`ready`); meanwhile later tickets go ahead."""

    def __init__(self, line: "WaitingLine"):
        self._line = line
        self._turn = threading.Event()
        self._ready = False

    @property
    def ahead(self) -> int:
        """The number of earlier tickets that are not done."""
        return self._line._ahead(self)

    def ready(self) -> None:
        """Mark as ready: from now on it waits only for its turn."""
        self._ready = True
        self._line._let_in()

    def admitted(self, seconds: float) -> bool:
        """Wait at most this many seconds for the turn -> has it come?"""
        return self._turn.wait(seconds)

    def leave(self) -> None:
        """Leave the line, when done or given up, so that the next may go on. A second call does nothing."""
        self._line._leave(self)


class WaitingLine:
    """slots : number of concurrent computations. most : limit of tickets. Threads may share it."""

    def __init__(self, slots: int, most: int):
        self.slots, self.most = slots, most
        self._tickets: dict[Ticket, None] = {}  # in the order in which they came
        self._lock = threading.Lock()
        self._emptied = threading.Event()

    def empties(self, seconds: float) -> bool:
        """Wait at most this many seconds until the last ticket leaves -> has it left?"""
        self._emptied.clear()
        return self._emptied.wait(seconds)

    def join(self) -> Ticket:
        """Take a ticket at the end of the line. Raises Full."""
        ticket = Ticket(self)
        with self._lock:
            if len(self._tickets) >= self.most:
                raise Full(
                    f"{self.most} people are waiting for an answer already, and this server takes no more. "
                    "Your sentence is kept: press Enter again in a minute"
                )
            self._tickets[ticket] = None
        return ticket

    def _ahead(self, ticket: Ticket) -> int:
        with self._lock:
            return sum(1 for _ in itertools.takewhile(lambda other: other is not ticket, self._tickets))

    def _let_in(self) -> None:
        with self._lock:
            self._admit()

    def _leave(self, ticket: Ticket) -> None:
        with self._lock:
            self._tickets.pop(ticket, None)
            self._admit()
            if not self._tickets:
                self._emptied.set()

    def _admit(self) -> None:
        free = self.slots - sum(ticket._turn.is_set() for ticket in self._tickets)
        for ticket in self._tickets:
            if free <= 0:
                return
            if ticket._ready and not ticket._turn.is_set():
                ticket._turn.set()
                free -= 1


def cores(quota: Path = QUOTA) -> int:
    """How many processors this server may use: at least 1, and in a container fewer than the machine has.

    Considers CPU affinity (Linux) and the quota of the control group (cgroup v2).
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        given, period = quota.read_text(encoding="ascii").split()
        return max(1, min(count, int(given) // int(period)))
    except (OSError, ValueError):  # no control group, or "max": no quota
        return count
