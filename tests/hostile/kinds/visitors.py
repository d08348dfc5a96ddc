"""A visitor of a real server: any request, message, file or half of one. The next visitor is answered all the same."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import processes
import serving
import websockets
from client import Client, Lost
from hypothesis import strategies as st
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace

WARM = ("raw", b"GET / HTTP/1.1\r\n\r\n", 0)
SECONDS = 60  # for an answer, also where the machine does much else
COSTS = 4  # s of processor time that the page's process may spend on what one visitor sends, and the next one's page
HELD = 600  # open files of visitors who have just left: four each, for ten seconds
STATUSES = range(200, 505)
TOKEN = "2|00000000|" + "0" * 32 + "|1700000000"
MESSAGES = ("clear_cache", "set_run_on_save", "stop_script", "load_git_info", "debug_shutdown_runtime", "app_heartbeat")


@dataclass
class Server:
    """A running server. before : its processes, and its open files."""

    address: str
    pid: int
    texts: Iterator[str]
    before: tuple[list[int], int] = ([], 0)

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def state(self) -> tuple[list[int], int]:
        return sorted(processes.family(self.pid)), len(os.listdir(f"/proc/{self.pid}/fd"))


@contextlib.contextmanager
def around(place: Workplace) -> Iterator[Server]:
    """A server for strangers, that takes files, with the small models of the place."""
    options = {"ATTNVIZ_PUBLIC": "1", "ATTNVIZ_ALLOW": "uploads", "ATTNVIZ_HOSTS": "attn.example.org"}
    with serving.running(ATTNVIZ_CHECKPOINTS=str(place.root), as_people=True, **options) as (address, pid):
        server = Server(address, pid, _sentences())
        asyncio.run(next_visitor(server))
        server.before = server.state()
        yield server


def _sentences() -> Iterator[str]:
    """Sentences that are all different, so that each is computed."""
    import tiny

    number = 0
    while True:
        yield from (english for english, _ in tiny.sentences(50, number))
        number += 1


def strategy():
    return st.one_of(_requests(), _requests(), _messages(), _messages(), _uploads())


# --- requests


def _requests():
    """Bytes of a request, and how many of them are sent before the visitor stops."""
    line = st.one_of(
        st.sampled_from(["Connection: close", "Connection: keep-alive", "Expect: 100-continue", "Upgrade: websocket"]),
        st.sampled_from(
            ["Transfer-Encoding: chunked", "Content-Length: 5", "Content-Length: -1", "Content-Length: 1e9"]
        ),
        st.sampled_from(["Transfer-Encoding: identity", "Content-Length: 99999999999999999999", "Range: bytes=0-,-1"]),
        st.sampled_from(["Host: evil.example", "Host: attn.example.org:1", "Origin: http://attn.example.org:1"]),
        st.sampled_from(["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Origin: null"]),
        st.tuples(_names, _values).map(": ".join),
        st.tuples(_names, _values, st.integers(1, 70_000)).map(
            lambda made: f"{made[0]}: {(made[1] * made[2])[:70_000]}"
        ),
        st.tuples(_COOKIES, st.integers(1, 70_000)).map(lambda made: f"Cookie: {made[0][0]}{made[0][1] * made[1]}"),
        strategies.texts,
    )
    first = st.tuples(
        st.sampled_from(["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "TRACE", "CONNECT", "PRI", "G\x00T", ""]),
        st.one_of(st.sampled_from(PATHS), strategies.sent.map(lambda text: f"/{text}")),
        st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", ""]),
    ).map(" ".join)
    body = st.one_of(st.just(b""), st.binary(max_size=60), st.sampled_from(range(len(CHUNKS))).map(CHUNKS.__getitem__))
    ending = st.sampled_from(["\r\n", "\r\n", "\n", "\r"])

    def request(parts) -> bytes:
        first, own, lines, ending, body = parts
        head = [first, *(["Host: HOST"] * own), *lines, "", ""]
        return ending.join(head).encode("utf-8", "replace") + body

    whole = st.tuples(first, st.sampled_from([True, True, True, False]), st.lists(line, max_size=6), ending, body)
    many = st.integers(90, 3000).map(
        lambda count: b"GET / HTTP/1.1\r\nHost: HOST\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(count)) + b"\r\n"
    )
    content = st.one_of(whole.map(request), whole.map(request), many, st.binary(max_size=80))
    return st.tuples(st.just("raw"), content, st.one_of(st.just(0), st.integers(1, 400)))


_names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
_values = st.one_of(strategies.sent, st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30))
_COOKIES = st.sampled_from(
    [('_streamlit_xsrf="', '\\"'), ('_streamlit_xsrf="', "\\012"), ("_streamlit_xsrf=", "a"), ("a=", "b; a=")]
    + [("", "=;"), ("", '"; "'), ('a="', "\\\\"), ("_streamlit_xsrf=2|", "|"), ("$Version=1; a=", ",")]
)
PATHS = (
    "/",
    "/heads",
    "/_stcore/health",
    "/_stcore/stream",
    "/_stcore/upload_file/a/b",
    "/media/x",
    "/_stcore/metrics",
)
PATHS += (
    "/static/../../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "//evil.example/",
    "*",
    "http://evil.example/",
    "/\\x",
)
PATHS += (
    "/?text=" + "a" * 3000,
    "/static/js/",
    "/component/x/y",
    "/_stcore/bidi-components/x/../../y",
    "/plotly.min.js",
)
CHUNKS = (
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhel",
    b"FFFFFFFFFFFFFFFF\r\nx",
    b"-1\r\nx\r\n",
    b"1;" + b"a" * 9000 + b"\r\nx\r\n",
)
CHUNKS += (b"0\r\n" + b"X: 1\r\n" * 9000 + b"\r\n", b"1\r\na\r\n" * 5000, b"zz\r\n")


def _send_raw(server: Server, content: bytes, cut: int) -> None:
    """cut : after so many bytes the visitor is silent, and goes away; 0 for never."""
    content = content.replace(b"HOST", server.host.encode())
    with socket.create_connection(server.host.split(":"), SECONDS) as connection:
        connection.settimeout(1 if cut else SECONDS)
        try:
            connection.sendall(content[:cut] if cut else content)
            if cut:
                return
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65536)
        except TimeoutError:
            raise Failure(f"no answer in {SECONDS} s") from None
        except OSError:  # refused before all was sent
            return
        _check_answer(answer)


def _check_answer(answer: bytes) -> None:
    """Whatever is refused has the policy, and says no more than a sentence."""
    if not answer:
        return
    words = answer.split(b" ", 2)
    if not (words[0].startswith(b"HTTP/1.") and words[1].isdigit() and int(words[1]) < 600):
        raise Failure(f"this is no answer: {answer[:200]!r}")
    status, text = int(words[1]), answer.decode("latin-1").lower()
    if (status >= 500 and status not in (501, 503)) or "traceback" in text:
        raise Failure(f"the answer is {answer[:300]!r}")
    if status >= 400 and "content-security-policy" not in text:
        raise Failure(f"a refusal without the policy: {answer[:300]!r}")


# --- messages


PLACES = st.sampled_from(["ID", "PAGE", "FRAGMENT", "", "x"])
VALUES = (
    {"boolValue": True},
    {"doubleValue": "NaN"},
    {"intValue": str(2**62)},
    {"triggerValue": True},
    {"jsonValue": "[" * 5000},
    {"jsonValue": '{"a":' * 900},
    {"jsonTriggerValue": "{"},
    {},
    {"arrowValue": {"data": "AAAA"}},
    {"bytesValue": "AAAA"},
    {"stringTriggerValue": {"data": "x"}},
    {"stringArrayValue": {"data": ["a"] * 900}},
    {"doubleArrayValue": {"data": [1e308, "-Infinity"]}},
    {"fileUploaderStateValue": {"uploadedFileInfo": [{"fileId": "x", "name": "../x", "size": "99"}]}},
    {"chatInputValue": {"data": "x"}},
    {"intArrayValue": {"data": [str(2**62)] * 99}},
)
CONTEXTS = (
    {"timezone": "../../etc/passwd", "timezoneOffset": 2**31 - 1},
    {"locale": "x" * 999, "url": "file:///"},
)
ASKED = (
    {"deferredFile": {"fileId": "x"}},
    {"installSkills": {}},
    {"dismissSkillsNudge": {}},
    {"dataframeChunk": {"sourceId": "x", "offset": str(2**63), "limit": 2**32 - 1, "sort": {"column": "a"}}},
)


def _messages():
    """Bytes of messages on the page's socket. ID, PAGE and FRAGMENT stand for what the page itself sends there."""
    from google.protobuf import json_format

    files = st.tuples(st.integers(0, 1500), strategies.sent).map(
        lambda made: {"fileUrlsRequest": {"requestId": "1", "sessionId": "x", "fileNames": [made[1]] * made[0]}}
    )
    run = _runs().map(lambda state: {"rerunScript": state})
    flags = st.sampled_from(MESSAGES).map(lambda name: {name: True})
    operations = st.sampled_from(ASKED).map(lambda payload: {"backendOperationRequest": payload})
    whole = st.one_of(flags, run, run, files, operations).map(
        lambda content: json_format.ParseDict(content, BackMsg()).SerializeToString()
    )
    raw = st.one_of(st.binary(max_size=80), strategies.sent, st.integers(1, 4_000_000).map(lambda size: b"a" * size))
    some = st.lists(st.one_of(whole, whole, whole, raw, whole.flatmap(strategies.damaged)), min_size=1, max_size=3)
    return st.tuples(st.just("said"), some, st.booleans())


