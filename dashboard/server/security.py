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
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.choices import allowed, settings
from dashboard.server import index_page

SETTING, ANY = settings.HOSTS, settings.ANY
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
UPLOAD = "/_stcore/upload_file"  # Streamlit's address for files
QUOTED = 80  # characters of a name that are repeated in a refusal
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+?)\.?(:(?P<port>[0-9]{1,5}))?")
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_LOG = logging.getLogger("attnviz")


def policy(script_hashes: Iterable[str]) -> str:
    """The content security policy: everything comes from this server, and no other page may frame it.

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
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def headers() -> dict[str, str]:
    """The headers of every answer.

    The address of the page holds the sentence, so no other site is told it.
    """
    return {
        "Content-Security-Policy": policy(index_page.script_hashes()),
        "X-Frame-Options": "DENY",
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        if problem := self._problem(scope):
            _LOG.warning("refused a request: %s", problem)
            await self._refuse(problem, scope, receive, send)
            return
        if scope["type"] == "websocket":
            await self.app(_without_origin(scope), receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _problem(self, scope: Scope) -> str | None:
        """Why a request is refused, in a sentence; None when it is not."""
        given = Headers(scope=scope)
        hosts, origins = given.getlist("host"), given.getlist("origin")
        name = _split(hosts[0])[0] if len(hosts) == 1 else None
        if name is None or (name not in self.names and ANY not in self.names):
            asked = repr(", ".join(hosts)[:QUOTED]) if hosts else "no name at all"
            return (
                f"this server answers requests for {', '.join(sorted(self.names))}, and this one is for {asked}. "
                f"Whoever runs the server can add a name with the environment variable {SETTING}."
            )
        if origins and (scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS):
            if len(origins) > 1 or not self._is_own(origins[0], hosts[0], name):
                return (
                    f"the request comes from the page {', '.join(origins)[:QUOTED]!r}, which is not a page of "
                    f"{hosts[0][:QUOTED]!r}. Whoever runs the server can add the name of that page with the "
                    f"environment variable {SETTING}."
                )
        if scope.get("path", "").startswith(UPLOAD) and scope["method"] not in SAFE_METHODS:
            if allowed.UPLOADS not in allowed.allowed():
                return "this server takes no files."
        return None

    def _is_own(self, origin: str, host: str, name: str) -> bool:
        """Is the page at `origin` of this server: at the name and port that it asks, or at a name of the operator's?"""
        scheme, _, netloc = origin.lower().partition("://")  # nothing comes after the name and the port
        asked, port = _split(netloc)
        if scheme not in ("http", "https") or asked is None:
            return False
        if asked in self.names - LOCAL or ANY in self.names:
            return True
        default = _PORTS[scheme]
        return (asked, port or default) == (name, _split(host)[1] or default)

    async def _refuse(self, problem: str, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "not a page of this server"})
        else:
            answer = PlainTextResponse(f"Refused: {problem}\n", 403, self.headers)
            await answer(scope, receive, send)


def _split(netloc: str) -> tuple[str | None, str | None]:
    """`Localhost:8501` -> (`localhost`, `8501`); (None, None) for what is no name with a port."""
    match = _HOST.fullmatch(netloc.lower())
    return (match["name"], match["port"]) if match else (None, None)


def _without_origin(scope: Scope) -> Scope:
    return scope | {"headers": [pair for pair in scope["headers"] if pair[0] != b"origin"]}
