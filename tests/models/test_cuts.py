"""Where batches begin and end: with the least work, and none larger than allowed."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from attnviz.models import batches

lengths = st.tuples(st.integers(1, 30), st.integers(1, 30))


def work(given, cuts):
    """Pieces, padding included, and the start of each batch."""
    return sum((end - start) * sum(max(side) for side in zip(*given[start:end])) + batches.START for start, end in cuts)


def partitions(count, batch_size):
    """Every way to cut a list of that length."""
    for inner in itertools.product((False, True), repeat=count - 1):
        ends = [place for place, cut in enumerate(inner, start=1) if cut] + [count]
        cuts = list(zip([0, *ends], ends))
        if max(end - start for start, end in cuts) <= batch_size:
            yield cuts


@given(st.lists(lengths, min_size=1, max_size=8), st.integers(1, 5))
def test_no_other_cuts_are_less_work(given, batch_size):
    given.sort()
    cuts = batches._cuts(given, batch_size)
    assert work(given, cuts) == min(work(given, other) for other in partitions(len(given), batch_size))


def test_a_batch_of_long_texts_is_small():
    longest = batches.PIECES // 2
    assert batches._cuts([(longest, longest)] * 3, 32) == [(0, 1), (1, 2), (2, 3)]
    assert batches._cuts([(1, 1)] * 3 + [(longest, longest)], 32) == [(0, 3), (3, 4)]
    assert batches._cuts([(10, 10)] * 70, 32)[0] == (0, 32) and batches._cuts([], 32) == []
