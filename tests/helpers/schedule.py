"""Which tests share a process, and which begin first, when several run them (pytest-xdist), and which are slow."""

import functools
from pathlib import Path

from xdist.scheduler import LoadGroupScheduling

# What takes long begins first, so that all processes end together. Those with a browser, which waits at times, are
# apart from each other: beside each runs what computes.
FIRST = (
    "browser-compare",
    "ray",
    "hf",
    "browser-others",
    "people",
    "hostile-server",
    "public-server",
    "nginx",
    "interrupted",
)

# Marked `slow`: these groups, what needs a browser, a server or a cluster, what trains, what runs a command or a
# person's file in a process of its own, what feeds the product hostile input, and what draws many pictures for paper.
SLOW_FIXTURES = {"chrome", "cluster"}
SLOW_PLACES = (
    "browser hostile training cli/train studies service corpus docs dashboard/server evaluation moments own export "
    "mechanisms/test_own.py cli/test_check.py cli/test_tryout.py cli/test_watch.py cli/test_process.py dashboard/train "
    "test_wheel.py"
).split()
TESTS = Path(__file__).resolve().parents[1]


class FilesAndGroups(LoadGroupScheduling):
    """A group is one unit of work, and so are the other tests of a file: they share its fixtures. With a unit for each
    test, the processes spend as long on their talk as on small tests."""

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


def is_slow(path: Path, groups: set[str], fixtures: list[str]) -> bool:
    """Is the test of this file, with these groups and fixtures, left out by `pytest -m "not slow"`?"""
    return bool(groups & set(FIRST) or SLOW_FIXTURES & set(fixtures)) or _is_slow(path)


@functools.cache
def _is_slow(path: Path) -> bool:
    return any(map(path.relative_to(TESTS).is_relative_to, SLOW_PLACES))


def rank(groups: set[str]) -> int:
    """The place of a test of these groups among the others: less is sooner."""
    return min((FIRST.index(group) for group in groups if group in FIRST), default=len(FIRST))
