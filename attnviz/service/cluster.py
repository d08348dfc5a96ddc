"""The model service as a Ray Serve deployment: replicas on a cluster, each gathers its requests into batches.

Ray is an extra, `pip install -e '.[ray]'`. Several page servers share one deployment, which outlives them.
https://docs.ray.io/en/latest/serve/advanced-guides/dyn-req-batch.html
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from attnviz import corpus
from attnviz.models.names import is_hugging_face
from attnviz.service.batch import Answer, Models, answers
from attnviz.service.connection import frozen
from attnviz.service.embedded import CLOSED, Guests
from attnviz.service.request import GATHER, MOST, RESTARTING, RUNNING, STARTING, Busy, Limits, Request, ServiceError

try:
    from ray import serve
    from ray.exceptions import RayError
    from ray.serve.exceptions import RayServeException
except ImportError:
    raise ServiceError("ATTNVIZ_RAY needs Ray; install it with: pip install -e '.[ray]'") from None

NAME = "attnviz"  # of the application on the cluster
THREADS = 64  # requests of one page server that are on their way at once
TRIES = 2
PAUSE = 0.5  # s before a request is made again, while a replica is replaced


@serve.deployment(name="models", max_ongoing_requests=2 * MOST, health_check_period_s=5, health_check_timeout_s=30)
class Replica:
    """The models of one replica. It computes one batch at a time; meanwhile the next one is gathered."""

    def __init__(self):
        torch.set_num_threads(1)
        self.models = Models()

    @serve.batch(max_batch_size=MOST, batch_wait_timeout_s=GATHER)
    async def __call__(self, requests: list[Request]) -> list[Answer]:
        """The answer to each request, in their order."""
        return await asyncio.to_thread(self._answers, requests)

    def _answers(self, requests: list[Request]) -> list[Answer]:
        torch.set_num_threads(1)  # of this thread
        by_place = dict(answers(self.models, requests))
        return [by_place[place] for place in range(len(requests))]

    def check_health(self) -> None:
        """Called regularly by Ray Serve. Raises if a matrix product is wrong; the replica is then replaced."""
        if not torch.equal(torch.ones(2, 2) @ torch.ones(2, 2), torch.full((2, 2), 2.0)):
            raise RuntimeError("the processor of this replica computes wrong numbers")


class Cluster:
    """A `Service`. address : of a Ray cluster, or `auto`. replicas : their number, if none run yet.

    Raises ServiceError if there is no such cluster.
    """

    def __init__(self, address: str, replicas: int = 1, limits: Limits | None = None):
        self.limits = limits or Limits()
        self.state = STARTING
        self._open = 0
        self._closed = False
        self._handle = _handle(address, replicas)
        self._threads = ThreadPoolExecutor(THREADS, "model service")
        self._guests = Guests(self.limits)  # their files are on this machine
        self.state = RUNNING

    def submit(self, requests: Sequence[Request]) -> list[Future]:
        """See `Service`."""
        if self._closed:
            raise ServiceError(CLOSED)
        if self._open + len(requests) > self.limits.waiting:
            raise Busy(f"{self._open} sentences are waiting for the models already; try again in a minute")
        futures = []
        for request in requests:
            if is_hugging_face(request.model):
                futures.append(self._guests.ask(request))
                continue
            self._open += 1
            futures.append(self._threads.submit(self._ask, request))
            futures[-1].add_done_callback(self._done)
        return futures

    def stop(self, future: Future) -> None:
        """See `Service`."""
        self._guests.stop(future)

    def state_of(self, futures: Collection[Future]) -> str:
        """See `Service`. Replicas gather requests themselves, so the state is the same for all."""
        return self._guests.state if self._guests.has(futures) else self.state

    def close(self) -> None:
        """See `Service`. The deployment stays: other page servers may use it."""
        self._closed = True
        self._guests.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, future: Future) -> None:
        self._open -= 1

    def _ask(self, request: Request) -> Answer:
        tries = 0
        while True:
            tries += 1
            try:
                answer = self._handle.remote(request).result(timeout_s=self.limits.request)
            except TimeoutError:
                raise ServiceError(self._late()) from None
            except (RayError, RayServeException) as error:
                if tries == TRIES or self._closed:
                    raise ServiceError(f"the models on the cluster cannot be reached: {type(error).__name__}") from None
                self.state = RESTARTING
                time.sleep(PAUSE)
                continue
            self.state = RUNNING
            if isinstance(answer, str):
                raise ValueError(answer)
            return frozen(answer)

    def _late(self) -> str:
        limit = self.limits.request
        if self.state == RESTARTING:
            return f"the models on the cluster were lost, and are not back after {limit:g} s; try again in a minute"
        return f"the models needed more than {limit:g} s for this sentence; shorten it"


def _handle(address: str, replicas: int):
    """The running deployment; it is created if there is none."""
    try:
        corpus.join_cluster(address, namespace=NAME)
    except ValueError as error:
        raise ServiceError(str(error)) from None
    serve.start(proxy_location="Disabled")
    if NAME not in serve.status().applications:
        deployment: Any = Replica  # `serve.deployment` made one of the class
        serve.run(deployment.options(num_replicas=replicas).bind(), name=NAME, route_prefix=None)
    return serve.get_app_handle(NAME)
