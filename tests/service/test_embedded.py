"""The model process on this machine: killed, overloaded, too slow, and stopped."""

import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import replace

import forked
import pytest
import serving
import tiny

from attnviz import ablation
from attnviz.service import CLUSTER, Busy, Request, ServiceError, connection, embedded, open_service, prepare
from attnviz.service.embedded import Embedded
from attnviz.service.request import APART, RESTARTING, RUNNING, SILENT, STARTING, Limits, Work

MECHANISMS = ("bahdanau", "transformer")
TEXTS = [english for english, _ in tiny.sentences(12, 5)]
LONG = "The black white grey dog runs. " * 4  # with a beam of 20 this takes much longer than the limit below


WAIT = 300  # s at most, never waited in full: a busy machine is no failure


@pytest.fixture
def held(service, ask, monkeypatch):
    """A request that has begun in the process, which stands still, and may for long."""
    monkeypatch.setattr(service.limits, "silence", WAIT)
    answer(service, ask(TEXTS[0]))
    os.kill(service.pid, signal.SIGSTOP)
    (begun,) = service.submit([ask(TEXTS[1])])
    while not begun.running():
        time.sleep(0.01)
    yield begun
    if service.pid:
        os.kill(service.pid, signal.SIGCONT)


def answer(service, request):
    return service.submit([request])[0].result(WAIT)


def ended(pid: int) -> bool:
    """Is the process gone, or will it be?"""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.xdist_group("hf")
def test_a_model_of_the_transformers_library_stops_and_nobody_else_waits(service, ask, folder, load):
    """It has a process of its own, which reads it with the name that the page gives it."""
    name, place = "hf:mine", str(folder("bart"))
    request = Request(name, "The black dog", "Le chien", root=place)
    assert answer(service, request) == replace(load("bart").trace("The black dog", "Le chien"), model=name)
    description = answer(service, Request(name, "", root=place, described=True))
    assert description == (("cross", "encoder", "decoder"), (2, 2), (), False, 40, 40, 4, False, "", "")
    os.kill(service._guests.pid, signal.SIGSTOP)
    (stopped,) = service.submit([request])
    while not stopped.running():
        time.sleep(0.01)
    assert answer(service, ask(TEXTS[0])).text == TEXTS[0] and not stopped.done()
    os.kill(service._guests.pid, signal.SIGKILL)
    assert stopped.result(WAIT).model == name
    for wrong in (str(folder("bart").parent / "none"), str(folder("bart").parent)):
        with pytest.raises(ValueError, match="^hf:mine: ") as raised:
            answer(service, replace(request, root=wrong))
        assert str(folder("bart").parent) not in str(raised.value)


@pytest.mark.xdist_group("hf")
def test_work_inside_a_model_of_the_transformers_library_is_done_in_its_process_and_ends_when_nobody_wants_it(
    service, folder, load
):
    """What comes back is what the library gives here; it can be stopped at a step, and the process goes on."""
    texts = "The black dog runs. " * 3, "Le chien noir court. " * 3
    request = Request("hf:mine", "", root=str(folder("bart")))

    def submit(function, *arguments, steps=""):
        (future,) = service.submit([replace(request, work=Work(function, arguments, steps=steps))])
        return future

    off = tuple(ablation.heads(load("bart"))[:1])
    effect, own = submit("ablation:effect", off, *texts).result(WAIT), ablation.effect(load("bart"), off, *texts)
    assert effect.change == pytest.approx(own.change, abs=1e-4) and not effect.after.maps[0].weights.flags.writeable
    before = submit("ablation:with_all", *texts).result(WAIT)
    assert before == (texts[1], pytest.approx(effect.before.log_prob, abs=1e-4))
    assert [head.head for head in submit("ablation:some_importance", texts[0], before, off, 9.0).result(WAIT)] == list(
        off
    )
    with pytest.raises(ValueError, match="the text is empty"):
        submit(":trace", "").result(WAIT)
    subject = submit("faithfulness.sentence:stage", *texts, ()).result(WAIT)
    begun, pid = submit("faithfulness.sentence:integrated", subject, steps="on_step"), service._guests.pid
    while not begun.steps:
        time.sleep(0.001)
    service.stop(begun)
    with pytest.raises(ValueError, match="nobody wants it any more"):
        begun.result(WAIT)
    assert submit(":read", "The dog").result(WAIT).ids and service._guests.pid == pid
    gpt = replace(
        request, root=str(folder("gpt2")), work=Work(":contributions", (load("gpt2").write("The dog", 2, 0.0),))
    )
    assert answer(service, gpt).heads.shape == load("gpt2").contributions(gpt.work.arguments[0]).heads.shape


def test_the_page_s_process_needs_no_torch():
    code = "import sys; from attnviz.service import open_service, embedded; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=serving.ROOT).returncode == 0


