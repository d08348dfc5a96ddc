"""Limits of a connection before a page answers: bytes of headers, seconds, and open files; and sending a page's
messages to it.

uvicorn reads a request until its headers are complete, however long they are and however long that takes, and has no
setting for either (its other parser, h11, limits the bytes). A WebSocket message is buffered up to the size that
Streamlit allows for messages it *sends*. So `install` makes uvicorn use the connections of this file.
"""

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache, partial

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import ScriptRunner, ScriptRunnerEvent
from uvicorn import Server

from dashboard.server import received
from dashboard.server.received import Budget

HEADERS = 64 * 2**10  # bytes of a request line and its headers
HEADERS_SECONDS, BODY_SECONDS = 10.0, 300.0  # until the headers, and the whole request, are here
UNREAD_SECONDS = 60  # that a browser may leave an answer unread
FRAMES = 1_000  # parts of a message; a browser sends one whole, or in parts of many kilobytes
UNFINISHED = Budget(64 * 2**20)  # bytes of the messages of all visitors that have begun to come
FILES = 16_384  # open files that are wanted
RESERVED = 512  # of them for what is no visitor: libraries, the models, pages that are being read
OF_A_VISITOR = 8  # four of the session, the rest of a browser that loads the page
TOGETHER = 0.005  # s that messages of a page wait for each other: Streamlit sends no more often
PACKET = 0.002  # s that what is written to a browser waits for more
MOST_VISITORS = 1_000

FULL = "This server has as many visitors as it can serve. Please try again in a few minutes."
_LARGE = f"Refused: the headers of this request have more than {HEADERS:,} bytes. Delete the cookies of this page."
_LONG = "Refused: a header of this request is too long. Delete the cookies of this page."
_SLOW = f"Refused: the headers of this request were not complete after {HEADERS_SECONDS:g} s."


def install(headers: Mapping[str, str]) -> None:
    """Make every uvicorn server of this process use limited connections.

    headers : of uvicorn's own answers to invalid requests.
    """
    start = Server.startup

    async def startup(self: Server, sockets: list[socket.socket] | None = None) -> None:
        for listening in sockets or []:
            _drop_who_does_not_read(listening)
        attributes = {"refusal_headers": headers}
        for name, limits in (("http_protocol_class", _Connection), ("ws_protocol_class", _Socket)):
            setattr(self.config, name, type("Limited", (limits, getattr(self.config, name)), attributes))
        self.config.ws_max_size = received.largest()
        await start(self, sockets)

    Server.startup = startup


@cache
def most_visitors() -> int:
    """The number of visitors for which this process's open files suffice, after raising the limit as far as the system
    allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MOST_VISITORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = FILES if hard == unlimited else min(FILES, hard)
    if soft != unlimited and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = FILES if soft == unlimited else soft
    return max(8, min(MOST_VISITORS, (files - RESERVED) // OF_A_VISITOR))


def _drop_who_does_not_read(listening: socket.socket) -> None:
    """End connections whose peer accepts no data for a given time. They inherit the option from the socket; Linux
    only."""
    if sys.platform == "linux":
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_SECONDS * 1000)


class _Connection:
    """A mixin for uvicorn's HTTP protocol, with either parser. refusal_headers : of answers to invalid requests."""

    refusal_headers: Mapping[str, str]
    _head, _around, _deadline = 0, 0, None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > most_visitors() * OF_A_VISITOR:
            self._refuse("503 Service Unavailable", FULL)
        else:
            self._deadline = self.loop.call_later(HEADERS_SECONDS, self._late)

    def data_received(self, data: bytes) -> None:
        waited = self._waits()
        if waited:
            self._head += len(data)
            self._deadline = self._deadline or self.loop.call_later(HEADERS_SECONDS, self._late)
        elif self.cycle and self.cycle.more_body:
            self._around += len(data)
        super().data_received(data)
        if not waited:
            if self._around > HEADERS and hasattr(super(), "on_body"):  # h11 limits what is around a body itself
                self.transport.abort()
        elif not self._waits():
            self._arrived()
        elif self._head > HEADERS:
            self._refuse("431 Request Header Fields Too Large", _LARGE)

    def on_body(self, body: bytes) -> None:
        """httptools calls this for each part of a body. It buffers the data between two parts."""
        self._around = 0
        super().on_body(body)

    def connection_lost(self, error: Exception | None) -> None:
        self._stop()
        super().connection_lost(error)

    def send_400_response(self, problem: str) -> None:
        self._refuse("400 Bad Request", problem)

    def _waits(self) -> bool:
        """Has the next request not arrived yet?"""
        here = self.transport.get_protocol() is self and not self.transport.is_closing()
        return here and (self.cycle is None or self.cycle.response_complete)

    def _arrived(self) -> None:
        self._stop()
        self._head = self._around = 0
        if self.cycle and self.cycle.more_body:
            self._deadline = self.loop.call_later(BODY_SECONDS, self._give_up, self.cycle)

    def _stop(self) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if self._waits() and self._head:
            self._refuse("408 Request Timeout", _SLOW)
        elif self._waits() and self.cycle is None:  # not a byte; between two requests uvicorn waits for less
            self.transport.abort()

    def _give_up(self, cycle: object) -> None:
        self._deadline = None
        if self.cycle is cycle and cycle.more_body:
            self.transport.abort()

    def _refuse(self, status: str, problem: str) -> None:
        self.transport.write(_refusal(status, problem, self.refusal_headers))
        self.transport.close()


