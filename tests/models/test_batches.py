"""Many texts at once: the traces that one by one gives, in their order, whatever the batches; bad texts in their
places."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from alike import alike
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attnviz
from attnviz import stats
from attnviz.mechanisms import MECHANISMS
from attnviz.models import batches, measured
from attnviz.models.measured import TraceStatistics
from attnviz.models.model import TextError
from attnviz.models.translator import Translator
from attnviz.trace import Token

every = pytest.mark.parametrize("mechanism", MECHANISMS)
few = settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
words = st.sampled_from([*tiny.NOUNS, *tiny.COLOURS, *tiny.VERBS, "The", "zzz", "."])
sentence = st.lists(words, min_size=1, max_size=9).map(" ".join)
BAD = {
    "": "the text is empty; type a sentence",
    " \n": "the text is empty; type a sentence",
    7: "the text must be a string; got 7",
}


def same(batched, wanted):
    """What `traces` yields is what `trace` returned, or raised."""
    if isinstance(wanted, TextError):
        assert type(batched) is TextError and str(batched) == str(wanted)
    else:
        alike(batched, wanted)


def one_by_one(translator, texts, targets=None, **settings):
    for text, target in zip(texts, targets or itertools.repeat(None)):
        try:
            yield translator.trace(text, target, **settings)
        except TextError as error:
            yield error


@every
@few
@given(texts=st.lists(sentence | st.just(" "), min_size=1, max_size=7), size=st.integers(1, 4))
def test_greedy_is_as_one_by_one(translator, mechanism, texts, size):
    batched = list(translator.traces(texts, batch_size=size))
    for trace, wanted in zip(batched, one_by_one(translator, texts), strict=True):
        same(trace, wanted)


@every
@few
@given(
    given=st.lists(st.tuples(sentence, sentence | st.sampled_from([None, ""])), min_size=1, max_size=7),
    size=st.integers(1, 4),
)
def test_forced_and_free_may_be_mixed(translator, mechanism, given, size):
    texts, targets = zip(*given)
    batched = list(translator.traces(texts, targets, batch_size=size))
    for trace, wanted in zip(batched, one_by_one(translator, texts, targets), strict=True):
        same(trace, wanted)


@every
def test_a_beam_is_as_one_by_one(translator, mechanism):
    texts = [english for english, _ in tiny.sentences(5, 2)]
    for trace, wanted in zip(translator.traces(texts, beam=3), one_by_one(translator, texts, beam=3), strict=True):
        same(trace, wanted)


@every
@few
@given(given=st.lists(st.tuples(sentence, sentence | st.none()), min_size=1, max_size=6), size=st.integers(1, 4))
def test_statistics_are_those_of_the_traces(translator, mechanism, given, size):
    texts, targets = zip(*given)
    for statistics, wanted in zip(
        translator.traces(texts, targets, batch_size=size, keep=("statistics",)),
        one_by_one(translator, texts, targets),
        strict=True,
    ):
        measured_as(statistics, wanted)
        assert statistics.trace is None


def measured_as(batched, trace):
    """A TraceStatistics says of a trace what `stats.steps` says."""
    assert isinstance(batched, TraceStatistics)
    for name in "model mechanism text translation forced complete source target start".split():
        assert getattr(batched, name) == getattr(trace, name), name
    if trace.log_prob is None:
        assert batched.log_prob is None
    else:
        assert batched.log_prob == pytest.approx(trace.log_prob, abs=1e-4)
    frame, wanted = batched.frame(), stats.steps(trace)
    assert list(frame.columns) == list(wanted.columns)
    jumpy = ["argmax", "argmax_token", "effective_threshold"]  # a rounding apart, they are another key, or one more
    pd.testing.assert_frame_equal(
        frame.drop(columns=jumpy), wanted.drop(columns=jumpy), atol=1e-4, rtol=0, check_dtype=False
    )
    clear = (wanted["max_weight"] > 0.5 + 1e-4).to_numpy()
    assert (frame["argmax"][clear] == wanted["argmax"][clear]).all()
    assert (frame["argmax_token"][clear] == wanted["argmax_token"][clear]).all()


@pytest.mark.parametrize("mechanism", ["transformer", "fixed-context"])
def test_statistics_of_one_sentence_are_exactly_those_of_its_trace(translator):
    """No rounding between them: the same weights."""
    (batched,) = translator.traces(["The black dog runs."], keep=("maps", "statistics"))
    frame = stats.steps(batched.trace)
    if len(frame):
        pd.testing.assert_frame_equal(batched.frame(), frame, rtol=1e-12)
    else:
        assert list(batched.frame()) == list(frame) and batched.frame().empty


@pytest.mark.parametrize("mechanism", ["bahdanau"])
def test_a_bad_text_leaves_its_error_in_its_place(translator):
    texts = ["The cat sleeps.", *BAD, "The dog " * 200, "The cat runs."]
    batched = list(translator.traces(texts, batch_size=2))
    assert [batched[0].text, batched[-1].text] == [texts[0], texts[-1]]
    assert [str(error) for error in batched[1 : 1 + len(BAD)]] == list(BAD.values())
    assert re.match(r"the text is too long: \d+ pieces with <eos>", str(batched[-2]))
    wrong_target = list(translator.traces(["The cat sleeps."] * 2, ["", "Le chat dort."]))
    assert (
        str(wrong_target[0]) == "the target is empty; type a sentence"
        and wrong_target[1].translation == "Le chat dort."
    )


@pytest.mark.parametrize("mechanism", ["bahdanau"])
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"beam": 0}, "beam must be from 1 to 20; got 0"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1; got 0"),
        ({"batch_size": True}, "batch_size must be an integer of at least 1; got True"),
        ({"keep": ()}, "keep must be a tuple of some of maps, statistics; got ()"),
        ({"keep": "maps"}, "keep must be a tuple of some of maps, statistics; got 'maps'"),
        ({"keep": ("weights",)}, "keep must be a tuple of some of maps, statistics; got ('weights',)"),
        ({"guesses": "Le chat"}, "guesses must be a list of texts; got one text"),
        ({"targets": "Le chat"}, "texts and targets must be lists of strings; got one string"),
    ],
)
def test_settings_are_refused_before_anything_is_read(translator, settings, message):
    def never():
        raise AssertionError("it was read")
        yield

    with pytest.raises(ValueError) as error:
        translator.traces(never(), **settings)
    assert str(error.value) == message


@pytest.mark.parametrize("mechanism", ["bahdanau"])
def test_as_many_targets_as_texts(translator):
    with pytest.raises(ValueError) as error:
        list(translator.traces(["The cat sleeps."], []))
    assert str(error.value) == "targets must be as many as texts; got 0 targets and more of the other"
    with pytest.raises(ValueError) as error:
        list(translator.traces(["The cat sleeps."], [None, "Le chat dort."]))
    assert str(error.value) == "targets must be as many as texts; got 1 text and more of the other"


@pytest.mark.parametrize("mechanism", ["luong-general"])
def test_no_more_than_a_window_is_read_ahead(translator, monkeypatch):
    """Whatever the number of texts: here it has no end."""
    read = []

    def endless():
        for number in itertools.count():
            read.append(number)
            yield "The cat sleeps."

    batched = translator.traces(endless(), batch_size=2)
    for number in range(3 * 2 * batches.WINDOW):
        assert next(batched).text == "The cat sleeps."
        assert len(read) - number <= 2 * batches.WINDOW
    monkeypatch.setattr(batches, "CELLS", 1)  # long texts make shorter windows
    read.clear()
    next(translator.traces(endless(), batch_size=2))
    assert len(read) == 1


@pytest.mark.parametrize("mechanism", ["transformer"])
def test_batches_hold_like_lengths_and_no_more_than_asked(translator, monkeypatch):
    sizes = []
    real = Translator._unroll
    monkeypatch.setattr(Translator, "_unroll", lambda self, jobs, *how: sizes.append(jobs) or real(self, jobs, *how))
    texts = ["The cat sleeps.", "The black white dog runs.", "Cat.", "The dog runs."] * 4
    list(translator.traces(texts, batch_size=4))
    lengths = [[len(job.source.ids) for job in jobs] for jobs in sizes]
    assert [len(batch) for batch in lengths] == [4] * 4
    assert sum(lengths, []) == sorted(sum(lengths, []))
    sizes.clear()
    monkeypatch.setattr(batches, "PIECES", 2 * 2 * len(translator.tokenizer.ids(texts[1])))
    list(translator.traces(texts, batch_size=4))
    assert max(len(jobs) * max(sum(job.lengths) for job in jobs) for jobs in sizes) <= batches.PIECES


@pytest.mark.xdist_group("hf")  # one process imports the library
@pytest.mark.parametrize("family", ["bert", "gpt2", "marian"])
def test_models_of_the_transformers_library(folder, family):
    model = attnviz.load(f"hf:{folder(family)}")
    texts = ["the black dog is run", "", "the ball"]
    batched, statistics = list(model.traces(texts)), list(model.traces(texts, keep=("statistics",)))
    assert str(batched[1]) == str(statistics[1]) == "the text is empty; type a sentence"
    for i in (0, 2):
        alike(batched[i], model.trace(texts[i]))
        measured_as(statistics[i], batched[i])


def test_a_classifier():
    model = attnviz.load("sst2/self-attention")
    texts = ["a lovely film", "a dull , long film"]
    for batched, statistics, text in zip(
        model.traces(texts), model.traces(texts, keep=("statistics",)), texts, strict=True
    ):
        alike(batched, model.trace(text))
        measured_as(statistics, batched)
    with pytest.raises(ValueError, match="^beam must be 1 for sst2/self-attention, which chooses a label"):
        model.traces(texts, beam=2)


@pytest.mark.parametrize("mechanism", ["transformer"])
def test_nothing_else_changes(translator):
    before = {name: value.clone() for name, value in translator.model.state_dict().items()}
    batched = translator.traces(["The cat sleeps."] * 40, ["Le chat dort."] * 40)
    next(batched)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    assert torch.nn.functional.linear(torch.ones(99, 2), torch.ones(3, 2)).requires_grad is False
    batched.close()
    assert all(torch.equal(value, before[name]) for name, value in translator.model.state_dict().items())


def test_weights_below_0_are_refused_where_only_their_statistics_are_wanted():
    """As a module of one's own without a softmax gives: in a batch, the largest would be that of padding."""
    token = Token("a", 0, 1)
    weights = np.full((2, 1, 1, 3), 1 / 3, np.float32)
    weights[1] = -0.5, -0.5, 0.0
    with pytest.raises(ValueError, match="weights of the cross map of layer 0 must be finite and at least 0; got -0.5"):
        measured.of_batch({"cross": [weights]}, [((token,) * 3, (token,)), ((token,) * 2, (token,))])
