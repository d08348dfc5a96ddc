"""The limits on what a visitor sends to the server: messages over the page's WebSocket, and files. Also the answer of a
failed download.

Streamlit passes every message of a browser to the session, and some are meant for developers: they clear the caches of
all visitors, run git, or write files beside the app. So only messages that this page's browser side sends are let
through. They are limited in bytes, in the values that they set, and by how much the visitor has read so far.

Files are held in the server's memory. The upload field limits them only in the browser, which a program can ignore. So
received bytes are counted here.
"""

import asyncio
import itertools
import logging
from collections.abc import Hashable
from pathlib import PurePosixPath

from google.protobuf.message import DecodeError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse
from streamlit.runtime import app_session
from streamlit.runtime.backend_operation_handler import DeferredFileHandler
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from dashboard.choices import settings
from dashboard.shell.problems import sentence

ALLOWED = frozenset({"rerun_script", "file_urls_request", "app_heartbeat", "backend_operation_request"})
OPERATIONS = frozenset({"deferred_file", "dataframe_chunk"})  # of a backend_operation_request
VALUES = 1_000  # of widgets in a message, and files that are asked for
SENTENCE = 2_000  # bytes of a pasted sentence: 500 characters of up to four
ENVELOPE = 2**16  # bytes of all else in a message, and of the values of a visitor that do not count
VALUES_SHARE = 16  # the values of all visitors that have set many may take this part of ATTNVIZ_MEMORY_MB
NAME = 200  # bytes that a value takes besides its own
STAYS = 13.0  # s that values are held for one who has left: config.toml's time, and warm_up's look for them
READ = 60.0  # s in which a browser must take what it is sent
UPLOADS = "/_stcore/upload_file"  # of Streamlit, for files: /session/file
FILES = 4  # of one visitor: two pages have fields for files, one of them two
LARGEST_FILES = 256 * 2**20  # bytes of a visitor's files, on one's own machine; config.toml has those of one file
FILES_SHARE = 4  # all files may take this part of ATTNVIZ_MEMORY_MB
AROUND_FILE = 64 * 2**10  # bytes around a file in a request
_LOG = logging.getLogger("attnviz")


def largest() -> int:
    """The largest message in bytes, enough to paste as many sentences as a run may have."""
    return settings.value(settings.SENTENCES) * SENTENCE + ENVELOPE


