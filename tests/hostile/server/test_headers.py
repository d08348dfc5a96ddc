"""Headers and requests that are made to cost the server time, memory or open files."""

import asyncio
import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
import uvicorn
from offline_server import WEBSOCKET
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dashboard.server import connections, security

SECONDS = 30  # for an answer that costs the server milliseconds
PARSERS = {"httptools": HttpToolsProtocol, "h11": H11Protocol}
pytestmark = pytest.mark.xdist_group("public-server")

SHAPES = {
    "a quoted cookie": lambda size: [("Cookie", '_streamlit_xsrf="' + '\\"' * (size // 2) + '"')],
    "octal cookies": lambda size: [("Cookie", '_streamlit_xsrf="' + "\\012" * (size // 4) + '"')],
    "many cookies": lambda size: [("Cookie", "; ".join(f"c{number}=1" for number in range(size // 9)))],
    "many headers": lambda size: [(f"X-{number}", "1") for number in range(size // 10)],
    "cookie headers": lambda size: [("Cookie", f'c{number}="\\""') for number in range(size // 16)],
    "a long value": lambda size: [("X-Long", "a" * size)],
    "a long name": lambda size: [("X" * size, "1")],
    "ranges": lambda size: [("Range", "bytes=" + ",".join(f"{number}-" for number in range(size // 6)))],
    "encodings": lambda size: [("Accept-Encoding", "gzip;q=0.1," * (size // 11))],
    "protocols": lambda size: [("Sec-WebSocket-Protocol", "a," * (size // 2))],
    "extensions": lambda size: [("Sec-WebSocket-Extensions", "permessage-deflate; a=1, " * (size // 25))],
    "forwarded": lambda size: [("X-Forwarded-For", "1.2.3.4," * (size // 8))],
    "types": lambda size: [("Content-Type", "multipart/form-data; boundary=" + "a;" * (size // 2))],
    "tags": lambda size: [("If-None-Match", '"a",' * (size // 4))],
}


def status(address: str, path: str, headers: list[tuple[str, str]]) -> tuple[int, str]:
    """Of the answer to a request, and its text as far as it has come."""
    netloc = urlsplit(address).netloc
    lines = [f"GET {path} HTTP/1.1", f"Host: {netloc}", *(f"{name}: {value}" for name, value in headers), "", ""]
    with socket.create_connection(netloc.split(":"), SECONDS) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            connection.sendall("\r\n".join(lines).encode())
        answer = connection.recv(65536).decode("latin-1")
    return int(answer.split(" ")[1]), answer


@pytest.mark.parametrize("size", [60_000, 120_000], ids=str)
@pytest.mark.parametrize("path", ["/", "/_stcore/stream"])
@pytest.mark.parametrize("shape", SHAPES)
def test_headers_are_answered_or_refused_at_once(public, shape, path, size):
    socket_headers = list(WEBSOCKET.items()) if path != "/" else []
    answered, text = status(public[0], path, socket_headers + SHAPES[shape](size))
    assert answered in (101, 200, 206, 304, 400, 416, 426, 431)
    if size > connections.HEADERS and shape not in ("many cookies", "many headers", "cookie headers"):
        assert answered in (400, 431)
    if answered >= 400:
        assert "content-security-policy: default-src 'self'" in text.lower()


def test_twenty_megabytes_of_headers_are_not_read(public):
    answered, text = status(public[0], "/", [("X-Long", "a" * 20_000_000)])
    assert answered == 431 and "have more than 65,536 bytes" in text


@pytest.mark.parametrize(
    "sent, kept",
    [
        ("_streamlit_xsrf=2|ab|cd|17", "_streamlit_xsrf=2|ab|cd|17"),
        ("other=1; _streamlit_xsrf=2|ab|cd|17; more=2", "_streamlit_xsrf=2|ab|cd|17"),
        ('_streamlit_xsrf="2|ab"', None),
        ('other="\\"\\""', None),
        ("_streamlit_xsrf=" + "a" * 301, None),
        ("my_streamlit_xsrf=1", None),
    ],
)
def test_of_the_cookies_only_streamlits_own_is_passed_on(sent, kept):
    scope = {"type": "http", "headers": [(b"host", b"localhost"), (b"cookie", sent.encode())]}
    cookies = [value.decode() for name, value in security._for_the_page(scope) if name == b"cookie"]
    assert cookies == ([kept] if kept else [])


@pytest.fixture(params=PARSERS)
def small(request, monkeypatch):
    """A server of one answer, of either parser, with deadlines of half a second -> its port, and its connections."""
    monkeypatch.setattr(connections, "HEADERS_SECONDS", 0.5)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.5)
    monkeypatch.setattr(uvicorn.Server, "startup", uvicorn.Server.startup)  # put back at the end
    connections.install({"Content-Security-Policy": "default-src 'self'"})

    async def read(request):
        return PlainTextResponse(f"{len(await request.body())}")

    app = Starlette(routes=[Route("/", read, methods=["GET", "POST"])])
    listening = socket.create_server(("localhost", 0))
    server = uvicorn.Server(uvicorn.Config(app, http=PARSERS[request.param], ws="websockets-sansio", log_config=None))
    thread = threading.Thread(target=asyncio.run, args=(server.serve([listening]),), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()[1], server.server_state.connections
    server.should_exit = True
    thread.join(SECONDS)


def answer_to(port: int, *parts: bytes, pause: float = 0.1) -> bytes:
    """All that comes until the server ends the connection. parts : of a request, with a pause after each."""
    with socket.create_connection(("localhost", port), SECONDS) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while more := connection.recv(65536):
                received += more
        return received


WHOLE = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"


def test_a_request_in_parts_is_answered(small):
    port, _ = small
    parts = (WHOLE[:9], WHOLE[9:30], WHOLE[30:-1], WHOLE[-1:])
    assert answer_to(port, *parts, pause=0.01).endswith(b"\r\n\r\n3")
    closing = WHOLE.replace(b"Host", b"Connection: close\r\nHost")
    assert answer_to(port, WHOLE, closing).count(b"200 OK") == 2


@pytest.mark.parametrize(
    "parts, status",
    [
        ([], None),
        ([b"GET / HTTP/1.1\r\n"], b"408"),
        ([b"GET / HTTP/1.1\r\nX: 1"] + [b"1"] * 20, b"408"),
        ([WHOLE[:-1]], None),
        ([WHOLE[:-3], *[b"a"] * 2], None),
        ([b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: localhost\r\n\r\n1\r\na\r\n"], None),
        ([WHOLE, b"GET / HTT"], b"408"),
    ],
)
def test_what_is_not_complete_in_time_is_ended(small, parts, status):
    port, held = small
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        received = answer_to(port, *parts)
        assert status is None or b"HTTP/1.1 " + status in received
    assert not held
    assert answer_to(port, WHOLE.replace(b"Host", b"Connection: close\r\nHost")).endswith(b"3")


def test_what_is_no_request_gets_the_policy_too(small):
    assert (
        b"content-security-policy: default-src 'self'" in answer_to(small[0], b"\x16\x03\x01 nonsense\r\n\r\n").lower()
    )


def test_whoever_cannot_be_served_reads_why(small, monkeypatch):
    monkeypatch.setattr(connections, "most_visitors", lambda: 0)
    assert connections.FULL.encode() in answer_to(small[0])
    monkeypatch.setattr(connections, "most_visitors", lambda: 1)
    assert answer_to(small[0], WHOLE).count(b"200 OK") == 1
