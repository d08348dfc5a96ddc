"""What hostile visitors without a browser share: runs, large values, and the server's memory after they have left."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from client import Client
from processes import memories
from streamlit.proto.BackMsg_pb2 import BackMsg

LEFT = 1  # s that the server of a test holds who has left, whom config.toml lets it hold for longer
CLEANED = LEFT + 4.5  # s after which warm_up.py has looked for who has left, and collected what was theirs
WAIT = 300  # s at most, never waited in full


def run(work):
    """In a thread of its own: where browser tests ran before in this process, its main thread has a loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, asyncio.wait_for(work, WAIT)).result()


def sentence_of(client: Client, text: str, count: int = 1) -> bytes:
    back_message = BackMsg()
    state = back_message.rerun_script
    state.page_script_hash, state.fragment_id = client._page, client._fragment
    state.widget_states.widgets.add(id=client._text, string_value=text)
    for number in range(count - 1):
        state.widget_states.widgets.add(id=f"{client._text}-{number}", string_value="x")
    return back_message.SerializeToString()


async def settled(pid: int, wanted: float = 0) -> int:
    """MB of the server's process after its visitors have left: once it is what is wanted, or no longer falls, or half a
    minute later."""
    end = time.monotonic() + 30
    if not wanted:
        await asyncio.sleep(CLEANED)
    last = memories(pid)[0]
    while time.monotonic() < end and last > wanted:
        await asyncio.sleep(0.2 if wanted else 2)
        before, last = last, memories(pid)[0]
        if not wanted and last >= before:
            break
    return last
