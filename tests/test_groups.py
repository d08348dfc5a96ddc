"""Tests of one group share a process, with its server and its browser. pytest-xdist marks them in their names. Where it
does not know the version of pytest it says nothing, and each process starts everything again: pytest-xdist 3.8 with
pytest 9.2 (github.com/pytest-dev/pytest-xdist/issues/1386)."""

import pytest


@pytest.mark.xdist_group("one-process")
def test_a_group_stays_in_one_process(request):
    if not hasattr(request.config, "workerinput"):
        pytest.skip("all tests run in one process (-n 0)")
    assert request.node.nodeid.endswith("@one-process")
