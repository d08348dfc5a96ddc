"""Files that visitors upload: a few, small enough together, and gone when the visitor has gone."""

import asyncio
import threading

import pytest
from client import Client
from offline_server import Server
from processes import memories
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from visitors import run, settled

from dashboard.server import received

MB = 2**20
pytestmark = pytest.mark.xdist_group("public-server")


async def addresses(client: Client, count: int) -> list[str]:
    """Where so many files of a visitor may be sent."""
    back_message = BackMsg()
    back_message.file_urls_request.request_id = "1"
    back_message.file_urls_request.file_names.extend(["a.json"] * count)
    await client._socket.send(back_message.SerializeToString())
    while True:
        content = await client._socket.recv()
        message = ForwardMsg.FromString(content)
        if message.WhichOneof("type") == "file_urls_response":
            return [file.upload_url for file in message.file_urls_response.file_urls]


def put(address: str, path: str, size: int) -> tuple[int, str]:
    """Send a file of so many bytes -> the status, and the text of the answer."""
    frame = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.json"\r\n\r\n'
    server = Server(address, 0, None)
    headers = {"Content_Type": "multipart/form-data; boundary=x", "Origin": address, "X_Xsrftoken": TOKEN}
    answer = server.ask(
        path, "PUT", frame + bytes(size) + b"\r\n--x--\r\n", **headers, Cookie=f"_streamlit_xsrf={TOKEN}"
    )
    return answer.status, answer.text


TOKEN = "2|00000000|" + "0" * 32 + "|1700000000"


def test_a_visitor_s_files_are_bounded_and_go_with_them(public):
    """Five files of 190 MB were taken, and stayed for more than a minute after the visitor had left."""
    address, pid = public

    async def work():
        async with Client(address) as client:
            await client.open()
        before = await settled(pid, 0)
        async with Client(address) as client:
            await client.open()
            paths = await addresses(client, 6)
            large = await asyncio.to_thread(put, address, paths[0], 65 * MB)
            some = [await asyncio.to_thread(put, address, path, 12 * MB) for path in paths]
            held = memories(pid)[0]
        return before, large, some, held, await settled(pid, before * 1.1)

    before, large, some, held, after = run(work())
    assert large[0] == 413 and "may have 64 MB together" in large[1]
    assert [status for status, _ in some] == [204] * received.FILES + [413] * 2
    assert some[-1][1] == "Refused: a visitor may upload 4 files; take one away on the page first\n"
    assert held - before < 4 * 12 + 30 and after <= before * 1.1


def test_a_file_without_a_length_and_files_at_once_are_counted(public):
    """Chunked, so that only what has come tells how large it is."""
    address, _ = public

    async def work():
        async with Client(address) as client:
            await client.open()
            paths = await addresses(client, 8)
            answers: list[tuple[int, str]] = []
            threads = [
                threading.Thread(target=lambda path=path: answers.append(put(address, path, 10 * MB))) for path in paths
            ]
            for thread in threads:
                thread.start()
            await asyncio.to_thread(lambda: [thread.join() for thread in threads])
            return [status for status, _ in answers]

    assert sorted(run(work())).count(204) <= received.FILES
