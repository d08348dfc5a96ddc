"""How this process joins a Ray cluster. Ray is an extra, `pip install -e '.[ray]'`."""

import os
import socket

ANSWER = 5  # s in which a cluster takes a connection


def join(address: str, **options) -> None:
    """Join the cluster at this address (or `auto`), unless this process is in one. options : of `ray.init`.

    Ray collects statistics of its use and sends them, in a thread that never ends; here it does not, unless
    RAY_USAGE_STATS_ENABLED says so. Raises ImportError without Ray, ValueError when there is no such cluster (at once
    when nothing listens at the address: Ray itself asks again for more than a minute).
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if not ray.is_initialized():
        _check_answers(address)
        try:
            ray.init(address, log_to_driver=False, **options)
        except (ConnectionError, ValueError) as error:
            raise ValueError(f"there is no Ray cluster at {address!r}: {error}") from None


def _check_answers(address: str) -> None:
    """ValueError when the address is a host and a port that take no connection."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():  # auto, local
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"there is no Ray cluster at {address!r}: nothing answers there ({error}). Give the address that "
            "`ray start --head` printed, or start a cluster with it"
        ) from None
