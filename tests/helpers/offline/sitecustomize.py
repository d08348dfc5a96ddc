"""Python runs this first in every process that has this folder on its PYTHONPATH: nothing leaves the machine unseen.

Each address beyond loopback that a process connects to, sends to or looks up is refused, and written as a line to the
file that the environment variable LEFT_LOOPBACK names.
"""

import ipaddress
import os
import sys

_CALLS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}


def _is_here(host) -> bool:
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host).is_loopback
    except ValueError:  # a name
        return False


def _watch(event: str, arguments: tuple) -> None:
    if event not in _CALLS:
        return
    address = arguments[_CALLS[event]]
    if event.startswith("socket.get"):
        host = address
    elif isinstance(address, tuple):
        host = address[0]
    else:
        return  # a Unix socket, or one that is connected already
    if not _is_here(host):
        with open(os.environ["LEFT_LOOPBACK"], "a", encoding="utf-8") as log:
            log.write(f"{event} {address!r} by {' '.join(sys.argv[:3])}\n")
        raise ConnectionRefusedError(f"{event} to {address!r}: tests stay on this machine")


if "LEFT_LOOPBACK" in os.environ:
    sys.addaudithook(_watch)