def test_a_full_service_refuses_and_recovers(service, held, ask, monkeypatch):
    monkeypatch.setattr(service.limits, "waiting", 4)
    waiting = service.submit([ask(text) for text in TEXTS[2:6]])
    with pytest.raises(Busy) as error:
        service.submit([ask(TEXTS[6])])
    assert str(error.value) == "4 sentences are waiting for the models already; try again in a minute"
    os.kill(service.pid, signal.SIGCONT)
    assert [future.result(WAIT).text for future in (held, *waiting)] == TEXTS[1:6]
    assert answer(service, ask(TEXTS[6])).text == TEXTS[6]


def test_what_is_cancelled_before_its_batch_is_not_computed(service, held, ask):
    cancelled, other = service.submit([ask(TEXTS[2]), ask(TEXTS[3])])
    assert cancelled.cancel()
    os.kill(service.pid, signal.SIGCONT)
    assert other.result(WAIT).text == TEXTS[3] and held.result().text == TEXTS[1]
    with pytest.raises(CancelledError):
        cancelled.result()


def test_the_state_says_that_it_is_being_restarted(service, ask):
    answer(service, ask(TEXTS[0]))
    (future,) = service.submit([ask(LONG, "transformer", beam=20)])
    while not future.running():
        time.sleep(0.001)
    os.kill(service.pid, signal.SIGKILL)
    seen = {service.state}
    while not future.done():
        seen.add(service.state)
        time.sleep(0.001)  # the new process needs the core
    assert RESTARTING in seen and service.state == RUNNING


def test_a_sentence_that_takes_too_long_is_refused_and_the_next_one_answered(service, ask, monkeypatch):
    answer(service, ask(TEXTS[0], "transformer"))
    with monkeypatch.context() as patch:
        patch.setattr(service.limits, "request", 0.02)
        (slow,) = service.submit([ask(LONG, "transformer", beam=20)])
        with pytest.raises(ServiceError) as error:
            slow.result(WAIT)
    assert str(error.value) == "the models needed more than 0.02 s for this sentence; shorten it"
    assert answer(service, ask(TEXTS[2])).text == TEXTS[2]


def test_a_request_that_kills_the_process_each_time_takes_no_other_along(service, ask, monkeypatch):
    answer(service, ask(TEXTS[0]))
    killed, write = [], embedded.connection.write

    def kill_at_deadly(stream, requests):
        if any(request.text == "deadly" for request in requests):
            killed.append(service.pid)
            os.kill(service.pid, signal.SIGKILL)
            service._first._process.wait()
        write(stream, requests)

    monkeypatch.setattr(embedded.connection, "write", kill_at_deadly)
    deadly, harmless = service.submit([ask("deadly"), ask(TEXTS[1])])
    with pytest.raises(ServiceError) as error:
        deadly.result(WAIT)
    assert str(error.value) == "the model process stopped twice at this sentence; change it"
    assert harmless.result(WAIT).text == TEXTS[1]
    assert len(killed) == 2


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A file with the words at which the models of `slow` stand still."""
    return tmp_path_factory.mktemp("held") / "gate"


@pytest.fixture(scope="module")
def slow(gate):
    """A service that waits for a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(serving.ROOT / "tests" / "helpers" / "held"))
        patch.setenv("HELD_WHILE", str(gate))
        with closing(Embedded(limits=Limits(quiet=0.2, silence=1.0, idle=0.1))) as slow:
            yield slow


def until(true):
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_new_process_answers_what_a_stopped_one_was_given(service, ask, monkeypatch):
    answer(service, ask(TEXTS[0]))
    first = service.pid
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr(service.limits, "quiet", 0.2)
    monkeypatch.setattr(service.limits, "silence", 1.0)
    futures = service.submit([ask(text) for text in TEXTS[1:4]])
    until(futures[0].running)
    futures += service.submit([ask(TEXTS[4])])
    until(lambda: service.state_of(futures) == SILENT)
    monkeypatch.setattr(service.limits, "silence", WAIT)
    assert [future.result(WAIT).text for future in futures] == TEXTS[1:5]
    assert answer(service, ask(TEXTS[5])).text == TEXTS[5]
    assert service.pid != first and service.state == RUNNING


def test_a_process_that_nobody_wants_ends_and_starts_with_the_next_sentence(service, ask, monkeypatch):
    monkeypatch.setattr(service.limits, "rest", 0.1)
    answer(service, ask(TEXTS[0]))
    first = service.pid
    until(lambda: service.pid is None and service.state == STARTING)
    monkeypatch.setattr(service.limits, "rest", math.inf)
    assert answer(service, ask(TEXTS[1])).text == TEXTS[1] and service.pid not in (None, first)