class Budget:
    """A budget of bytes shared by many holders. most : their total."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._sizes: dict[Hashable, int] = {}

    def hold(self, who: Hashable, size: int) -> bool:
        """Set the bytes of a holder, 0 for none -> is there room? If not, nothing changes."""
        before = self._sizes.get(who, 0)
        if size > before and self.held + size - before > self.most:
            return False
        self.held += size - before
        if size:
            self._sizes[who] = size
        else:
            self._sizes.pop(who, None)
        return True


class Messages:
    """ASGI middleware: lets through the messages of this page's browser side, and ends connections that exceed the
    limits."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.largest = largest()
        self.budget = Budget(max(self.largest, settings.bytes_of(settings.MEMORY) // VALUES_SHARE))
        self._numbers = itertools.count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        number, has_read, values = next(self._numbers), asyncio.Event(), {}
        has_read.set()

        async def listen() -> Message:
            while True:
                message = await receive()
                await has_read.wait()  # who does not read is not answered: answers would pile up
                if message["type"] != "websocket.receive":
                    return message
                back_message = _read(message)
                if problem := self._problem(number, message, back_message, values):
                    _LOG.info("a message was refused: %s", problem)
                    await send({"type": "websocket.close", "code": 1009, "reason": problem})
                    return {"type": "websocket.disconnect", "code": 1009}
                if back_message is None or _is_allowed(back_message):
                    return message

        async def say(message: Message) -> None:
            has_read.clear()
            try:
                async with asyncio.timeout(READ):
                    await send(message)
            finally:
                has_read.set()

        try:
            await self.app(scope, listen, say)
        finally:
            asyncio.get_running_loop().call_later(STAYS, self.budget.hold, number, 0)

    def _problem(
        self, number: int, message: Message, back_message: BackMsg | None, values: dict[str, int]
    ) -> str | None:
        """Why a message exceeds the limits, in a few words.

        values : bytes of the visitor's values so far, by widget; updated with the message's.
        """
        size = len(message.get("bytes") or message.get("text") or b"")
        if size > self.largest:
            return f"a message may have {self.largest:,} bytes"
        values |= _sizes(back_message, size)
        held = sum(values.values())
        if not self.budget.hold(number, held if held > ENVELOPE else 0):  # so who sends little is never refused
            return "all visitors together have sent more than this server can hold"
        return None


class Downloads(DeferredFileHandler):
    """Makes a file when its button is clicked, and says beside the button why a file cannot be made. Streamlit only
    says that it failed."""

    async def handle(self, request, session_id: str):
        files = self._get_media_file_mgr()
        answer = BackendOperationResponse(request_id=request.request_id)
        try:
            answer.deferred_file.url = await asyncio.to_thread(files.execute_deferred, request.deferred_file.file_id)
        except Exception as error:  # of whatever makes the file: the page goes on, and the log has the traceback
            _LOG.exception("a file could not be made")
            answer.error_msg = _reason(error.__cause__)
        return answer


def install() -> None:
    """Make every session create its files with `Downloads`."""
    app_session.DeferredFileHandler = Downloads


def _reason(error: BaseException | None) -> str:
    """Why there is no file. error : raised while making it; None if Streamlit no longer has its maker."""
    if error is None:
        return "The file was not made: the page has changed in the meantime. Click again, or reload the page first."
    problem = error.strerror if isinstance(error, OSError) else str(error)  # no paths of this machine
    if problem and isinstance(error, ValueError | OSError | MemoryError):
        return f"The file was not made. {sentence(problem)}"
    return "The file was not made, because of an error in this program. The log of the server has it."


def _read(message: Message) -> BackMsg | None:
    """The parsed message of a browser; None for an invalid one, which Streamlit refuses."""
    try:
        return BackMsg.FromString(message.get("bytes") or b"")
    except DecodeError:
        return None


def _sizes(back_message: BackMsg | None, size: int) -> dict[str, int]:
    """Bytes of the values that a message sets, by widget, and of the rest. size : of the whole message.

    Streamlit stores the value of a widget until the next value.
    """
    if back_message is None or back_message.WhichOneof("type") != "rerun_script":
        return {}
    widgets = back_message.rerun_script.widget_states.widgets
    sizes = {f"widget {widget.id}": widget.ByteSize() + NAME for widget in widgets}
    return sizes | {"rest": max(size - sum(sizes.values()), 0)}


def _is_allowed(back_message: BackMsg) -> bool:
    """Does this page's browser side send such a message? Others are dropped."""
    kind = back_message.WhichOneof("type")
    if kind == "backend_operation_request":
        return back_message.backend_operation_request.WhichOneof("payload") in OPERATIONS
    if kind == "rerun_script" and len(back_message.rerun_script.widget_states.widgets) > VALUES:
        return False
    if kind == "file_urls_request" and len(back_message.file_urls_request.file_names) > VALUES:
        return False
    return kind in ALLOWED


class Uploads:
    """ASGI middleware: refuses a file that is more than its visitor, or all visitors together, may hold."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.share = min(settings.bytes_of(settings.VISITOR), LARGEST_FILES)
        self.most = max(self.share, settings.bytes_of(settings.MEMORY) // FILES_SHARE)
        self._coming: dict[object, tuple[str, int]] = {}  # requests that are being read: the session, and bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "PUT" or not scope["path"].startswith(f"{UPLOADS}/"):
            await self.app(scope, receive, send)
            return
        (session, *_), request = PurePosixPath(scope["path"].removeprefix(f"{UPLOADS}/")).parts or ("",), object()
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
        """Why a file is refused, in a sentence; None if accepted. more : its declared bytes. request : its HTTP
        request."""
        held = {name: [len(file.data) for file in files.values()] for name, files in list(_files().items())}
        coming = [(name, size) for name, size in self._coming.values()]
        ours = held.get(session, [])
        if len(ours) + sum(name == session for name, _ in coming) - (request is not None) >= FILES:
            return f"a visitor may upload {FILES} files; take one away on the page first"
        if sum(ours) + sum(size for name, size in coming if name == session) + more > self.share + AROUND_FILE:
            return (
                f"the files of a visitor may have {self.share // 2**20:,} MB together; take one away on the page first"
            )
        if sum(map(sum, held.values())) + sum(size for _, size in coming) + more > self.most + AROUND_FILE:
            return "all visitors together have uploaded as much as this server can hold; try again in a few minutes"
        return None


async def _read_away(receive: Receive, length: str) -> None:
    """Read and discard the remaining request, because a browser reads the answer only after it has sent everything."""
    if length.isdecimal() and int(length) <= LARGEST_FILES:
        while (await receive()).get("more_body"):
            pass


def _files() -> dict:
    """The files in memory, by session and name."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return manager.file_storage if isinstance(manager, MemoryUploadedFileManager) else {}
