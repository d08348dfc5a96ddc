"""The first answer to the browser: Streamlit's index page, changed so that it has our styles and loads Plotly, our own
scripts, scripts of Streamlit for what the first page shows at once, Japanese letters if the system has none, and the
handling of Back.

Streamlit loads its own Plotly only with the first `st.plotly_chart`, and the script of an element only with the first
such element; here they load while the server reads the models.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attnviz import plotlyjs
from attnviz.export import fonts
from dashboard import browser
from dashboard.browser import script
from dashboard.pages import PAGES

PLOTLY = plotlyjs.SCRIPT
PATHS = {f"/{page.path}" for page in PAGES}
INDEX = Path(find_spec("streamlit").origin).parent / "static" / "index.html"
# Plotly without the function around it, which serves other loaders: a browser would read the whole text in it twice,
# once to find its end and once to run it.
_AROUND = r"\(\n function\(root, factory\).*?\(\) => \{\n(.*)return Plotly;\n\}\)\);"
DRAWING = re.sub(_AROUND, r"\1", PLOTLY.read_text(encoding="utf-8"), count=1, flags=re.DOTALL).encode()
ADDRESS = f"{PLOTLY.name}?v={hashlib.sha256(DRAWING).hexdigest()[:16]}"  # a browser that holds another one asks again
# Japanese letters where the system has none. They join the page's own family, so text and charts have them; a browser
# asks for the file only when a page shows such a letter and the system has none of `fonts.SYSTEM_FONTS`.
_EVERY = "font-weight: 100 900; font-style: normal; font-display: swap; "
JAPANESE = f"<style>{fonts.rule(f'./{fonts.JAPANESE.name}', 'truetype', 'Source Sans', _EVERY)}</style>"
SCRIPT = f'<script async src="./{ADDRESS}"></script>'
OWN = browser.loaded().encode()
OWN_ADDRESS = f"attnviz.js?v={hashlib.sha256(OWN).hexdigest()[:16]}"
OWN_SCRIPT = f'<script src="./{OWN_ADDRESS}"></script>'  # not async: Streamlit's own, which show a page, come after it
# What is not drawn yet is a grey place that pulses, in sixty pictures a second: here only after a second, because most
# are drawn before.
GREY = "<style>.stApp [data-testid^=stSkeleton] { animation-delay: 1s !important; }</style>"
# After Streamlit's own styles, which come into the head, and before what is drawn: as an element of the page it would
# come after others, which the browser would then lay out again.
STYLE = f"<style>{(Path(__file__).parents[1] / 'style.css').read_text(encoding='utf-8')}</style>"
STOPS = f"<script>{script('history.js')}</script>"
SHOWN = ("Html", "Selectbox", "ButtonGroup", "TextInput", "Checkbox", "Slider", "rehype-katex", "BidiComponent")
# Where the server of a page with a name is: else the browser asks below that name first, in vain, and complains of it.
HERE = '<script>window.__streamlit = { BACKEND_BASE_URL: new URL(".", location).href };</script>'


def _with_imports(names: Iterable[str]) -> list[str]:
    """The files of Streamlit's scripts with these names, and what they import; those of the index page left out."""
    folder, index = INDEX.parent / "static" / "js", INDEX.read_text(encoding="utf-8")
    files, todo = [], [path.name for name in names for path in folder.glob(f"{name}.*.js")]
    while todo:
        if (file := todo.pop()) not in files and file not in index:
            files.append(file)
            with (folder / file).open(encoding="utf-8") as script:
                todo += re.findall(r'(?:from|import)"\./([\w.-]+\.js)"', script.read(5000))  # imports come first
    return files


STREAMLITS = {  # address -> file; large ones go in pieces, so that nobody who does not read them fills the memory
    f"/static/js/{path.name}": path
    for path in (INDEX.parent / "static" / "js").glob("*.js")
    if path.stat().st_size < 256 * 2**10
}
FOREVER = {"Cache-Control": "public, immutable, max-age=31536000"}  # as Streamlit: a name has a hash of the content
PRELOAD = "".join(f'<link rel="modulepreload" href="./static/js/{file}">' for file in _with_imports(SHOWN))


