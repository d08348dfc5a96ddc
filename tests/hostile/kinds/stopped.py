"""The process of the models is stopped or killed while visitors wait: they are answered, and one such process stays."""

import asyncio
import contextlib
import os
import signal
import time

import processes
from client import Client
from hypothesis import strategies as st

from tests.hostile.kinds.visitors import Server, around, next_visitor
from tests.hostile.workplace import Failure, Workplace

__all__ = ["around"]
WARM = ("SIGKILL", 1, 0.0)
SIGNALS = ("SIGSTOP", "SIGKILL", "SIGTERM", "SIGSEGV")
SECONDS = 80  # for an answer: after 15 of silence another process takes over


def strategy():
    return st.tuples(st.sampled_from(SIGNALS), st.integers(1, 4), st.floats(0, 0.3))


def check(place: Workplace, case) -> None:
    """case : the signal, visitors who wait, and when after their sentence it comes."""
    asyncio.run(stop(place.around, *case))
    asyncio.run(next_visitor(place.around))
    members = [processes.command(pid) for pid in processes.family(place.around.pid)]
    if sum("attnviz.service.process" in command for command in members) > 2:
        raise Failure(f"too many processes: {members}")


async def stop(server: Server, name: str, count: int, seconds: float) -> None:
    async with asyncio.timeout(SECONDS), contextlib.AsyncExitStack() as stack:
        visitors = [await stack.enter_async_context(Client(server.address)) for _ in range(count)]
        for visitor in visitors:
            await visitor.open()
        for visitor in visitors:
            await visitor.send(next(server.texts))
        await asyncio.to_thread(time.sleep, seconds)
        for pid in processes.family(server.pid)[1:]:
            if "attnviz.service.process" in processes.command(pid):
                os.kill(pid, getattr(signal, name))
        for visitor in visitors:
            answer = await visitor.answer()
            if answer.problems or not answer.heatmaps:
                raise Failure(f"{name}: a visitor reads {answer.problems!r:.300}")
