"""Memory of what visitors hold, by bytes: one visitor's share, all visitors' sum, and equal parts when it is full."""

import gc
import sys

import numpy as np
import pytest

import attnviz
from dashboard.session.memory import NoRoom, VisitorMemory, sizes
from dashboard.session.traces import TOKEN, size

BYTES = 4 * 10 * 10 + 20 * TOKEN


def trace(heads: int = 1):
    return attnviz.from_arrays(
        [np.full((heads, 10, 10), 0.1, dtype=np.float32)], list("abcdefghij"), list("klmnopqrst")
    )


def test_the_bytes_of_a_trace():
    assert size(trace()) == BYTES and size(trace(3)) == 3 * 400 + 20 * TOKEN
    assert size(("ab", "é")) == sum(map(sys.getsizeof, ("ab", "é")))  # translations that were drawn


def test_a_trace_is_counted_once_and_as_long_as_somebody_has_it():
    space, shared = VisitorMemory(10 * BYTES, 100 * BYTES), trace()
    first, second = space.visitor(), space.visitor()
    assert first.show("compare", sizes([shared, shared])) == [] == second.show("compare", sizes([shared]))
    assert (space.held, first.held, second.held) == (BYTES, BYTES, BYTES)
    del shared
    gc.collect()
    assert space.held == 0


def test_one_who_wants_more_than_their_share_is_told_so_and_keeps_what_they_had():
    space = VisitorMemory(3 * 2**20, 100 * 2**20)
    visitor, small, large = space.visitor(), trace(), trace(10_000)
    visitor.show("heads", sizes([small]))
    with pytest.raises(NoRoom) as error:
        visitor.show("heads", sizes([large]))
    assert str(error.value) == (
        "this needs 3.8 MB of the server's memory, and each visitor may use 3.0 MB now; "
        "use shorter or fewer texts, or choose fewer models"
    )
    assert visitor.held == BYTES


def test_other_pages_let_go_the_oldest_first():
    space, traces = VisitorMemory(2 * BYTES, 100 * BYTES), [trace() for _ in range(4)]
    visitor = space.visitor()
    for page, shown_trace in zip(("a", "b", "a"), traces):
        assert visitor.show(page, sizes([shown_trace])) == []
    assert visitor.show("c", sizes(traces[3:])) == ["b"]  # a was shown after it
    assert visitor.held == 2 * BYTES


def test_when_memory_is_full_each_may_have_an_equal_part_and_small_texts_go_on():
    space = VisitorMemory(100 * BYTES, 10 * BYTES)
    greedy, modest = space.visitor(), space.visitor()
    large = [trace() for _ in range(9)]
    assert greedy.show("heads", sizes(large)) == []  # there is room
    mine = [trace() for _ in range(4)]
    assert modest.show("compare", sizes(mine)) == []
    assert (space.held, space.limit) == (13 * BYTES, 5 * BYTES)
    with pytest.raises(NoRoom):
        greedy.show("heads", sizes(large[:6]))
    assert greedy.show("heads", sizes(large[:4])) == []
    del large[4:]
    gc.collect()
    assert space.limit == 100 * BYTES


def test_visitors_who_have_left_take_no_part():
    space, held = VisitorMemory(100 * BYTES, BYTES), [trace(), trace()]
    for held_trace in held:
        space.count(held_trace, BYTES)
    visitors = [space.visitor() for _ in range(4)]
    assert space.limit == BYTES // 4
    del visitors[1:]
    gc.collect()
    assert space.limit == BYTES
