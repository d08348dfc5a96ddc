"""Which requests the server answers, and what its answers allow a browser to do.

A web page from elsewhere can send requests to this machine, and with DNS rebinding it can read the answers: then its
own name is in `Host`. So the server answers only requests for its own names: those of this machine, and those in the
environment variable ATTNVIZ_HOSTS, separated by commas (`*` for any name). A WebSocket, and a request that changes
something, must come from a page of this server: `Origin` is compared with `Host` here. Streamlit's own comparison asks
the internet for the address of this machine when the two differ (`server_util.is_url_from_allowed_origins`), so it is
never given an `Origin`.
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
    within markup runs. `unsafe-eval` is for what drives a browser and waits for conditions in it (Playwright); the page
    itself evaluates no text.
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

    The address of the page holds the sentence, so no other site is told it. X-Frame-Options can name no origins: where
    ATTNVIZ_FRAMES does, the policy alone says who may frame the page.
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
        """Why a request is refused; None when it is not."""
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
        """Why a request is not one of our own pages, in a sentence; None when it is. changes : does it ask for more
        than to read?"""
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
        """Is the page at `origin` of this server: at the name and port that it asks?

        A proxy that does not pass the name on asks for another: the page is then at a name of the operator's, and at
        the port that needs no number.
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
    """A filter of the log: of the messages from one place of the code it passes one now and then, with their number.
    Else anyone could fill the log with requests without end."""

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
    """Have `Sparing` at everything that visitors can cause to be logged."""
    for name in LOGGING:
        logging.getLogger(name).addFilter(Sparing())


def _too_large(scope: Scope) -> str:
    """What of the headers is too large, in words; "" when nothing is."""
    count = len(scope["headers"])
    size = sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope.get("query_string", b""))
    if count > MOST_HEADERS:
        return f"this request has {count:,} headers, and at most {MOST_HEADERS} are read"
    if size > connections.HEADERS:
        return f"the headers of this request have {size:,} bytes, and at most {connections.HEADERS:,} are read"
    return ""


def _split(netloc: str) -> tuple[str | None, str | None]:
    """`Localhost:8501` -> (`localhost`, `8501`); (None, None) for what is no name with a port."""
    match = _HOST.fullmatch(netloc.lower())
    return (match["name"], match["port"]) if match else (None, None)


def _for_the_page(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers as Streamlit may see them.

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
