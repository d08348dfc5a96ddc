"""Has the server answered all that a page asked of it?

Read from the frames between them, for the page itself tells late: a control changes the address before the server has
heard of it."""

import time

from playwright.sync_api import Page, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

MOST = 60  # s that an answer may take: a busy machine is no failure


class ScriptRuns:
    """waiting : a run was asked for, and none that began later has ended."""

    def __init__(self, page: Page):
        self.waiting = self._begun = False
        self._page = page
        page.on("websocket", self._opened)

    def forget(self) -> None:
        """Listen to no further connection."""
        self._page.remove_listener("websocket", self._opened)

    def answered(self) -> None:
        """Wait until nothing is waiting. TimeoutError; Playwright's error when the page is gone."""
        end = time.monotonic() + MOST
        while self.waiting:
            if time.monotonic() > end:
                raise TimeoutError(f"the server has not answered {self._page.url} for {MOST} s")
            self._page.wait_for_timeout(50)

    def _opened(self, socket: WebSocket) -> None:
        self.waiting = self._begun = False
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: bytes | str) -> None:
        if isinstance(frame, bytes) and BackMsg.FromString(frame).WhichOneof("type") == "rerun_script":
            self.waiting, self._begun = True, False

    def _received(self, frame: bytes | str) -> None:
        message = ForwardMsg.FromString(frame) if isinstance(frame, bytes) else ForwardMsg()
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._begun = True
        elif kind == "script_finished" and self._begun:
            self.waiting = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
