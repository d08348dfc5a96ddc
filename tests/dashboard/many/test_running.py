"""A run over sentences: slice by slice, stopped, and with models that cannot be reached."""

from concurrent.futures import Future

import pytest
import tiny

from attnviz import across, loading
from attnviz.data.records import Record
from attnviz.service import ServiceError
from attnviz.service.request import RESTARTING, SILENT
from dashboard.many import caches, running
from dashboard.many.given import Given
from dashboard.many.running import Run

RECORDS = [
    Record(number, str(number), english, french)
    for number, (english, french) in enumerate([*tiny.sentences(5, 5), ("dog " * 300, "x")], start=1)
]
NAMES = ["en-fr/bahdanau", "en-fr/transformer"]


@pytest.fixture
def submit(root):
    models = {name: loading.load(name, root) for name in NAMES}

    def ask(name, texts):
        futures = []
        for answer in models[name].traces(*map(list, zip(*texts)), keep=("statistics",)):
            futures.append(future := Future())
            future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)
        return futures

    return ask


def test_the_models_take_turns_and_a_bad_text_fails_alone(submit, monkeypatch):
    monkeypatch.setattr(running, "SLICE", 2)
    run = Run(NAMES, RECORDS, False, submit)
    seen = []
    while not run.finished:
        run.advance()
        seen.append(run.frame("cross")["model"].iloc[-1])
    assert seen == NAMES * 3 and (run.done, run.total) == (12, 12)
    frame = run.frame("cross")
    assert frame["error"].notna().sum() == 2 and frame["error"].dropna().str.startswith("the text is too long").all()
    assert frame["normalised_entropy"].notna().sum() == 10
    assert run.frame("encoder").groupby("model")["gini"].count().to_dict() == {NAMES[0]: 0, NAMES[1]: 5}
    run.advance()  # nothing is left
    assert len(run.frame("cross")) == 12


def test_the_numbers_are_those_of_the_library(submit, root):
    run = Run(NAMES[:1], RECORDS[:1], True, submit)
    run.advance()
    (measured,) = loading.load(NAMES[0], root).traces([RECORDS[0].source], [RECORDS[0].target], keep=("statistics",))
    wanted = across.sentence(measured.columns())
    (row,) = run.frame("cross").to_dict("records")
    assert {name: row[name] for name in wanted} == pytest.approx(wanted, rel=1e-5)
    assert (row["translation"], row["log_prob"]) == (RECORDS[0].target, pytest.approx(measured.log_prob))


def test_models_that_cannot_be_reached_leave_the_slice_to_do(submit):
    broken = [True]

    def ask(name, texts):
        if not broken:
            return submit(name, texts)
        future = Future()
        future.set_exception(ServiceError("the models are away"))
        return [future] * len(texts)

    run = Run(NAMES[:1], RECORDS[:2], False, ask)
    with pytest.raises(ServiceError):
        run.advance()
    assert run.done == 0 and not run.finished
    broken.clear()
    run.advance()
    assert run.finished and len(run.frame("cross")) == 2


def test_the_pace_is_that_of_the_last_slices_and_counts_the_wait_for_a_turn(submit, monkeypatch):
    monkeypatch.setattr(running, "SLICE", 2)
    run, clock = Run(NAMES[:1], RECORDS[:5], False, submit), iter([10.5, 13.0])
    assert run.pace == 0
    monkeypatch.setattr(running.time, "monotonic", lambda: next(clock))
    run.advance(10.0)
    assert run.pace == 4
    run.advance(11.0)
    assert run.pace == 4 / 2.5 and run.bytes == 5 * running.ROW


def test_while_the_models_compute_the_page_can_say_how_they_are(submit, monkeypatch):
    monkeypatch.setattr(running, "LOOK", 0.001)
    late, calls = [], []

    def ask(name, texts):
        late[:] = [(Future(), answer) for answer in submit(name, texts)]
        return [future for future, _ in late]

    def meanwhile(futures):
        assert futures == [future for future, _ in late]
        calls.append(run.done)
        for future, answer in late[: len(calls)]:
            if not future.done():
                future.set_result(answer.result())

    run = Run(NAMES[:1], RECORDS[:3], False, ask)
    run.advance(meanwhile=meanwhile)
    assert calls == [0, 0, 0] and run.done == 3


def test_words_for_who_waits():
    assert running.words_for(0, 400, 0) == "0 of 400 translations are measured."
    assert running.words_for(1000, 8000, 240) == (
        "1,000 of 8,000 translations are measured. 240 a second, about 29 s left."
    )
    assert running.words_for(32, 8000, 20).endswith("20 a second, about 7 min left.")
    assert running.words_for(32, 8000, 20, RESTARTING) == (
        "32 of 8,000 translations are measured. The process of the models has stopped. It is being started again, then "
        "this goes on."
    )
    assert running.words_for(32, 8000, 20, SILENT).startswith(
        "32 of 8,000 translations are measured. The models have not answered for 5 seconds."
    )


def test_a_run_that_somebody_has_is_the_same_for_all_even_when_the_cache_let_it_go(root, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    given = Given("some", tuple(RECORDS[:2]))
    mine = caches.run("en-fr", NAMES, given, False)
    monkeypatch.setattr(caches.models, "keep", lambda value_key, maker, taken: maker())
    assert caches.run("en-fr", NAMES, given, False) is mine
    assert caches.run("en-fr", NAMES, given, True) is not mine
