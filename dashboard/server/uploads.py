"""How much a visitor may upload: files are held in the server's memory.

The field for a file limits it in the browser alone, and a program need not obey. So what comes is counted here.
"""

from pathlib import PurePosixPath

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from dashboard.choices import settings

PATH = "/_stcore/upload_file"  # of Streamlit, for files: /session/file
FILES = 4  # of one visitor: two pages have fields for files, one of them two
LARGEST = 256 * 2**20  # bytes of the files of one visitor, on one's own machine; config.toml has those of one file
SHARE = 4  # all files may take this part of ATTNVIZ_MEMORY_MB
FRAME = 64 * 2**10  # bytes around a file in a request


class Uploads:
    """ASGI middleware: refuses a file that is more than its visitor, or all visitors together, may hold."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.share = min(settings.bytes_of(settings.VISITOR), LARGEST)
        self.most = max(self.share, settings.bytes_of(settings.MEMORY) // SHARE)
        self._coming: dict[object, tuple[str, int]] = {}  # requests that are being read: the session, and bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "PUT" or not scope["path"].startswith(f"{PATH}/"):
            await self.app(scope, receive, send)
            return
        (session, *_), request = PurePosixPath(scope["path"].removeprefix(f"{PATH}/")).parts or ("",), object()
        length = Headers(scope=scope).get("content-length", "")
        if problem := self._problem(session, int(length) if length.isdecimal() else 0):
            await _read_away(receive, length)
            await PlainTextResponse(f"Refused: {problem}\n", 413)(scope, receive, send)
            return

        async def counted() -> Message:
            message = await receive()
            size = self._coming[request][1] + len(message.get("body", b""))
            self._coming[request] = session, size
            if self._problem(session, 0, request):
                raise HTTPException(413, "more than this server takes")
            return message

        self._coming[request] = session, 0
        try:
            await self.app(scope, counted, send)
        finally:
            del self._coming[request]

    def _problem(self, session: str, more: int, request: object | None = None) -> str | None:
        """Why a file is not taken, in a sentence; None when it is. more : bytes that it says it has. request : that it
        comes with."""
        held = {name: [len(file.data) for file in files.values()] for name, files in list(_files().items())}
        coming = [(name, size) for name, size in self._coming.values()]
        ours = held.get(session, [])
        if len(ours) + sum(name == session for name, _ in coming) - (request is not None) >= FILES:
            return f"a visitor may upload {FILES} files; take one away on the page first"
        if sum(ours) + sum(size for name, size in coming if name == session) + more > self.share + FRAME:
            return (
                f"the files of a visitor may have {self.share // 2**20:,} MB together; take one away on the page first"
            )
        if sum(map(sum, held.values())) + sum(size for _, size in coming) + more > self.most + FRAME:
            return "all visitors together have uploaded as much as this server can hold; try again in a few minutes"
        return None


async def _read_away(receive: Receive, length: str) -> None:
    """Read what a browser sends all the same, and keep nothing: it looks at the answer only when it has sent all."""
    if length.isdecimal() and int(length) <= LARGEST:
        while (await receive()).get("more_body"):
            pass


def _files() -> dict:
    """The files in memory, by session and name."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return manager.file_storage if isinstance(manager, MemoryUploadedFileManager) else {}
