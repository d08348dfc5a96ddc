"""A source word replaced, masked or deleted."""

import numpy as np
import pytest

import attnviz
from attnviz import intervene
from attnviz.intervene import MASK, Word

TEXT, TARGET = "The black dog runs.", "Le chien noir court."


@pytest.fixture(scope="module")
def model(root):
    return attnviz.load("en-fr/bahdanau", root)


def test_the_words_of_a_source(model):
    words = intervene.words(model.trace(TEXT))
    assert words[:3] == (Word("The", 0, 3), Word("black", 4, 9), Word("dog", 10, 13))
    assert all(TEXT[word.start : word.end] == word.text for word in words)


def test_a_word_is_replaced_where_it_stands():
    assert intervene.replaced("a b a", Word("a", 4, 5), "c") == "a b c"
    assert intervene.replaced("a b a", Word("b", 2, 3), MASK) == "a □ a"
    assert intervene.replaced("a b a", Word("b", 2, 3), " ") == "a a"


def test_a_word_that_is_not_there():
    with pytest.raises(ValueError, match="^word must stand at 1 of the text; got 'a'$"):
        intervene.replaced("a b", Word("a", 1, 2), "c")


def test_the_same_word_changes_nothing():
    with pytest.raises(ValueError, match="^the new word must be another one; got 'b '$"):
        intervene.replaced("a b", Word("b", 2, 3), "b ")


def test_both_runs(model):
    rewritten = intervene.rewrite(model, TEXT, Word("black", 4, 9), "white", TARGET)
    assert rewritten.before.text == TEXT and rewritten.forced.text == rewritten.free.text == "The white dog runs."
    assert rewritten.before.translation == rewritten.forced.translation == TARGET
    assert rewritten.free == model.trace("The white dog runs.")
    np.testing.assert_allclose(rewritten.before.log_probs, model.trace(TEXT, TARGET).log_probs, atol=1e-5)
    np.testing.assert_allclose(
        rewritten.forced.log_probs, model.trace("The white dog runs.", TARGET).log_probs, atol=1e-5
    )
    assert rewritten.total_variation.shape == rewritten.log_prob_changes.shape == (len(rewritten.before.target),)
    assert (rewritten.total_variation >= 0).all() and (rewritten.total_variation <= 1).all()


def test_a_masked_word_is_read_as_unknown(model):
    rewritten = intervene.rewrite(model, TEXT, Word("dog", 10, 13), target=TARGET)
    assert any(token.unknown for token in rewritten.forced.source)


def test_it_can_be_stopped_at_every_step(model):
    """Also while the model writes of the other text by itself."""
    taken = []
    rewritten = intervene.rewrite(model, TEXT, Word("dog", 10, 13), "cat", TARGET, lambda: taken.append(1))
    assert len(taken) == 2 * len(rewritten.before.target) + len(rewritten.free.target)
    left = len(taken)

    def stop():
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        intervene.rewrite(model, TEXT, Word("dog", 10, 13), "cat", TARGET, stop)
