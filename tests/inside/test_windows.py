"""Where local attention predicts its place at every step: in one pass as step by step."""

import pytest
import torch

import attnviz
from attnviz import inside
from attnviz.attention import General, attend
from attnviz.select import words

TEXT, TARGET = "The black dog runs.", "Le chien noir court."


@pytest.fixture(scope="module")
def local(root):
    return attnviz.load("en-fr/luong-local", root)


@pytest.mark.parametrize("target", [None, TARGET])
def test_one_pass_predicts_what_each_step_predicts(local, target):
    trace = local.trace(TEXT, target)
    windows = inside.windows(local, trace)
    alone = [inside.step(local, trace, step).window for step in range(len(trace.target))]
    assert [centre for centre, _ in windows] == pytest.approx([window.centre for window in alone], abs=1e-4)
    assert {reach for _, reach in windows} == {window.reach for window in alone}
    assert all(0 <= centre <= len(trace.source) for centre, _ in windows)


class Middle(General):
    """A window of somebody's own: three keys around the middle of the text."""

    reach = 1

    def window(self, query, size):
        away = torch.arange(size) - size // 2
        return torch.full(query.shape[:-1], size // 2), (-(away**2.0)).expand(1, 1, -1), (away.abs() <= 1)[None, None]

    def read(self, query, prepared, values, mask=None, reweigh=None):
        _, gaussian, seen = self.window(query, values.shape[-2])
        return attend(self.score(query, prepared) + gaussian, values, seen, reweigh=reweigh)


def test_a_window_of_ones_own_is_asked_where_it_is(root):
    model = attnviz.load("en-fr/luong-local", root)
    model.model.attention = Middle(*model.model.attention.widths)
    trace = model.trace(TEXT, TARGET)
    middle = len(trace.source) // 2
    assert inside.windows(model, trace) == ((middle, 1),) * len(trace.target)
    opened = inside.step(model, trace, 1)
    assert (opened.window.centre, opened.window.reach, opened.mask.sum()) == (middle, 1, 3)


def test_of_a_beam_too(local):
    trace = local.trace(TEXT, beam=3)
    assert len(inside.windows(local, trace)) == len(trace.target)


def test_the_model_is_left_as_it_was(local):
    inside.windows(local, local.trace(TEXT))
    assert not local.model.attention.place._forward_hooks


def test_other_mechanisms_have_none(root):
    for name in ("bahdanau", "fixed-context", "transformer"):
        model = attnviz.load(f"en-fr/{name}", root)
        assert inside.windows(model, model.trace(TEXT)) == ()


def test_a_trace_of_words_is_refused(local):
    with pytest.raises(ValueError) as error:
        inside.windows(local, words(local.trace(TEXT)))
    assert str(error.value) == "trace must be at the level of pieces, as a model makes it; got one of words"