def _runs():
    """What a run of the page is asked for with, as JSON."""
    value = st.one_of(
        st.sampled_from(range(len(VALUES))).map(VALUES.__getitem__),
        strategies.sent.map(lambda text: {"stringValue": text}),
        st.integers(1, 3_000_000).map(lambda size: {"stringValue": "a" * size}),
        strategies.json_values.map(lambda content: {"jsonValue": strategies.as_json(content)}),
    )
    widget = st.tuples(PLACES, value).map(lambda made: {"id": made[0], **made[1]})
    return st.fixed_dictionaries(
        {},
        optional={
            "queryString": st.one_of(strategies.sent, st.integers(1, 70_000).map(lambda size: "text=" + "a" * size)),
            "widgetStates": st.lists(widget, max_size=3).map(lambda widgets: {"widgets": widgets}),
            "pageScriptHash": PLACES,
            "pageName": strategies.sent,
            "fragmentId": PLACES,
            "isAutoRerun": st.booleans(),
            "isHistoryNavigation": st.booleans(),
            "cachedMessageHashes": st.lists(strategies.sent, max_size=4),
            "contextInfo": st.sampled_from(CONTEXTS),
        },
    )


async def _say(server: Server, messages: list[bytes | str], waits: bool) -> None:
    """waits : reads answers for a moment before leaving."""
    async with Client(server.address) as client:
        await client.open()
        with contextlib.suppress(Lost, websockets.ConnectionClosed, TimeoutError):
            for content in messages:
                await client._socket.send(_named(content, client) if isinstance(content, bytes) else content)
            if waits:
                await asyncio.wait_for(client.answer(), 0.2)


