"""What every model service does: the embedded one and the one on a Ray cluster, by the same tests."""

import os
import shutil
import signal

import numpy as np
import pandas as pd
import processes
import pytest
import tiny

from attnviz import loading, stats
from attnviz.networks import decode
from attnviz.service import Request, ServiceError, batch, open_service
from attnviz.service.embedded import Embedded
from attnviz.service.request import RESTARTING, RUNNING

MECHANISMS = ("bahdanau", "luong-general", "luong-local", "fixed-context", "transformer")
WAIT = 300  # s at most, never waited in full
TEXTS = [english for english, _ in tiny.sentences(12, 5)]


@pytest.fixture(scope="module", params=["embedded", pytest.param("cluster", marks=pytest.mark.xdist_group("ray"))])
def service(request):
    """One service for the tests that do it no harm."""
    if request.param == "embedded":
        service = Embedded()
        yield service
        service.close()
        return
    yield from _service_on(request.getfixturevalue("cluster"))


def _service_on(cluster):
    """The last who needs the cluster: it ends here."""
    import ray
    from ray import serve

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ATTNVIZ_RAY", cluster.address)
            service = open_service()
        yield service
        service.close()
    finally:
        serve.shutdown()
        ray.shutdown()
        cluster.shutdown()


def results(service, requests):
    return [future.result(WAIT) for future in service.submit(requests)]


def test_a_request_alone_is_the_trace_of_this_process_bit_for_bit(service, root, ask):
    for mechanism in MECHANISMS:
        (trace,) = results(service, [ask(TEXTS[0], mechanism)])
        assert trace == loading.load_checkpoint(f"en-fr/{mechanism}", root).trace(TEXTS[0])
        assert all(not attention.weights.flags.writeable for attention in trace.maps)
    assert service.state == RUNNING


def test_samples_are_those_of_this_process_and_a_text_that_cannot_be_read_fails_alone(service, root, ask):
    sampled = [ask(text, mechanism, sample_count=5) for text in (TEXTS[0], TEXTS[1]) for mechanism in MECHANISMS]
    with_beam = [ask(TEXTS[0], mechanism, beam=3, hypotheses=True) for mechanism in MECHANISMS]
    for request, listed in zip(with_beam, results(service, with_beam)):
        assert listed == loading.load_checkpoint(request.model, root).hypotheses(TEXTS[0], 3)
    classifier = Request("sst2/self-attention", "A funny film.", sample_count=5)
    futures = service.submit([*sampled, classifier, ask(" ", sample_count=5), ask(TEXTS[0])])
    for request, future in zip(sampled, futures):
        assert future.result(WAIT) == loading.load_checkpoint(request.model, root).samples(request.text, 5)
    with pytest.raises(ValueError, match="sst2/self-attention does not translate, so it has no other translations"):
        futures[-3].result(WAIT)
    with pytest.raises(ValueError, match="the text is empty; type a sentence"):
        futures[-2].result(WAIT)
    assert futures[-1].result(WAIT).text == TEXTS[0]


def test_many_requests_are_the_traces_one_by_one(service, root, ask):
    """Of several models, forced and not, greedy and with a beam, in the order asked."""
    models = {name: loading.load_checkpoint(f"en-fr/{name}", root) for name in MECHANISMS}
    cases = [
        (text, name, target, beam)
        for text in TEXTS[:4]
        for name in MECHANISMS
        for target, beam in ((None, 1), ("Le chien dort.", 1), (None, 3))
    ]
    answers = results(service, [ask(text, name, target=target, beam=beam) for text, name, target, beam in cases])
    for (text, name, target, beam), trace in zip(cases, answers, strict=True):
        same(trace, models[name].trace(text, target, beam))


def same(trace, alone):
    """Of the same text and tokens, and the same numbers to rounding."""
    assert (trace.text, trace.translation, trace.target) == (alone.text, alone.translation, alone.target)
    np.testing.assert_allclose(trace.log_probs, alone.log_probs, atol=1e-5)
    for ours, theirs in zip(trace.maps, alone.maps, strict=True):
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-5)


def test_models_of_one_text_guess_from_each_other_and_differ_in_rounding_alone(root, ask, monkeypatch):
    """In one process, as both services run it: the first model is on its own, the others begin with what it wrote."""
    seen, greedy = [], decode.greedy
    monkeypatch.setattr(
        decode, "greedy", lambda *given, **more: [seen.append(more["guesses"]), greedy(*given, **more)][1]
    )
    requests, models = [ask(TEXTS[1], name) for name in MECHANISMS], batch.Models()
    for place, trace in batch.answers(models, [*requests, ask(TEXTS[1], target="Le chien dort.")]):
        if place < len(requests):
            assert bool(seen.pop()) == (place > 0)
            same(trace, loading.load_checkpoint(requests[place].model, root).trace(TEXTS[1]))
            seen.clear()  # of the model alone
    in_turn = [place for place, _ in batch.answers(models, requests)]  # now that all are in memory
    assert in_turn == sorted(range(len(requests)), key=lambda place: models.step_weights(requests[place]))
    assert [bool(guesses) for guesses in seen] == [False, *[True] * (len(requests) - 1)]
    seen.clear()
    of_two = [ask(text, name) for name in MECHANISMS for text in TEXTS[1:3]]  # each text is checked alone
    traces = dict(batch.answers(models, of_two))
    assert [bool(guesses) for guesses in seen] == [False, *[True] * (len(of_two) - 2)]
    for place, request in enumerate(of_two):
        same(traces[place], loading.load_checkpoint(request.model, root).trace(request.text))


