"""Many people at one real server: the queue, a sentence typed again, a model process that dies, an overload."""

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import tiny
from client import Answer, Client
from processes import models

TEXTS = [f"The {colour} {noun} runs." for colour in tiny.COLOURS for noun in tiny.NOUNS]
WAIT = 300  # s at most, never waited in full
pytestmark = pytest.mark.xdist_group("people")


def run(work):
    """In a thread of its own: where browser tests ran before in this process, its main thread has a loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, asyncio.wait_for(work, WAIT)).result()


async def shown(client: Client, wanted: str) -> Answer:
    """Read on until the page shows these words."""
    answer = Answer()
    while not any(wanted in caption for caption in answer.captions):
        await client.message(answer)
    return answer


def test_who_waits_is_told_so_and_a_sentence_typed_again_replaces_the_first(server):
    address, pid = server

    async def work():
        async with Client(address) as first, Client(address) as second:
            assert (await first.open()).problems == [] and (await second.open()).problems == []
            os.kill(models(pid), signal.SIGSTOP)
            await first.send(TEXTS[0])
            await shown(first, "You are next.")
            await second.send(TEXTS[1])
            await shown(second, "Place 2 in the queue: 1 person is ahead of you.")
            await first.send(TEXTS[2])
            await shown(second, "You are next.")  # who types again waits behind those who have come meanwhile
            os.kill(models(pid), signal.SIGCONT)
            answers = await first.answer(), await second.answer()
            return answers, (await first.type(TEXTS[2]), await first.type(TEXTS[1]))

    answers, alone = run(work())
    assert [answer.problems for answer in (*answers, *alone)] == [[]] * 4
    assert [answer.heatmaps for answer in answers] == [answer.heatmaps for answer in alone]
    assert alone[0].heatmaps != alone[1].heatmaps


def test_a_model_process_that_dies_is_started_again_and_the_page_says_so(server):
    address, pid = server

    async def work():
        async with Client(address) as client:
            await client.open()
            first = models(pid)
            os.kill(first, signal.SIGSTOP)
            await client.send(TEXTS[3])
            await shown(client, "You are next.")
            os.kill(first, signal.SIGKILL)
            await shown(client, "It is being started again; your sentence is kept.")
            return first, await client.answer()

    first, answer = run(work())
    assert answer.problems == [] and answer.heatmaps
    assert models(pid) != first


def test_an_overload_is_answered_and_leaves_the_server_as_before(server):
    address, _ = server

    async def person(number: int) -> list[Answer]:
        async with Client(address) as client:
            await client.open()
            return [await client.type(TEXTS[(number + turn) % len(TEXTS)]) for turn in range(2)]

    async def work():
        many = await asyncio.gather(*(person(number) for number in range(15)))
        return many, await person(0)

    many, after = run(work())
    assert [answer.problems for answers in many for answer in answers] == [[]] * 30
    assert all(answer.heatmaps for answers in many for answer in answers)
    assert all(answer.problems == [] for answer in after) and not after[1].queued
