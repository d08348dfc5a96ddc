"""Log-probabilities of forced targets: a batch with statistics alone leaves them until they are read."""

import gc
import pickle
import weakref

import pytest
import tiny

from attnviz.models.translator import Translator
from attnviz.networks import decode


@pytest.fixture(params=["transformer", "luong-dot"])
def counted(root, request, monkeypatch):
    """A model -> it, and a list with an entry for each time that it makes logits."""
    model, calls = Translator.load(f"en-fr/{request.param}", root), []
    logits = type(model.model).logits
    monkeypatch.setattr(type(model.model), "logits", lambda *given: calls.append(1) or logits(*given))
    return model, calls


def forced(model, count=4, **options):
    return list(model.traces(*zip(*tiny.sentences(count, 3)), keep=("statistics",), **options))


def test_nothing_is_projected_until_one_is_read_and_then_the_whole_batch_at_once(counted):
    model, calls = counted
    measured = forced(model)
    assert calls == [] and all(len(statistics.frame()) for statistics in measured) and calls == []
    first = measured[0].log_probs
    made = len(calls)
    assert made > 0 and next(statistics.log_probs for statistics in measured) == first and len(calls) == made


def test_they_are_those_of_the_trace(counted):
    model, _ = counted
    for (text, target), measured in zip(tiny.sentences(4, 3), forced(model)):
        assert measured.log_probs == pytest.approx(model.trace(text, target).log_probs, abs=1e-5)


def test_a_copy_by_pickle_has_them(counted):
    model, calls = counted
    measured = forced(model)[0]
    copied = pickle.loads(pickle.dumps(measured))
    made = len(calls)
    assert copied.log_probs == measured.log_probs and len(calls) == made > 0


def test_they_are_read_in_any_order_and_batch(counted):
    model, _ = counted
    wanted = [statistics.log_probs for statistics in forced(model, 5)]
    backwards = [statistics.log_probs for statistics in reversed(forced(model, 5, batch_size=2))][::-1]
    for forward, backward in zip(wanted, backwards, strict=True):
        assert forward == pytest.approx(backward, abs=1e-5)


def test_what_waits_for_them_holds_no_maps(counted, monkeypatch):
    model, _ = counted
    maps, real = [], decode.forced

    def watched(*given, **how):
        unrolled = real(*given, **how)
        maps.extend(weakref.ref(weights) for weights in unrolled.cross)
        return unrolled

    monkeypatch.setattr(decode, "forced", watched)
    measured = forced(model)
    gc.collect()
    assert maps and not any(weights() is not None for weights in maps) and measured[0].log_probs