def test_a_process_that_is_stopped_while_it_starts_is_replaced(ask, monkeypatch):
    """Long before it may have taken too long to start; and whoever waits is told."""
    monkeypatch.setattr(embedded.connection, "started", forked.AS_ANYWHERE)  # which takes a while
    limits = Limits(quiet=0.5, start_silence=1.0, start=WAIT)
    with closing(Embedded(limits=limits)) as service:
        until(lambda: service.pid)
        first = service.pid
        os.kill(first, signal.SIGSTOP)
        until(lambda: service.state == SILENT)
        until(lambda: service.pid not in (first, None))
        limits.start_silence = WAIT
        for _ in range(10):  # the next one may have had a second too
            if service.submit([ask(TEXTS[0])])[0].exception(WAIT) is None:
                return
    pytest.fail("it does not recover")


def test_a_slow_sentence_holds_up_no_other(slow, gate, ask):
    """Neither those of its own batch nor those that come later; and it has its own time, a minute."""
    answer(slow, ask(TEXTS[0]))
    gate.write_text("deep")
    deep, *others = slow.submit([ask(text) for text in ("A deep dog runs.", *TEXTS[1:4])])
    assert [future.result(WAIT).text for future in others] == TEXTS[1:4]
    assert answer(slow, ask(TEXTS[4])).text == TEXTS[4]
    assert not deep.done()
    until(lambda: slow.state_of([deep]) == APART)
    gate.unlink()
    assert deep.result(WAIT).text == "A deep dog runs."
    until(lambda: slow._apart.pid is None)  # one process is left
    slow.limits.request = 3.0
    gate.write_text("deep")
    with pytest.raises(ServiceError, match="^the models needed more than 3 s for this sentence; shorten it$"):
        answer(slow, ask("A deep cat runs."))


def test_reading_a_model_is_no_time_of_a_sentence_and_holds_up_no_other(slow, gate, ask):
    slow.limits.request = 3.0
    answer(slow, ask(TEXTS[0]))
    gate.write_text("en-fr/transformer")
    (first,) = slow.submit([ask(TEXTS[1], "transformer")])
    until(lambda: slow._apart.state == STARTING and slow._apart._reading)
    assert slow.state_of([first]) == STARTING
    (second,) = slow.submit([ask(TEXTS[2], "transformer")])
    assert answer(slow, ask(TEXTS[3])).text == TEXTS[3]
    time.sleep(slow.limits.request)
    gate.unlink()
    assert [future.result(WAIT).text for future in (first, second)] == TEXTS[1:3]
    slow.limits.reading = 1.0
    gate.write_text("luong-dot")
    with pytest.raises(ServiceError) as error:
        answer(slow, ask(TEXTS[4], "luong-dot"))
    assert str(error.value) == "the files of en-fr/luong-dot were not read after 1 s; try again later"


def test_a_process_that_does_not_start_is_said_and_tried_again(service, ask, monkeypatch):
    answer(service, ask(TEXTS[0]))
    with monkeypatch.context() as broken:
        broken.setattr(embedded.connection, "started", forked.AS_ANYWHERE)
        broken.setattr(sys, "executable", "/bin/false")
        os.kill(service.pid, signal.SIGKILL)
        with pytest.raises(ServiceError) as error:
            answer(service, ask(TEXTS[0]))
    assert str(error.value) == "the model process does not start; whoever runs the server can see why in its output"
    for _ in range(10):  # the process that was being started meanwhile may be a broken one too
        if service.submit([ask(TEXTS[0])])[0].exception(WAIT) is None:
            return
    pytest.fail("it does not recover")


def test_the_process_ends_with_the_server_that_has_started_it():
    code = (
        "import os, time; from attnviz.service.embedded import Embedded; one = Embedded();\n"
        "while not one.pid: time.sleep(.01)\n"
        "print(one.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    assert ended(int(forked.run("-c", code).stdout))


def test_a_process_that_is_started_ahead_is_the_first_that_a_service_takes(monkeypatch):
    monkeypatch.setenv(CLUSTER, "auto")
    prepare()
    assert connection._ready_made == []  # the models are on a cluster
    monkeypatch.delenv(CLUSTER)
    prepare()
    [ahead] = connection._ready_made
    with closing(open_service()) as taken:
        while taken.state != RUNNING:
            time.sleep(0.01)
        assert taken.pid == ahead.pid and connection._ready_made == []
    assert ended(ahead.pid)


def test_a_process_that_is_started_ahead_ends_with_the_server_that_has_started_it():
    code = "from attnviz.service import connection as c; c.start_ahead(); print(c._ready_made[0].pid)"
    done = subprocess.run([sys.executable, "-c", code], cwd=serving.ROOT, stdout=subprocess.PIPE, text=True)
    assert ended(int(done.stdout))


def test_a_closed_service_answers_nothing_and_leaves_no_process(service, held, ask):
    """The last test of the file."""
    pid = service.pid
    (waiting,) = service.submit([ask(TEXTS[2])])
    service.close()
    for future in (held, waiting):
        with pytest.raises(ServiceError, match=f"^{embedded.CLOSED}$"):
            future.result(WAIT)
    with pytest.raises(ServiceError, match=f"^{embedded.CLOSED}$"):
        service.submit([ask(TEXTS[0])])
    assert service.pid is None and ended(pid)