class _Socket:
    """A mixin for uvicorn's WebSocket protocol. refusal_headers : of refused handshakes."""

    refusal_headers: Mapping[str, str]

    def __init__(self, *given, **named) -> None:
        super().__init__(*given, **named)
        self._respond, self.conn.send_response = self.conn.send_response, self._send_response

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(Packets(transport))

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc and not self.handshake_initiated:  # else uvicorn leaves it open, without an answer
            self.transport.write(_refusal("431 Request Header Fields Too Large", _LONG, self.refusal_headers))
            self.transport.close()
        begun = sum(map(len, self.frames)) + len(self.conn.reader.buffer)  # of a message that is not complete
        if len(self.frames) > FRAMES or not UNFINISHED.hold(self, begun):
            self.transport.abort()

    def handle_ping(self) -> None:
        """End the connection of a client that pings without reading, because answers would pile up. Browsers send no
        pings."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        UNFINISHED.hold(self, 0)
        super().connection_lost(error)

    def _send_response(self, response) -> None:
        if response.status_code != 101:
            response.headers.update(self.refusal_headers)
        self._respond(response)


def _refusal(status: str, problem: str, headers: Mapping[str, str]) -> bytes:
    content = f"{problem}\n".encode()
    own = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(content)), "connection": "close"}
    lines = [f"{name}: {value}" for name, value in (own | dict(headers)).items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + content


class Packets:
    """A transport that joins everything written within PACKET into one send. A system call per message would take as
    long as all other work of the web server on an edit."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._written: list[bytes] = []

    def __getattr__(self, name: str):
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Queue data to be sent soon."""
        self._written.append(data)
        if len(self._written) == 1:
            asyncio.get_running_loop().call_later(PACKET, self._send)

    def close(self) -> None:
        """Send queued data, then close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        written, self._written = self._written, []
        if written and not self._transport.is_closing():
            self._transport.write(b"".join(written))


class SentTogether:
    """A queue of the messages of a page's runs to the web server's loop; `gather` gives each session one. Streamlit
    would wake the loop twice for each of the fifty messages of an edit, a tenth of the edit's cost.
    """

    def __init__(self, session: AppSession, handle: Callable) -> None:
        self._session, self._handle, self._lock = session, handle, threading.Lock()
        self._waiting: list[tuple] = []

    def add(self, sender: ScriptRunner, event: ScriptRunnerEvent, forward_msg=None, **details) -> None:
        """Add a message; callable from any thread. A message waits for others; other events, such as the end of the
        run, do not."""
        with self._lock:
            self._waiting.append((sender, event, forward_msg, details))
            is_first = len(self._waiting) == 1
        if event is not ScriptRunnerEvent.ENQUEUE_FORWARD_MSG:
            self._session._call_soon_on_event_loop(self._take)
        elif is_first:
            self._session._call_soon_on_event_loop(self._take_soon)

    def _take_soon(self) -> None:
        asyncio.get_running_loop().call_later(TOGETHER, self._take)

    def _take(self) -> None:
        """Each in a turn of its own, so that one that cannot be handled is reported and takes no other with it."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()
        for sender, event, message, details in waiting:
            loop.call_soon(partial(self._deliver, sender, event, message, **details))
        if any(event is ScriptRunnerEvent.ENQUEUE_FORWARD_MSG for _, event, _, _ in waiting):
            loop.call_soon(self._tell)

    def _deliver(self, sender: ScriptRunner, event: ScriptRunnerEvent, message, **details) -> None:
        """Deliver the messages. Those of an abandoned run are dropped, as in Streamlit."""
        if event is not ScriptRunnerEvent.ENQUEUE_FORWARD_MSG:
            self._handle(self._session, sender, event, message, **details)
        elif sender is self._session._scriptrunner:
            self._session._browser_queue.enqueue(message)

    def _tell(self) -> None:
        """Signal that there are messages."""
        if self._session._message_enqueued_callback:
            self._session._message_enqueued_callback()


def gather() -> None:
    """Make every session collect its messages before sending."""
    handle = AppSession._handle_scriptrunner_event_on_event_loop

    def on_event(self: AppSession, sender: ScriptRunner, event: ScriptRunnerEvent, **details) -> None:
        self.__dict__.setdefault("_together", SentTogether(self, handle)).add(sender, event, **details)

    AppSession._on_scriptrunner_event = on_event


def remember_theme() -> None:
    """Cache the theme of the configuration, which Streamlit would compute for every run of a page."""
    populate = app_session._populate_theme_msg

    @cache
    def theme(section: str) -> CustomThemeConfig:
        message = CustomThemeConfig()
        populate(message, section)
        return message

    def remembered(message: CustomThemeConfig, section: str = "theme") -> None:
        if theme(section).ByteSize():
            message.MergeFrom(theme(section))

    app_session._populate_theme_msg = remembered
