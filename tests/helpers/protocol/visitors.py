"""What hostile visitors without a browser share: runs, large values, and the server's memory after they have left."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from client import Client
from processes import memories
from streamlit.proto.BackMsg_pb2 import BackMsg

LEFT = 12  # s: longer than config.toml lets the server hold who has left
WAIT = 300  # s at most, never waited in full


def run(work):
    """In a thread of its own: where browser tests ran before in this process, its main thread has a loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, asyncio.wait_for(work, WAIT)).result()


def sentence_of(client: Client, text: str, count: int = 1) -> bytes:
    told = BackMsg()
    state = told.rerun_script
    state.page_script_hash, state.fragment_id = client._page, client._fragment
    state.widget_states.widgets.add(id=client._text, string_value=text)
    for number in range(count - 1):
        state.widget_states.widgets.add(id=f"{client._text}-{number}", string_value="x")
    return told.SerializeToString()


async def settled(pid: int, wanted: float = 0) -> int:
    """MB of the server's process after its visitors have left: once it is what is wanted or does not change, or half a
    minute later."""
    await asyncio.sleep(LEFT)
    last = 0
    for _ in range(10):
        if memories(pid)[0] <= max(wanted, 0 if wanted else last):
            break
        last = memories(pid)[0]
        await asyncio.sleep(2)
    return memories(pid)[0]
