"""A download that cannot be made says why, beside its button."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import app_session
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from dashboard.server import received


def answer(make=None):
    """What Streamlit answers to a click on a download button. make : makes the file; None for one that is gone."""
    files = MediaFileManager(MemoryMediaFileStorage("/media"))
    request = BackMsg().backend_operation_request
    request.deferred_file.file_id = "gone"
    if make:
        request.deferred_file.file_id = files.add_deferred(make, "text/plain", "0.1", file_name="a.txt")
    handler = app_session.DeferredFileHandler(lambda: files)
    with ThreadPoolExecutor(1) as thread:  # the browser of other tests has an event loop in this one
        return thread.submit(asyncio.run, handler.handle(request, "a session")).result()


def fails(error: Exception):
    def make() -> bytes:
        raise error

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (fails(ValueError("font must be 4 to 40 points; got 3")), "Font must be 4 to 40 points; got 3."),
        (fails(OSError(28, "No space left on device", "/tmp/secret")), "No space left on device."),
        (fails(ValueError()), "because of an error in this program. The log of the server has it."),
        (fails(KeyError("secret")), "because of an error in this program. The log of the server has it."),
        (None, "the page has changed in the meantime. Click again, or reload the page first."),
    ],
)
def test_a_file_that_cannot_be_made_says_why(monkeypatch, make, words):
    monkeypatch.setattr(app_session, "DeferredFileHandler", app_session.DeferredFileHandler)
    received.install()
    response = answer(make)
    assert response.error_msg.startswith("The file was not made") and response.error_msg.endswith(words)
    assert "secret" not in response.error_msg and not response.deferred_file.url


def test_a_file_that_is_made_has_an_address(monkeypatch):
    monkeypatch.setattr(app_session, "DeferredFileHandler", app_session.DeferredFileHandler)
    received.install()
    response = answer(lambda: b"text")
    assert response.deferred_file.url.startswith("/media/") and not response.error_msg
