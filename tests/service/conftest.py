"""Requests of the tiny models, and services that are closed after the tests."""

import pytest

from attnviz.service import Request
from attnviz.service.embedded import Embedded


@pytest.fixture(scope="session")
def ask(root):
    """ask(text, mechanism) -> a request of a tiny model."""
    return lambda text, mechanism="bahdanau", **more: Request(f"en-fr/{mechanism}", text, root=str(root), **more)


@pytest.fixture(scope="module")
def service():
    """A model process for the tests of a file, which may harm it: it recovers."""
    service = Embedded()
    yield service
    service.close()
