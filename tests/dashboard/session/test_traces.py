"""The cache of traces: what is asked for twice is computed once; its size is bounded; errors are not kept."""

from concurrent.futures import Future

import numpy as np
import pytest

import attnviz
from attnviz.service import Request
from dashboard.session.traces import Traces, size

TRACE = attnviz.from_arrays([np.full((1, 2, 2), 0.5)], ["a", "b"], ["c", "d"])


class Waiting:
    """A service that answers when the test does."""

    def __init__(self):
        self.submitted = []

    def submit(self, requests):
        futures = [Future() for _ in requests]
        self.submitted += zip(requests, futures, strict=True)
        return futures


@pytest.fixture
def service():
    return Waiting()


def request(text):
    return Request("en-fr/bahdanau", text)


def answer(service, place, value=TRACE):
    future = service.submitted[place][1]
    assert future.set_running_or_notify_cancel()
    future.set_exception(value) if isinstance(value, Exception) else future.set_result(value)


def test_two_who_ask_the_same_share_one_computation(service):
    traces = Traces(lambda: service, 10**9)
    first, second = traces.ask([request("x"), request("y")]), traces.ask([request("y")])
    assert [submitted.text for submitted, _ in service.submitted] == ["x", "y"]
    assert not second.done(0)
    answer(service, 1)
    assert second.done(0) and not first.done(0)
    answer(service, 0)
    assert first.done(0)
    assert traces.get(request("x")) is TRACE and len(service.submitted) == 2


def test_only_what_nobody_waits_for_any_more_is_cancelled(service):
    traces = Traces(lambda: service, 10**9)
    first, second = traces.ask([request("x")]), traces.ask([request("x")])
    first.release()
    assert not service.submitted[0][1].cancelled()
    second.release()
    second.release()
    assert service.submitted[0][1].cancelled()
    traces.ask([request("x")])
    assert len(service.submitted) == 2


def test_an_error_is_raised_and_not_kept(service):
    traces = Traces(lambda: service, 10**9)
    requested = traces.ask([request("x")])
    answer(service, 0, ValueError("the text is empty"))
    with pytest.raises(ValueError, match="^the text is empty$"):
        requested.futures[0].result()
    traces.ask([request("x")])
    assert len(service.submitted) == 2


def test_the_cache_is_bounded_and_lets_go_of_what_was_not_used_for_longest(service):
    traces = Traces(lambda: service, 2 * size(TRACE))
    for place, text in enumerate("xyz"):
        traces.ask([request(text)])
        answer(service, place)
        traces.ask([request("x")])  # used again and again
    assert traces.bytes == 2 * size(TRACE)
    assert [key.text for key in traces._futures] == ["z", "x"]
    traces.ask([request("y")])
    assert len(service.submitted) == 4


def test_small_traces_are_bounded_by_their_number(service):
    traces = Traces(lambda: service, 10**9, many=2)
    for place, text in enumerate("xyz"):
        traces.ask([request(text)])
        answer(service, place)
    assert traces.bytes == 2 * size(TRACE)
    traces.ask([request("z"), request("y")])
    assert len(service.submitted) == 3  # both are there
    traces.ask([request("x")])
    assert len(service.submitted) == 4


def test_one_trace_larger_than_the_cache_is_still_handed_over(service):
    traces = Traces(lambda: service, 0)
    requested = traces.ask([request("x")])
    answer(service, 0)
    assert requested.futures[0].result() is TRACE
    assert len(traces._futures) == 1
    traces.ask([request("y")])
    answer(service, 1)
    assert [key.text for key in traces._futures] == ["y"]


def test_what_is_made_here_is_in_the_same_cache_by_its_bytes(service):
    traces, made = Traces(lambda: service, 2 * size(TRACE)), []

    def maker():
        made.append("made")
        return TRACE

    assert traces.make("own", maker, size) is TRACE is traces.make("own", maker, size)
    traces.ask([request("x")])
    answer(service, 0)
    assert (len(made), traces.bytes) == (1, 2 * size(TRACE))
    assert traces.make("twice as large", maker, lambda trace: 2 * size(trace)) is TRACE
    assert traces.bytes == 2 * size(TRACE) and list(traces._futures) == ["twice as large"]
    with pytest.raises(ZeroDivisionError):
        traces.make("wrong", lambda: 1 / 0, size)
    assert traces.make("wrong", maker, size) is TRACE
