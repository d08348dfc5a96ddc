"""The traces and sampled translations of all sessions in one bounded cache, each computed once: by the model service,
or here for users' models and files. No Streamlit here."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

from attnviz.service import Request, Service
from attnviz.trace import Hypothesis, Trace

Value = TypeVar("Value")
TOKEN = 1000  # bytes of a token with its alternatives, about
MANY = 1000  # traces: a few of each of 300 people, and what a class has typed in five minutes


def size(answer: Trace | tuple[str | Hypothesis, ...]) -> int:
    """Approximate bytes of a trace, or of texts, in memory."""
    if isinstance(answer, tuple):
        return sum(sys.getsizeof(text[0] if isinstance(text, Hypothesis) else text) for text in answer)
    return sum(attention.weights.nbytes for attention in answer.maps) + TOKEN * (
        len(answer.source) + len(answer.target)
    )


class Requested:
    """Traces that were requested together. Release it when they have arrived or are no longer needed."""

    def __init__(self, traces: "Traces", requests: Sequence[Request], futures: Sequence[Future]):
        self._traces, self._requests, self.futures = traces, requests, futures

    def done(self, seconds: float) -> bool:
        """Wait at most this many seconds -> have all arrived or failed?"""
        return not wait(self.futures, seconds).not_done

    def state(self) -> str:
        """The state of the requests (`Service.state_of`)."""
        return self._traces.state_of(self.futures)

    def release(self) -> None:
        """Give up the traces. A trace that nobody else waits for, and that has not begun, is not computed."""
        for request, future in zip(self._requests, self.futures, strict=True):
            self._traces.release(request, future)
        self._requests = self.futures = ()


class Traces:
    """service : creates the single service on first use. bytes : of the cached values. most : the limit of bytes. many
    : the limit of entries, so that small ones do not stay for hours."""

    def __init__(self, service: Callable[[], Service], most: int, many: int = MANY):
        self._service, self.bytes, self.most, self.many = service, 0, most, many
        self._futures: OrderedDict[Hashable, Future] = OrderedDict()  # those used last at the end
        self._sizes: dict[Hashable, int] = {}  # of those that are there
        self._users: dict[Request, int] = {}  # of those that are not
        self._lock = threading.Lock()

    def ask(self, requests: Sequence[Request]) -> Requested:
        """Request everything that is neither cached nor already requested. Raises ServiceError."""
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
        return Requested(self, requests, futures)

    def get(self, request: Request) -> Trace:
        """The answer to one request. Raises ValueError for a text that cannot be read, ServiceError."""
        requested = self.ask([request])
        try:
            return requested.futures[0].result()
        finally:
            requested.release()

    def state_of(self, futures: Sequence[Future]) -> str:
        """The state of these requests (`Service.state_of`)."""
        return self._service().state_of(futures)

    def if_there(self, request: Request) -> object | None:
        """The answer to a request, if it has arrived; None otherwise, or if it failed."""
        with self._lock:
            future = self._futures.get(request)
        failed = future is None or not future.done() or future.cancelled() or future.exception()
        return None if failed else future.result()

    def make(self, key: Hashable, maker: Callable[[], Value], taken: Callable[[Value], int]) -> Value:
        """The result of `maker`, cached under this key. taken : its bytes. Raises what `maker` raises."""
        with self._lock:
            if key in self._sizes:
                self._futures.move_to_end(key)
                return self._futures[key].result()
        value, made = maker(), Future()
        made.set_result(value)
        with self._lock:
            self._futures[key] = made
            self._keep(key, taken(value))
        return value

    def release(self, request: Request, future: Future) -> None:
        """One waiting caller less; see `Requested.release`."""
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
        """Store an arrived answer, and drop the least recently used ones. Errors are not stored."""
        with self._lock:
            if self._futures.get(request) is not future:
                return
            self._users.pop(request, None)
            if future.cancelled() or future.exception():
                del self._futures[request]
                return
            self._keep(request, size(future.result()))

    def _keep(self, key: Hashable, taken: int) -> None:
        self.bytes += taken - self._sizes.get(key, 0)
        self._sizes[key] = taken
        while self.bytes > self.most or len(self._sizes) > self.many:
            old = next((old for old in self._futures if old != key and old in self._sizes), None)
            if old is None:
                break
            del self._futures[old]
            self.bytes -= self._sizes.pop(old)
