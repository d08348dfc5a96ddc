"""One server of tiny models for many people and for those who wait."""

from pathlib import Path

import pytest
import serving

HELD = Path(__file__).resolve().parents[2] / "helpers" / "held"


@pytest.fixture(scope="session")
def gate(tmp_path_factory):
    """A file: while it is there, decoding with changed attention stands still."""
    return tmp_path_factory.mktemp("held") / "gate"


@pytest.fixture(scope="session")
def server(root, gate):
    """Its address, and the number of its process."""
    held = {"PYTHONPATH": str(HELD), "HELD_WHILE": str(gate)}
    with serving.running(ATTNVIZ_CHECKPOINTS=str(root), as_people=True, **held) as running:
        yield running
