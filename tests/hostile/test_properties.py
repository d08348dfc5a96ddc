"""The fast run: a few cases of each kind. `python -m tests.hostile` runs thousands, in processes with limits."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.hostile import cases

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
COUNT = {
    "texts": 20,
    "arguments": 25,
    "configs": 25,
    "cards": 12,
    "traces": 40,
    "arrays": 40,
    "tokenizers": 20,
    "foreign": 4,
    "links": 4,
    "api": 40,
    "writing": 40,
    "own": 5,
    "pairs": 8,
    "lessons": 25,
    "runs": 6,
    "visitors": 15,
    "pages": 2,
}
ELSEWHERE = {"stopped"}  # server/test_messages.py stops the process of the models


def test_every_kind_has_a_fast_run():
    assert COUNT.keys() | ELSEWHERE == cases.KINDS.keys() == cases.SHARES.keys()


@pytest.fixture(scope="module")
def thread():
    """Other tests may have left a browser's loop running in this one. Hypothesis looks through the memory of the
    process for each new thread."""
    with ThreadPoolExecutor(1) as thread:
        yield thread


@pytest.mark.parametrize("kind", COUNT)
def test_hostile_input(kind, thread, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", "")  # `prepared` sets it
    reports = []
    thread.submit(cases.run, kind, 1, COUNT[kind], tmp_path, lambda **what: reports.append(what)).result()
    failed = [(before["case"], now["failed"]) for before, now in itertools.pairwise(reports) if "failed" in now]
    assert not failed and len(reports) == COUNT[kind]
