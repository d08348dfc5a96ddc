"""Which requests the server answers, and which permissions its answers give a browser.

A web page from elsewhere can send requests to this machine, and with DNS rebinding it can read the answers: then its
own name is in `Host`. So the server answers only requests for its own names: those of this machine, and those in the
environment variable ATTNVIZ_HOSTS, separated by commas (`*` for any name). A WebSocket, and a request that changes
something, must come from a page of this server, so `Origin` is compared with `Host` here. Streamlit's own comparison
looks up this machine's address on the internet if they differ (`server_util.is_url_from_allowed_origins`), so it never
gets an `Origin`.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.choices import settings
from dashboard.pages import PAGES
from dashboard.server import connections, index_page

SETTING, ANY = settings.HOSTS, settings.ANY
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OF_STREAMLIT, UPLOAD = "/_stcore/", "/_stcore/upload_file"
# What the page uses below OF_STREAMLIT. The rest tells about visitors, or lets programs drive the page.
USED = ("/_stcore/health", "/_stcore/host-config", "/_stcore/stream", UPLOAD, "/_stcore/bidi-components/")
MOST_HEADERS = 100  # in a request; browsers send some twenty
REPORTED = 10.0  # s between two lines of the log that say the same
LOGGING = ("attnviz", "asyncio", "uvicorn.error", "streamlit.web.server.starlette.starlette_websocket")
LOGGING += ("streamlit.web.server.starlette.starlette_routes", "streamlit.runtime.app_session")
LOGGING += ("streamlit.runtime.backend_operation_handler", "streamlit.runtime.dataframe_chunk_handler")
QUOTED = 80  # characters of a name that are repeated in a refusal
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+?)\.?(:(?P<port>[0-9]{1,5}))?")
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_COOKIE = re.compile(rb"(?:^|;) *(_streamlit_xsrf=[\w|.-]{1,300}) *(?:;|$)")
_PAGES = frozenset(page.path for page in PAGES)
_LOG = logging.getLogger("attnviz")


class Refusal(NamedTuple):
    """status : of the answer. problem : why, in a sentence."""

    status: int
    problem: str


def policy(script_hashes: Iterable[str], frames: Sequence[str] = ()) -> str:
    """The content security policy: everything comes from this server. frames : origins whose pages may frame it.

    script_hashes : of the scripts inside the index page, as `sha256-…`. Streamlit writes its styles into the page and
    loads the parts of a page that come as text (components) from blobs; Plotly's pictures are blobs and data. No script
    within markup runs. `unsafe-eval` is for browser automation that waits for conditions (Playwright); the page itself
    evaluates no text.
    """
    allowed = " ".join(f"'{digest}'" for digest in script_hashes)
    rules = {
        "default-src": "'self'",
        "script-src": f"'self' 'unsafe-eval' blob: {allowed}",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self' data: blob:",
        "worker-src": "'self' blob:",
        "media-src": "'self' data: blob:",
        "object-src": "'none'",
        "frame-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": " ".join(frames) or "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def headers() -> dict[str, str]:
    """The headers of every answer.

    The address of the page contains the sentence, so no referrer is sent to other sites. X-Frame-Options cannot list
    origins, so with ATTNVIZ_FRAMES only the policy controls who may frame the page.
    """
    frames = settings.frames()
    return {
        "Content-Security-Policy": policy(index_page.script_hashes(), frames),
        **({} if frames else {"X-Frame-Options": "DENY"}),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def own_names() -> frozenset[str]:
    """The names that requests may be for, in lower case: those of this machine, and the operator's."""
    return LOCAL.union(settings.hosts())


