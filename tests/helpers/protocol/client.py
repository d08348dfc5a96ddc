"""A visitor without a browser: Streamlit's protocol over a WebSocket, as its own page speaks it (streamlit.proto).

The server sends ForwardMsg, the client BackMsg. A new sentence is a `rerun_script` with the new value of the text's
widget and the fragment that it stands in; the server keeps the values of all other widgets.
"""

import base64
import json
import zlib
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

QUEUE = "in the queue"
KEPT = 2  # runs that a message is kept without use: Streamlit's global.maxCachedMessageAge
ENDS = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)


def chart_text(component) -> str:
    """The JSON of a row of charts (protobuf's BidiComponent). Servers before `plot.packed` sent it as it is."""
    return zlib.decompress(component.bytes).decode() if component.bytes else component.json or component.mixed.json


def chart_cells(component) -> list[dict]:
    """The cells of a row of charts, each with its words and its figure, its numbers as Plotly reads them."""
    cells = json.loads(chart_text(component))["cells"]
    for part in (part for cell in cells if cell["figure"] for part in cell["figure"]["data"]):
        for name, value in part.items():
            if isinstance(value, dict) and "per" in value:
                numbers = base64.b64encode(widened(value).tobytes()).decode()
                part[name] = {"dtype": "f4", "bdata": numbers} | {key: value[key] for key in ("shape",) if key in value}
    return cells


def widened(values: dict) -> np.ndarray:
    """Numbers that were sent in two bytes each, as dashboard/browser/scripts/plot.js reads them."""
    counts = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return np.where(counts == 65_535, np.nan, counts / values["per"]).astype("<f4")


class Lost(Exception):
    """The connection ended, or the server said something that a browser could not have used."""


@dataclass
class Answer:
    """What came after a sentence. captions : in the order in which the page showed them. heatmaps : their data, JSON.

    problems : what stands in a box of its own, such as an error.
    """

    bytes: int = 0
    heatmaps: str = ""
    captions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def queued(self) -> bool:
        """Was a place in the queue shown?"""
        return any(QUEUE in caption for caption in self.captions)


class Client:
    """`async with Client(address) as client`. query : of the address, after the question mark."""

    def __init__(self, address: str, query: str = ""):
        parts = urlsplit(address)
        self._url, self._origin = f"ws://{parts.netloc}/_stcore/stream", f"http://{parts.netloc}"
        self._query = query
        self._page = self._fragment = self._text = ""  # the page, the sentence's fragment and its widget
        self._messages: dict[str, tuple[ForwardMsg, int]] = {}  # hash -> what need not be sent again, its last run
        self._runs = 0

    async def __aenter__(self):
        options = {"origin": self._origin, "subprotocols": ["streamlit"], "max_size": None, "compression": None}
        options["max_queue"] = None  # who reads late answers pings all the same, as a browser does
        try:
            self._socket = await connect(self._url, open_timeout=60, **options)
        except (websockets.WebSocketException, OSError) as error:
            raise Lost(f"no connection: {error}") from None
        return self

    async def __aexit__(self, *error):
        await self._socket.close()

    async def open(self) -> Answer:
        """The first run of the page."""
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.context_info.timezone = "UTC"
        await self._socket.send(message.SerializeToString())
        answer = await self.answer()
        if not self._text:
            raise Lost("the page has no field for a sentence")
        return answer

    async def type(self, text: str) -> Answer:
        """Enter a sentence -> the whole answer."""
        await self.send(text)
        answer = await self.answer()
        if not answer.heatmaps:
            answer.problems.append("an answer without heatmaps")
        return answer

    async def send(self, text: str) -> None:
        """Enter a sentence."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash, state.fragment_id = self._query, self._page, self._fragment
        state.context_info.timezone = "UTC"
        state.cached_message_hashes.extend(self._messages)
        state.widget_states.widgets.add(id=self._text, string_value=text)
        await self._socket.send(message.SerializeToString())

    async def answer(self) -> Answer:
        """All that comes up to the end of a run; a run that was given up for a newer one is no end."""
        answer = Answer()
        while True:
            message = await self.message(answer)
            if message.WhichOneof("type") == "script_finished":
                if message.script_finished in ENDS:
                    return answer
                if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    raise Lost(f"the run ended with status {message.script_finished}")

    async def message(self, answer: Answer) -> ForwardMsg:
        """The next message, put down in the answer."""
        try:
            content = await self._socket.recv()
        except websockets.ConnectionClosed as error:
            raise Lost(f"the connection was closed: {error}") from None
        answer.bytes += len(content)
        message = self._whole(ForwardMsg.FromString(content))
        if message.WhichOneof("type") == "new_session":
            self._page = message.new_session.page_script_hash
        elif message.WhichOneof("type") == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._element(message.delta, answer)
        return message

    def _whole(self, message: ForwardMsg) -> ForwardMsg:
        """The message, or the one that it refers to, as the page's own cache finds it."""
        kind = message.WhichOneof("type")
        if kind == "script_finished":
            self._runs += 1
            self._messages = {key: held for key, held in self._messages.items() if self._runs - held[1] <= KEPT}
        key = message.ref_hash if kind == "ref_hash" else message.hash
        whole = self._messages[key][0] if kind == "ref_hash" else message
        if whole.metadata.cacheable:
            self._messages[key] = (whole, self._runs)
        return whole

    def _element(self, delta, answer: Answer) -> None:
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "text_input" and element.text_input.id.endswith("-text"):
            self._text, self._fragment = element.text_input.id, delta.fragment_id
        elif kind == "bidi_component" and "heatmaps" in element.bidi_component.id:
            answer.heatmaps = chart_text(element.bidi_component)
        elif kind == "alert":
            answer.problems.append(element.alert.body)
        elif kind == "exception":
            answer.problems.append(element.exception.message)
        elif kind == "markdown":
            answer.captions.append(element.markdown.body)
