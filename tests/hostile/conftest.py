"""A server of which nothing may leave this machine."""

import pytest
from offline_server import offline_server


@pytest.fixture(scope="session")
def watched(tmp_path_factory):
    """One server for the hostile tests of a process; it fails if anything has left loopback."""
    with offline_server(tmp_path_factory.mktemp("offline") / "left.log") as server:
        yield server
        assert server.left == ""