class Guard:
    """ASGI middleware: refuses requests for other names than this server's, and sends `headers` with every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.names = own_names()
        self.headers = headers()
        self._sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        if refusal := self._refusal(scope):
            _LOG.warning("refused a request: %s", refusal.problem)
            await self._refuse(refusal, scope, receive, send)
            return
        scope = scope | {"headers": _for_the_page(scope)}
        if scope["type"] == "websocket":
            self._sockets += 1
            try:
                await self.app(scope, receive, send)
            finally:
                self._sockets -= 1
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Refusal | None:
        """Why a request is refused; None if it is accepted."""
        given, is_socket = Headers(scope=scope), scope["type"] == "websocket"
        if size := _too_large(scope):
            return Refusal(431, f"{size}. Delete the cookies of this page.")
        if problem := self._foreign(given, is_socket or scope["method"] not in SAFE_METHODS):
            return Refusal(403, problem)
        path = scope.get("path", "")
        if path.startswith(OF_STREAMLIT) and not path.startswith(USED):
            return Refusal(404, "there is nothing at this address.")
        if path.startswith(UPLOAD) and scope["method"] not in SAFE_METHODS:
            if settings.UPLOADS not in settings.allowed():
                return Refusal(403, "this server takes no files.")
        if self._sockets >= connections.most_visitors() and (is_socket or path.strip("/") in _PAGES):
            return Refusal(503, connections.FULL)
        return None

    def _foreign(self, given: Headers, changes: bool) -> str | None:
        """Why a request does not come from our own pages, in a sentence; None if it does. changes : does it do more
        than read?"""
        hosts, origins = given.getlist("host"), given.getlist("origin")
        name = _split(hosts[0])[0] if len(hosts) == 1 else None
        if name is None or (name not in self.names and ANY not in self.names):
            for_whom = repr(", ".join(hosts)[:QUOTED]) if hosts else "no name at all"
            return (
                f"this server answers requests for {', '.join(sorted(self.names))}, and this one is for {for_whom}. "
                f"Whoever runs the server can add a name with the environment variable {SETTING}."
            )
        if origins and changes and (len(origins) > 1 or not self._is_own(origins[0], hosts[0], name)):
            return (
                f"the request comes from the page {', '.join(origins)[:QUOTED]!r}, which is not a page of "
                f"{hosts[0][:QUOTED]!r}. Whoever runs the server can add the name of that page with the "
                f"environment variable {SETTING}, and a proxy must pass name and port on."
            )
        return None

    def _is_own(self, origin: str, host: str, name: str) -> bool:
        """Is the page at `origin` from this server, with the requested name and port? Behind a proxy that changes the
        name, the page must be at one of the operator's names and the default port.
        """
        scheme, _, netloc = origin.lower().partition("://")  # nothing comes after the name and the port
        origin_name, port = _split(netloc)
        if scheme not in ("http", "https") or origin_name is None:
            return False
        default = _PORTS[scheme]
        if origin_name == name:
            return (port or default) == (_split(host)[1] or default)
        return origin_name in self.names - LOCAL and (port or default) == default

    async def _refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
        words = refusal.problem if refusal.status == 503 else f"Refused: {refusal.problem}"
        more = {"Retry-After": "60"} if refusal.status == 503 else {}
        answer = PlainTextResponse(f"{words}\n", refusal.status, self.headers | more)
        await answer(scope, receive, send)


class Sparing(logging.Filter):
    """A log filter that passes only an occasional message from each place in the code, with their number. Otherwise
    anyone could fill the log with requests."""

    def __init__(self, seconds: float = REPORTED) -> None:
        super().__init__()
        self._seconds = seconds
        self._next: dict[tuple[str, int], float] = {}
        self._left_out: Counter[tuple[str, int]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        place = record.pathname, record.lineno
        if time.monotonic() < self._next.get(place, 0.0):
            self._left_out[place] += 1
            return False
        self._next[place] = time.monotonic() + self._seconds
        if left_out := self._left_out.pop(place, 0):
            record.msg, record.args = f"{record.getMessage()} ({left_out:,} more before it)", ()
        return True


def spare_the_log() -> None:
    """Apply `Sparing` to all log messages that visitors can cause."""
    for name in LOGGING:
        logging.getLogger(name).addFilter(Sparing())


def _too_large(scope: Scope) -> str:
    """The part of the headers that is too large, in words; "" if none is."""
    count = len(scope["headers"])
    size = sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope.get("query_string", b""))
    if count > MOST_HEADERS:
        return f"this request has {count:,} headers, and at most {MOST_HEADERS} are read"
    if size > connections.HEADERS:
        return f"the headers of this request have {size:,} bytes, and at most {connections.HEADERS:,} are read"
    return ""


def _split(netloc: str) -> tuple[str | None, str | None]:
    """`Localhost:8501` -> (`localhost`, `8501`); (None, None) for an invalid name or port."""
    match = _HOST.fullmatch(netloc.lower())
    return (match["name"], match["port"]) if match else (None, None)


def _for_the_page(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers that are passed to Streamlit.

    `Origin` is left out for a socket. The browser also sends the cookies of other servers on this machine. Only the one
    that Streamlit needs is passed on, and only where it is written as Streamlit writes it: a cookie in quotes costs
    Python before 3.11.10 time with the square of its length (CVE-2024-7592).
    """
    headers = [pair for pair in scope["headers"] if pair[0] != b"cookie"]
    if scope["type"] == "websocket":
        headers = [pair for pair in headers if pair[0] != b"origin"]
    cookies = b"; ".join(value for name, value in scope["headers"] if name == b"cookie")
    if token := _COOKIE.search(cookies):
        headers.append((b"cookie", token[1]))
    return headers