def test_a_bad_text_fails_alone_and_in_the_words_of_the_model(service, root, ask):
    model = loading.load_checkpoint("en-fr/bahdanau", root)
    bad, good = service.submit([ask("dog " * 300), ask(TEXTS[0])])
    with pytest.raises(ValueError) as ours:
        bad.result(WAIT)
    with pytest.raises(ValueError) as theirs:
        model.trace("dog " * 300)
    assert str(ours.value) == str(theirs.value)
    assert good.result(WAIT).text == TEXTS[0]


def test_a_model_that_is_not_there(service, root):
    (future,) = service.submit([Request("en-fr/none", "A dog runs.", root=str(root))])
    with pytest.raises(ValueError) as error:
        future.result(WAIT)
    assert str(error.value).startswith(f"no checkpoint 'en-fr/none' in {root}; available: en-fr/")


def test_a_model_whose_files_change_is_read_again(service, root, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(root, own)
    (before,) = results(service, [Request("en-fr/bahdanau", TEXTS[0], root=str(own), stamp=(1,))])
    shutil.copytree(own / "en-fr" / "luong-dot", own / "en-fr" / "bahdanau", dirs_exist_ok=True)
    (after,) = results(service, [Request("en-fr/bahdanau", TEXTS[0], root=str(own), stamp=(2,))])
    assert (before.mechanism, after.mechanism) == ("bahdanau", "luong-dot")


def test_statistics_alone_are_those_of_the_traces(service, root, ask):
    model = loading.load_checkpoint("en-fr/transformer", root)
    requests = [ask(TEXTS[0], "transformer", statistics=True), ask(TEXTS[0], "transformer")]
    measured, trace = results(service, requests)
    wanted = stats.steps(model.trace(TEXTS[0]))
    pd.testing.assert_frame_equal(measured.frame()[wanted.columns], wanted, check_dtype=False, atol=1e-4, rtol=0)
    assert trace == model.trace(TEXTS[0])


def models_of(service) -> int:
    """The process of the models: of the service, or of its one replica."""
    if isinstance(service, Embedded):
        return service.pid
    (replica,) = [pid for pid in processes.family(os.getpid()) if "ServeReplica:attnviz" in processes.command(pid)]
    return replica


def test_models_that_are_killed_in_the_middle_are_replaced_and_every_request_is_answered(
    service, root, ask, monkeypatch
):
    """The last test of the file."""
    monkeypatch.setattr(service.limits, "request", WAIT)
    results(service, [ask(TEXTS[0])])  # there is a process to kill
    first = models_of(service)
    futures = service.submit([ask(text, name, beam=3) for text in TEXTS for name in ("bahdanau", "transformer")])
    os.kill(first, signal.SIGKILL)
    assert [future.result(WAIT).text for future in futures] == [text for text in TEXTS for _ in range(2)]
    (trace,) = results(service, [ask(TEXTS[0])])
    assert trace == loading.load_checkpoint("en-fr/bahdanau", root).trace(TEXTS[0])
    assert service.state == RUNNING and models_of(service) != first


def test_models_that_do_not_come_back_are_said(service, ask, monkeypatch):
    """The caller gets a sentence."""
    if isinstance(service, Embedded):
        pytest.skip("its own test is in test_embedded.py")
    handle = service._handle

    class Gone:
        """A deployment whose one replica is lost and whose next one never starts."""

        def remote(self, request):
            return self

        def result(self, timeout_s):
            if service.state != RESTARTING:
                raise RayActorError
            raise TimeoutError

    from ray.exceptions import RayActorError

    monkeypatch.setattr(service, "_handle", Gone())
    monkeypatch.setattr(service.limits, "request", 2)
    (future,) = service.submit([ask(TEXTS[1])])
    with pytest.raises(ServiceError) as error:
        future.result(WAIT)
    assert str(error.value) == "the models on the cluster were lost, and are not back after 2 s; try again in a minute"
    monkeypatch.setattr(service, "_handle", handle)
    assert results(service, [ask(TEXTS[1])])[0].text == TEXTS[1] and service.state == RUNNING