def _named(content: bytes, client: Client) -> bytes:
    """A message with the names of this page, where it is one."""
    back_message = BackMsg()
    with contextlib.suppress(Exception):  # what cannot be read goes as it is
        back_message.ParseFromString(content)
        state = back_message.rerun_script
        names = {"ID": client._text, "PAGE": client._page, "FRAGMENT": client._fragment}
        if back_message.WhichOneof("type") == "rerun_script":
            state.page_script_hash = names.get(state.page_script_hash, state.page_script_hash)
            state.fragment_id = names.get(state.fragment_id, state.fragment_id)
            for widget in state.widget_states.widgets:
                widget.id = names.get(widget.id, widget.id)
            return back_message.SerializeToString()
    return content


# --- files


def _uploads():
    """The frame of a file, how large it is, and how its request says so."""
    listed = st.sampled_from(range(len(FRAMES))).map(FRAMES.__getitem__)  # hypothesis writes down what it chooses from
    frame = st.one_of(listed, listed.flatmap(strategies.damaged), st.binary(max_size=60))
    return st.tuples(st.just("file"), frame, st.integers(0, 2_000_000), st.sampled_from(["length", "chunked", "short"]))


FRAMES = (
    b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.json"\r\n\r\n',
    b'--x\r\nContent-Disposition: form-data; name="f"; filename="../../a\x00.json"\r\n\r\n',
    b'--x\r\nContent-Disposition: form-data; name="f"\r\n\r\n',
    b"--x\r\n" + b"X: 1\r\n" * 3000 + b"\r\n",
    b'--x\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n1\r\n' * 900,
)


def _upload(server: Server, frame: bytes, size: int, declared: str) -> None:
    """To an address that nobody was given, with the token that a page would send."""
    content = frame + bytes(size) + b"\r\n--x--\r\n"
    lines = [
        "PUT /_stcore/upload_file/session/file HTTP/1.1",
        f"Host: {server.host}",
        f"Origin: {server.address}",
        f"Cookie: _streamlit_xsrf={TOKEN}",
        f"X-Xsrftoken: {TOKEN}",
        "Content-Type: multipart/form-data; boundary=x",
        "Transfer-Encoding: chunked"
        if declared == "chunked"
        else f"Content-Length: {len(content) + 9 * (declared == 'short')}",
    ]
    if declared == "chunked":
        content = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
    _send_raw(server, "\r\n".join([*lines, "", ""]).encode() + content, 0)


# --- after each of them


async def next_visitor(server: Server) -> None:
    """Somebody else comes, types a sentence, and sees its maps."""
    async with asyncio.timeout(SECONDS), Client(server.address) as client:
        await client.open()
        answer = await client.type(next(server.texts))
        if answer.problems:
            raise Failure(f"the next visitor reads {answer.problems[0]!r:.300}")


def visit(server: Server, case) -> None:
    """What the visitor of a case does."""
    kind, *given = case
    if kind == "raw":
        _send_raw(server, *given)
    elif kind == "file":
        _upload(server, *given)
    else:
        asyncio.run(_say(server, *given))


def check(place: Workplace, case) -> None:
    server = place.around
    before = processes.seconds(server.pid)
    visit(server, case)
    asyncio.run(next_visitor(server))
    if (spent := processes.seconds(server.pid) - before) > COSTS:
        raise Failure(f"it cost {spent:.1f} s of processor time")
    members, files = server.state()
    if members != server.before[0] or files > server.before[1] + HELD:
        raise Failure(f"processes {members} and {files} open files, which were {server.before}")
