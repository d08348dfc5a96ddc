"""Traces for many people at once: a model service in a process of its own, or on a Ray cluster. Both have one
interface; the environment decides which one `open_service()` opens. Texts of all sessions go through a model in one
batch.
"""

import math
import os

from attnviz.service import connection
from attnviz.service.request import Busy, Guest, Limits, Request, Service, ServiceError, Work

CLUSTER = "ATTNVIZ_RAY"  # the address of a Ray cluster, or `auto`

__all__ = ["CLUSTER", "Busy", "Guest", "Request", "Service", "ServiceError", "Work", "open_service", "prepare"]


def prepare() -> None:
    """Start the model process of `open_service` before all other imports, because it takes longest."""
    if not os.environ.get(CLUSTER):
        connection.start_ahead()


def open_service(rest: float = math.inf) -> Service:
    """The service that the environment names: on the Ray cluster of ATTNVIZ_RAY, else in a process of this machine,
    which ends when nobody has wanted it for `rest` seconds, and starts again with the next request.

    Raises ServiceError if there is no such cluster.
    """
    if address := os.environ.get(CLUSTER):
        from attnviz.service.cluster import Cluster

        return Cluster(address)
    from attnviz.service.embedded import Embedded

    return Embedded(limits=Limits(rest=rest))