def script_hashes() -> list[str]:
    """The hashes `sha256-…` of the scripts inside the page, for its content security policy."""
    scripts = re.findall(r"<script>(.*?)</script>", INDEX.read_text(encoding="utf-8") + HERE + STOPS, re.DOTALL)
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    return [f"sha256-{base64.b64encode(digest).decode()}" for digest in digests]


class Scripts:
    """ASGI middleware: sends a script of Streamlit at once. Streamlit itself, which leaves each step to a thread, takes
    seven times as long."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = STREAMLITS.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        answer = Response(file.read_bytes(), media_type="text/javascript", headers=FOREVER) if file else self.app
        await answer(scope, receive, send)


class OtherAddresses:
    """ASGI middleware: an address without a page, which Streamlit answers with its own index page, has the one below;
    from further down (`/inside/x`) the browser is led to it (`/x`), because scripts are looked for beside the page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.size = app, str(INDEX.stat().st_size).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_elsewhere(scope):
            await self.app(scope, receive, send)
            return
        plain = [header for header in scope["headers"] if header[0] != b"accept-encoding"]  # its length is then known
        is_index = False

        async def passed(message: Message) -> None:
            nonlocal is_index
            if message["type"] == "http.response.start":
                headers = dict(message["headers"])
                is_html = headers.get(b"content-type", b"").startswith(b"text/html")
                is_index = message["status"] == 200 and is_html and headers.get(b"content-length") == self.size
            if not is_index:
                await send(message)

        await self.app(scope | {"headers": plain}, receive, passed)
        if is_index:
            folders, query = scope["path"].count("/") - 1, scope["query_string"].decode("latin-1")
            address = f"{'../' * folders}{quote(PurePosixPath(scope['path']).name)}{'?' * bool(query)}{query}"
            await (RedirectResponse(address) if folders else await _index(Request(scope)))(scope, receive, send)

    def _is_elsewhere(self, scope: Scope) -> bool:
        """Does a browser ask for what may be a page, and is none of ours? A file in a folder is no page."""
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] in PATHS:
            return False
        return scope["path"].count("/") == 1 or "." not in PurePosixPath(scope["path"]).name


async def _index(request: Request) -> Response:
    added = ("" if request.url.path.endswith("/") else HERE) + SCRIPT + OWN_SCRIPT
    head, tag, body = INDEX.read_text(encoding="utf-8").partition("</head>")
    page = f"{head}{JAPANESE}{GREY}{PRELOAD}{added}{STOPS}{tag}{body.replace('<body>', f'<body>{STYLE}', 1)}"
    return HTMLResponse(page, headers={"Cache-Control": "no-cache"})


async def _plotly(request: Request) -> Response:
    plain = {"Content-Encoding": "identity"}  # like Streamlit's own scripts: gzip would take longer than it saves here
    return Response(DRAWING, media_type="text/javascript", headers=plain | {"Cache-Control": "public, max-age=86400"})


async def _own(request: Request) -> Response:
    here = request.url.query == OWN_ADDRESS.partition("?")[2]  # another server of this name may differ
    caching = "public, max-age=86400" if here else "no-store"
    return Response(OWN, media_type="text/javascript", headers={"Cache-Control": caching})


async def _japanese(request: Request) -> Response:
    return FileResponse(fonts.JAPANESE, media_type="font/ttf", headers={"Cache-Control": "public, max-age=86400"})


async def _training(request: Request) -> Response:
    from dashboard.train.view import answer  # imports pandas

    return await answer(request)


routes = [
    *(Route(path, _index) for path in PATHS),
    Route(f"/{PLOTLY.name}", _plotly),
    Route("/attnviz.js", _own),
    Route("/training/{name}", _training),
    Route(f"/{fonts.JAPANESE.name}", _japanese),
]
