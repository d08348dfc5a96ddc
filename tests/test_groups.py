"""Tests of one group share a process, with its server and its browser. pytest-xdist marks them in their names. Where it
does not know the version of pytest it says nothing, and each process starts everything again: pytest-xdist 3.8 with
pytest 9.2 (github.com/pytest-dev/pytest-xdist/issues/1386)."""

import pytest
import schedule


@pytest.mark.xdist_group("one-process")
def test_a_group_stays_in_one_process(request):
    if not hasattr(request.config, "workerinput"):
        pytest.skip("all tests run in one process (-n 0)")
    assert request.node.nodeid.endswith("@one-process")


def test_the_tests_of_a_file_or_of_a_group_are_one_unit_of_work():
    unit = schedule.FilesAndGroups._split_scope
    scheduler = object.__new__(schedule.FilesAndGroups)
    assert unit(scheduler, "tests/a/test_b.py::test_c[x::y@z]") == "tests/a/test_b.py"
    assert unit(scheduler, "tests/a/test_b.py::test_c[x@y]@browser") == "browser"


def test_what_takes_long_comes_first():
    last = len(schedule.FIRST)
    assert [schedule.rank(groups) for groups in ({"ray"}, {"hf"}, {"one-process"}, set())] == [1, 2, last, last]


def test_what_needs_a_browser_a_cluster_or_a_training_is_slow():
    here = schedule.TESTS / "stats" / "test_stats.py"
    slow = [
        schedule.is_slow(here, set(), ["chrome", "page"]),
        schedule.is_slow(here, {"ray"}, []),
        schedule.is_slow(schedule.TESTS / "cli" / "train" / "test_train.py", set(), []),
    ]
    quick = [schedule.is_slow(here, {"one-process"}, ["root"]), schedule.is_slow(here.parent / "browser.py", set(), [])]
    assert all(slow) and not any(quick)
