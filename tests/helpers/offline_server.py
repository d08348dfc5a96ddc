"""A real server of which anything that leaves loopback is refused, written down, and a failure."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import serving

HOOK = Path(__file__).with_name("offline")
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@dataclass(frozen=True)
class Server:
    """address : `http://localhost:PORT`. log : of what tried to leave the machine, a line each."""

    address: str
    process: int
    log: Path

    @property
    def host(self) -> str:
        return self.address.removeprefix("http://")

    @property
    def left(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def ask(
        self, path: str = "/", method: str = "GET", body: bytes | None = None, **headers: str | None
    ) -> HTTPResponse:
        """One request; `Host` is the server's unless said otherwise, and left out where None.

        The answer has been read.
        """
        connection = HTTPConnection(self.host, timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        given = {"Host": self.host} | headers | ({"Content-Length": str(len(body))} if body else {})
        for name, value in given.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(body)
        answer = connection.getresponse()
        if answer.status != 101:
            answer.text = answer.read().decode("utf-8", "replace")
        connection.close()
        return answer

    def open_socket(self, **headers: str | None) -> int:
        """The status that a browser gets for the page's WebSocket: 101 when it is opened."""
        return self.ask("/_stcore/stream", **(WEBSOCKET | headers)).status


@contextlib.contextmanager
def offline_server(log: Path, **environment: str) -> Iterator[Server]:
    with serving.running(PYTHONPATH=str(HOOK), LEFT_LOOPBACK=str(log), **environment) as (address, process):
        yield Server(address, process, log)
