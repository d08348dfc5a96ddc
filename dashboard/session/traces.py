"""The traces of all sessions, computed once by the model service, in one cache of bounded size. No Streamlit here."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from attnviz.service import Request, Service
from attnviz.trace import Trace

TOKEN = 1000  # bytes of a token with its alternatives, about


def size(trace: Trace) -> int:
    """Bytes that a trace takes in memory, about."""
    return sum(attention.weights.nbytes for attention in trace.maps) + TOKEN * (len(trace.source) + len(trace.target))


class Asked:
    """Traces that were asked for together. Release it when they are there, or no longer wanted."""

    def __init__(self, traces: "Traces", requests: Sequence[Request], futures: Sequence[Future]):
        self._traces, self._requests, self.futures = traces, requests, futures

    def done(self, seconds: float) -> bool:
        """Wait at most so long -> are all there, or failed?"""
        return not wait(self.futures, seconds).not_done

    def release(self) -> None:
        """What nobody else waits for and has not begun is not computed."""
        for request, future in zip(self._requests, self.futures, strict=True):
            self._traces.release(request, future)
        self._requests = self.futures = ()


class Traces:
    """service : makes the one service, when it is first needed. most : bytes of the traces kept."""

    def __init__(self, service: Callable[[], Service], most: int):
        self._service, self.most = service, most
        self._futures: OrderedDict[Request, Future] = OrderedDict()  # those used last at the end
        self._sizes: dict[Request, int] = {}  # of those that are there
        self._users: dict[Request, int] = {}  # of those that are not
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """Of the traces kept."""
        return sum(self._sizes.values())

    def ask(self, requests: Sequence[Request]) -> Asked:
        """Ask for what is not there and not on its way. Raises ServiceError."""
        with self._lock:
            new = [request for request in dict.fromkeys(requests) if request not in self._futures]
            made = dict(zip(new, self._service().submit(new), strict=True)) if new else {}
            self._futures |= made
            for request in requests:
                self._futures.move_to_end(request)
                if request not in self._sizes:
                    self._users[request] = self._users.get(request, 0) + 1
            futures = [self._futures[request] for request in requests]
        for request, future in made.items():
            future.add_done_callback(lambda done, request=request: self._arrived(request, done))
        return Asked(self, requests, futures)

    def get(self, request: Request) -> Trace:
        """One trace. Raises ValueError for a text that cannot be read, ServiceError."""
        asked = self.ask([request])
        try:
            return asked.futures[0].result()
        finally:
            asked.release()

    def release(self, request: Request, future: Future) -> None:
        """One user less."""
        with self._lock:
            if self._futures.get(request) is not future or request in self._sizes:
                return
            self._users[request] -= 1
            if self._users[request] <= 0 and not future.done():
                del self._users[request], self._futures[request]
            else:
                return
        future.cancel()

    def _arrived(self, request: Request, future: Future) -> None:
        """Keep what has come, and let go of what was not used for longest. An error is not kept."""
        with self._lock:
            if self._futures.get(request) is not future:
                return
            self._users.pop(request, None)
            if future.cancelled() or future.exception():
                del self._futures[request]
                return
            self._sizes[request] = size(future.result())
            for old in list(self._futures):
                if self.bytes <= self.most or old == request:
                    break
                if old in self._sizes:
                    del self._futures[old], self._sizes[old]
