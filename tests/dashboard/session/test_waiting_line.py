"""Who may compute, first come, first served, on how many processors; and what a person reads who waits."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.service.request import APART, OF_GUEST, RESTARTING, RUNNING, SILENT, STARTING
from dashboard.session.waiting_line import Full, WaitingLine, cores
from dashboard.shell import turns


def joined(line: WaitingLine, count: int):
    tickets = [line.join() for _ in range(count)]
    for ticket in tickets:
        ticket.ready()
    return tickets


def admitted_places(tickets) -> list[int]:
    return [place for place, ticket in enumerate(tickets) if ticket.admitted(0)]


def test_first_come_first_served():
    tickets = joined(WaitingLine(2, 10), 4)
    assert admitted_places(tickets) == [0, 1]
    assert [ticket.ahead for ticket in tickets] == [0, 1, 2, 3]
    tickets[1].leave()
    assert admitted_places(tickets) == [0, 1, 2]  # 1 has left; its turn was given
    assert [tickets[place].ahead for place in (0, 2, 3)] == [0, 1, 2]


def test_one_that_still_waits_for_the_models_lets_others_go_ahead():
    line = WaitingLine(1, 10)
    first, second = line.join(), line.join()
    second.ready()
    assert second.admitted(0) and not first.admitted(0)
    first.ready()
    assert not first.admitted(0)
    second.leave()
    assert first.admitted(0)


def test_one_that_gives_up_frees_its_place():
    tickets = joined(WaitingLine(1, 10), 3)
    tickets[1].leave()
    tickets[1].leave()  # twice does nothing
    assert tickets[2].ahead == 1
    tickets[0].leave()
    assert tickets[2].admitted(0)


def test_the_moment_when_the_last_one_leaves_can_be_waited_for():
    line = WaitingLine(1, 10)
    first, second = joined(line, 2)
    assert not line.empties(0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(line.empties, 60)
        first.leave()
        assert not waiting.done()
        second.leave()
        while not waiting.done():  # it may have begun to wait only now
            line.join().leave()
        assert waiting.result()


def test_a_full_line_refuses_and_recovers():
    line = WaitingLine(1, 2)
    tickets = joined(line, 2)
    with pytest.raises(Full) as error:
        line.join()
    assert str(error.value) == (
        "2 people are waiting for an answer already, and this server takes no more. "
        "Your sentence is kept: press Enter again in a minute"
    )
    tickets[0].leave()
    line.join()


@given(
    st.integers(1, 4), st.lists(st.tuples(st.sampled_from(["join", "ready", "leave"]), st.integers(0, 9)), max_size=60)
)
def test_never_more_than_the_slots_and_never_a_free_slot_with_one_ready(slots, events):
    line, tickets, ready = WaitingLine(slots, 100), [], set()
    for event, which in events:
        if event == "join":
            tickets.append(line.join())
        elif tickets:
            ticket = tickets[which % len(tickets)]
            if event == "ready":
                ticket.ready()
                ready.add(ticket)
            else:
                ticket.leave()
        here = list(line._tickets)
        admitted = [ticket for ticket in here if ticket.admitted(0)]
        waiting = [ticket for ticket in here if ticket in ready and not ticket.admitted(0)]
        assert len(admitted) <= slots
        assert not waiting or len(admitted) == slots


def test_words_for_who_waits():
    assert turns.words_for(0, RUNNING) == "You are next."
    assert turns.words_for(1, RUNNING) == "Place 2 in the queue: 1 person is ahead of you."
    assert turns.words_for(7, RUNNING) == "Place 8 in the queue: 7 people are ahead of you."
    assert turns.words_for(7, STARTING) == "The models are being read."
    assert turns.words_for(7, RESTARTING) == (
        "The process of the models has stopped. It is being started again; your sentence is kept."
    )
    assert turns.words_for(0, SILENT) == (
        "You are next. The models have not answered for 5 seconds. If they still do not answer after 15 seconds, a new "
        "process takes over."
    )
    assert turns.words_for(0, OF_GUEST) == (
        "You are next. This model is slow. It computes apart from what others wait for, 180 seconds at most."
    )
    assert turns.words_for(1, APART) == (
        "Place 2 in the queue: 1 person is ahead of you. The models need long for this, so it is computed apart from "
        "what others wait for, in 60 seconds at most."
    )


@pytest.mark.parametrize(
    ("written", "wanted"), [("100000 100000\n", 1), ("50000 100000\n", 1), ("350000 100000\n", 3), ("max 100000\n", 4)]
)
def test_a_quota_counts(written, wanted, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    (tmp_path / "cpu.max").write_text(written)
    assert cores(tmp_path / "cpu.max") == wanted


def test_without_a_control_group_it_is_what_the_process_may_run_on(tmp_path):
    assert 1 <= cores(tmp_path / "none") <= (os.cpu_count() or 1)
