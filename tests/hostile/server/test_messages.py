"""What a visitor says over the WebSocket changes nothing for others, and holds no memory after they have left."""

import asyncio
import contextlib
import os
import signal

import pytest
import tiny
import websockets
from client import Client, Lost
from processes import family, models
from streamlit.proto.BackMsg_pb2 import BackMsg
from visitors import run, sentence_of, settled

from dashboard.server import received

TEXTS = [english for english, _ in tiny.sentences(20, 11)]
pytestmark = pytest.mark.xdist_group("public-server")


def message(**fields) -> BackMsg:
    made = BackMsg()
    for name, value in fields.items():
        if isinstance(value, bool):
            setattr(made, name, value)
        else:
            getattr(made.backend_operation_request, value).SetInParent()
    return made


DEVELOPERS = [
    message(clear_cache=True),
    message(set_run_on_save=True),
    message(stop_script=True),
    message(load_git_info=True),
    message(debug_shutdown_runtime=True),
    message(operation="install_skills"),
    message(operation="dismiss_skills_nudge"),
]


def test_messages_for_developers_of_a_page_are_dropped(public):
    """`clear_cache` and a new run left a process of the models behind, each time."""
    address, pid = public

    async def work():
        async with Client(address) as client:
            await client.open()
            before = sorted(family(pid))
            for back_message in DEVELOPERS * 3:
                await client._socket.send(back_message.SerializeToString())
                answer = await client.type(TEXTS[0])
                assert answer.problems == [] and answer.heatmaps
            return before, sorted(family(pid))

    before, after = run(work())
    assert after == before


@pytest.mark.parametrize("back_message", DEVELOPERS, ids=lambda back_message: str(back_message.WhichOneof("type")))
def test_what_is_dropped(back_message):
    content = back_message.SerializeToString()
    assert not received._is_allowed(received._read({"type": "websocket.receive", "bytes": content}))


LARGE = [(24_000_000, 1), (1_000_000, 1), (10, 200_000), (250_000, 900)]  # bytes of the sentence, and values in all


def test_large_messages_are_held_by_nobody(public):
    """Twelve visitors with 24 MB in the field of the sentence took 900 MB, and 320 stayed."""
    address, pid = public

    async def visit(size: int = 10, count: int = 1):
        async with Client(address) as client:
            await client.open()
            with contextlib.suppress(Lost, websockets.ConnectionClosed):
                await client._socket.send(sentence_of(client, "a" * size, count))
                await client.answer()

    async def work():
        await asyncio.gather(*(visit() for _ in range(3)))  # what the first visitors bring to memory stays
        before = await settled(pid)
        await asyncio.gather(*(visit(*large) for large in LARGE * 3))
        return before, await settled(pid, before * 1.1)

    before, after = run(work())
    assert after <= before * 1.1


def value(size: int, number: int = 0) -> bytes:
    """A message that sets the value of a widget to so many bytes."""
    back_message = BackMsg()
    back_message.rerun_script.widget_states.widgets.add(id=f"{number}", string_value="a" * size)
    return back_message.SerializeToString()


async def refused(guard: received.Messages, messages: list[list[bytes]]) -> list[int]:
    """Visitors, each of whom says something and stays -> which of them were refused."""
    gone, numbers = asyncio.Event(), []

    async def listen(scope, receive, send):
        while (await receive())["type"] != "websocket.disconnect":
            pass

    async def visit(number: int, contents: list[bytes]) -> None:
        coming = iter(contents)

        async def receive():
            if content := next(coming, None):
                return {"type": "websocket.receive", "bytes": content}
            await gone.wait()
            return {"type": "websocket.disconnect"}

        async def send(message):
            numbers.append(number)

        await guard({"type": "websocket"}, receive, send)

    guard.app = listen
    visits = [asyncio.create_task(visit(number, contents)) for number, contents in enumerate(messages)]
    await asyncio.sleep(0.1)
    gone.set()
    await asyncio.gather(*visits)
    return numbers


def small_guard() -> received.Messages:
    guard = received.Messages(None)
    guard.budget.most = int(8.5 * SIZE)
    return guard


HEARTBEAT = message(app_heartbeat=True).SerializeToString()
SIZE = 500_000


@pytest.mark.parametrize("after", [[HEARTBEAT], [value(9, 1)], []], ids=["heartbeat", "other value", "nothing"])
def test_a_large_value_counts_until_its_visitor_has_left(after, monkeypatch):
    """After any other message the server held it still and no longer counted it."""
    monkeypatch.setattr(received, "STAYS", 0.1)
    guard, room = small_guard(), 8
    messages = [[value(SIZE), *after] for _ in range(room + 5)] + [[value(9)]] * 3

    async def work():
        numbers = await refused(guard, messages)
        held = guard.budget.held
        await asyncio.sleep(0.3)
        return numbers, held

    numbers, held = run(work())
    assert len(numbers) == 5 and max(numbers) < room + 5  # who says little is not refused
    assert held > SIZE * room and guard.budget.held == 0


def test_values_that_are_exchanged_count_once():
    assert run(refused(small_guard(), [[value(SIZE), value(9)] * 20])) == []
    assert run(refused(small_guard(), [[value(SIZE, number) for number in range(9)]])) == [0]


def test_the_next_visitor_is_answered(public):
    async def work():
        async with Client(public[0]) as client:
            await client.open()
            return await client.type(TEXTS[1])

    assert run(work()).problems == []


def test_models_that_are_stopped_are_said_and_replaced(public):
    """All visitors waited for a minute, or for good."""
    address, pid = public

    async def work():
        async with Client(address) as first, Client(address) as second:
            await first.open(), await second.open()
            stopped = models(pid)
            os.kill(stopped, signal.SIGSTOP)
            await first.send(TEXTS[2])
            await second.send(TEXTS[3])
            answers = await first.answer(), await second.answer()
            after = await first.type(TEXTS[4])
            return stopped, *answers, after

    stopped, first, second, after = run(work())
    assert first.problems == second.problems == after.problems == []
    assert first.heatmaps and second.heatmaps
    assert any("The models have not answered for 5 seconds." in caption for caption in first.captions)
    assert stopped not in family(pid)
