"""Headers and requests that are made to cost the server time, memory or open files."""

import asyncio
import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
import uvicorn
from client import Client
from offline_server import WEBSOCKET
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from visitors import run

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
        if answer.startswith("HTTP/1.1 503") and answer.endswith("\r\n\r\n"):  # the text comes after the headers
            answer += connection.recv(65536).decode("latin-1")
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


async def handshake(netloc: str) -> tuple[bytes, asyncio.StreamWriter]:
    """One more socket of the page -> what the server answers, as far as it has come, and the connection."""
    reading, writing = await asyncio.open_connection(*netloc.split(":"))
    lines = ["GET /_stcore/stream HTTP/1.1", f"Host: {netloc}", *(f"{name}: {WEBSOCKET[name]}" for name in WEBSOCKET)]
    writing.write("\r\n".join([*lines, "", ""]).encode())
    return await reading.read(4096), writing


async def half_open(netloc: str, content: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reading, writing = await asyncio.open_connection(*netloc.split(":"))
    writing.write(content)
    return reading, writing


def test_what_visitors_send_does_not_fill_the_log(public, log):
    """A line, or a traceback, came of each."""
    netloc = urlsplit(public[0]).netloc
    upgrade = "\r\n".join(f"{name}: {value}" for name, value in WEBSOCKET.items()).encode()
    requests = [
        b"\x16\x03nonsense\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n" % (netloc.encode(), upgrade),
    ]
    requests += [b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" % netloc.encode()]

    async def work():
        for content in requests * 20:
            reading, writing = await half_open(netloc, content)
            with contextlib.suppress(ConnectionResetError):
                await asyncio.wait_for(reading.read(4096), SECONDS)
            writing.close()
        for _ in range(20):
            async with Client(public[0]) as client:
                await client._socket.send(b"\xff" * 9)
                await client._socket.send("text")

    before = log.stat().st_size
    run(work())
    assert log.stat().st_size - before < 10_000, log.read_text()[-2000:]


def test_more_sockets_than_can_be_served_take_the_page_from_nobody(public):
    """At 1,024 open files the 253rd was refused without a word, and others lost the page; requests that were never
    complete stayed."""
    address, most = public[0], connections.most_visitors()  # raises the limit of this process too
    netloc = urlsplit(address).netloc

    async def work():
        async with Client(address) as visitor:
            await visitor.open()
            halves = [await half_open(netloc, b"GET / HTTP/1.1\r\nHost: " + bytes([65 + n % 26])) for n in range(200)]
            sockets = []
            for _ in range(0, most + 200, 100):
                sockets += await asyncio.gather(*(handshake(netloc) for _ in range(100)))
            answer = await visitor.type("The dog runs.")
            page = await asyncio.to_thread(status, address, "/", [])
            ends = await asyncio.gather(*(asyncio.wait_for(reading.read(), SECONDS) for reading, _ in halves))
            for _, writing in sockets + halves:
                writing.close()
        return [reply for reply, _ in sockets], answer, page, ends

    replies, answer, page, ends = run(work())
    assert answer.problems == [] and answer.heatmaps
    served, refused = ([text for text in replies if text.split()[1] == status] for status in (b"101", b"503"))
    assert most * 0.9 < len(served) < most and len(served) + len(refused) == len(replies)
    assert all(connections.FULL.encode() in text for text in refused)
    assert page[0] == 503 and connections.FULL in page[1]
    assert all(text.startswith(b"HTTP/1.1 408") for text in ends)


def test_when_they_have_gone_the_next_visitor_is_served(public):
    async def work():
        async with Client(public[0]) as client:
            await client.open()
            return await client.type("The cat sleeps.")

    assert run(work()).problems == []


@pytest.mark.parametrize(
    "sent, passed",
    [
        ("_streamlit_xsrf=2|ab|cd|17", "_streamlit_xsrf=2|ab|cd|17"),
        ("other=1; _streamlit_xsrf=2|ab|cd|17; more=2", "_streamlit_xsrf=2|ab|cd|17"),
        ('_streamlit_xsrf="2|ab"', None),
        ('other="\\"\\""', None),
        ("_streamlit_xsrf=" + "a" * 301, None),
        ("my_streamlit_xsrf=1", None),
    ],
)
def test_of_the_cookies_only_streamlits_own_is_passed_on(sent, passed):
    scope = {"type": "http", "headers": [(b"host", b"localhost"), (b"cookie", sent.encode())]}
    cookies = [value.decode() for name, value in security._for_the_page(scope) if name == b"cookie"]
    assert cookies == ([passed] if passed else [])


@pytest.fixture(params=PARSERS)
def small(request, monkeypatch):
    """A server of one answer, of either parser, with short deadlines -> its port, and its connections."""
    monkeypatch.setattr(connections, "HEADERS_SECONDS", 0.5)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.5)
    monkeypatch.setattr(uvicorn.Server, "startup", uvicorn.Server.startup)  # put back at the end
    connections.install({"Content-Security-Policy": "default-src 'self'"})

    async def read(request):
        return PlainTextResponse(f"{len(await request.body())}")

    async def listen(socket):
        await socket.accept()
        await socket.send_text(f"{len(await socket.receive_bytes())}")

    app = Starlette(routes=[Route("/", read, methods=["GET", "POST"]), WebSocketRoute("/socket", listen)])
    listening = socket.create_server(("localhost", 0))
    settings = dict(ws="websockets-sansio", log_config=None, timeout_keep_alive=2)
    server = uvicorn.Server(uvicorn.Config(app, http=PARSERS[request.param], **settings))
    thread = threading.Thread(target=asyncio.run, args=(server.serve([listening]),), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()[1], server.server_state.connections
    server.should_exit = True
    thread.join(SECONDS)


def answer_to(port: int, *parts: bytes, pause: float = 0.1) -> bytes:
    """All that comes until the server ends the connection. parts : of a request, with a pause after each; after a
    whole one, its answer is awaited."""
    with socket.create_connection(("localhost", port), SECONDS) as connection:
        received = b""
        for part in parts:
            connection.sendall(part)
            while part == WHOLE and not received.endswith(b"3") and (more := connection.recv(65536)):
                received += more
            time.sleep(pause)
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


CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"


@pytest.mark.parametrize("small", ["httptools"], indirect=True)  # h11 has limits of its own
@pytest.mark.parametrize("line", [b"X: 1\r\n", b"X: " + b"a" * 10**6])
def test_headers_after_a_body_are_limited(small, line):
    """They were read without an end, and kept."""
    closing = CHUNKED.replace(b"Host", b"Connection: close\r\nHost")
    assert answer_to(small[0], closing, b"X: 1\r\n" * 9, b"\r\n").endswith(b"3")
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        assert b"200 OK" not in answer_to(small[0], closing, *[line * max(1, 10**6 // len(line))] * 3, b"\r\n\r\n")


def frame(code: int, content: bytes = b"") -> bytes:
    """A part of a message, or a ping, as a browser sends it: masked, here with zeros."""
    return bytes([code, 0x80 | len(content)]) + bytes(4) + content


@contextlib.contextmanager
def opened(port: int):
    """A connection that is a WebSocket."""
    with socket.create_connection(("localhost", port), SECONDS) as connection:
        lines = ["GET /socket HTTP/1.1", "Host: localhost", *(f"{name}: {WEBSOCKET[name]}" for name in WEBSOCKET)]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        assert b" 101 " in connection.recv(4096)
        yield connection


def test_a_message_has_at_most_so_many_parts(small):
    """Empty ones were kept without an end, and counted again whenever more came."""
    for count, answer in ((connections.FRAMES // 2, b"\x81\x011"), (3 * connections.FRAMES, b"")):
        with opened(small[0]) as connection, contextlib.suppress(ConnectionResetError):
            connection.sendall(frame(2) + frame(0) * count)
            time.sleep(0.2)
            connection.sendall(frame(0x80, b"a"))
            assert connection.recv(3) == answer


def test_who_pings_and_does_not_read_is_let_go(small):
    with opened(small[0]) as connection, pytest.raises((BrokenPipeError, ConnectionResetError)):
        for _ in range(64):
            connection.sendall(frame(0x89, b"a" * 125) * 8_000)


def test_what_is_no_request_gets_the_policy_too(small):
    assert (
        b"content-security-policy: default-src 'self'" in answer_to(small[0], b"\x16\x03\x01 nonsense\r\n\r\n").lower()
    )


def test_whoever_cannot_be_served_reads_why(small, monkeypatch):
    monkeypatch.setattr(connections, "most_visitors", lambda: 0)
    assert connections.FULL.encode() in answer_to(small[0])
    monkeypatch.setattr(connections, "most_visitors", lambda: 1)
    assert answer_to(small[0], WHOLE).count(b"200 OK") == 1
