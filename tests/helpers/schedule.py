"""Which tests share a process, and which begin first, when several processes run them (pytest-xdist)."""

from xdist.scheduler import LoadGroupScheduling

# What takes long begins first, so that all processes end together. Those with a browser, which waits at times, are
# apart from each other: beside each runs what computes.
FIRST = ("browser-compare", "ray", "hf", "browser-others", "people", "hostile-server", "nginx")


class FilesAndGroups(LoadGroupScheduling):
    """A group is one unit of work, and so are the other tests of a file: they share its fixtures. With a unit for each
    test, the processes spend as long on their talk as on small tests."""

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


def rank(groups: set[str]) -> int:
    """The place of a test of these groups among the others: less is sooner."""
    return min((FIRST.index(group) for group in groups if group in FIRST), default=len(FIRST))
