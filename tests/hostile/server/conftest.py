"""A server for strangers, of tiny models, which hostile visitors come to."""

import pytest
import serving
import tiny
from visitors import LEFT


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """What it writes to standard error."""
    return tmp_path_factory.mktemp("log") / "log"


@pytest.fixture(scope="session")
def public(tmp_path_factory, log):
    """Its address, and the number of its process."""
    root = tmp_path_factory.mktemp("public") / "checkpoints"
    tiny.write_models(root)
    options = {"ATTNVIZ_CHECKPOINTS": str(root), "ATTNVIZ_PUBLIC": "1", "ATTNVIZ_ALLOW": "uploads"}
    options["STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL"] = str(LEFT)
    with log.open("wb") as file, serving.running(log=file, as_people=True, **options) as running:
        yield running
