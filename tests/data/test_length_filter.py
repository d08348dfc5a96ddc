"""Sentences that no model reads are left out of training, and what is left reads as it did."""

import pytest
import tiny

from attnviz.data import corpora
from attnviz.data.length_filter import length_filter
from attnviz.data.limits import LONGEST

LONG = "the " * LONGEST
PAIRS = tiny.sentences(6, 1)


@pytest.mark.parametrize("pair", [(LONG, "le"), ("the", LONG), ("\u200b", "le"), ("the", "\u200b"), ("", "le")])
def test_a_pair_that_no_model_reads_is_left_out_of_train_and_of_val(pair):
    text = tiny.vocabulary()
    corpus = corpora.Corpus([*PAIRS[:3], pair], [pair, *PAIRS[3:]], {"test": [pair]}, {"a": "b"})
    kept, left_out = length_filter(corpus, text)
    assert (kept.train, kept.val) == (PAIRS[:3], PAIRS[3:])
    assert (kept.tests, kept.files) == (corpus.tests, corpus.files)
    assert left_out == [pair[0]] * 2 and length_filter(kept, text) == (kept, [])


def test_the_longest_text_stays():
    """With <eos> it is as long as a text may be; with one piece more it is not."""
    text, short = tiny.vocabulary(), PAIRS[0][0].split()[0]
    pieces = len(text.ids(short)) - 1
    fits = " ".join([short] * ((LONGEST - 1) // pieces))
    pairs = [(fits, "le"), (f"{fits} {short}", "le")]
    assert len(text.ids(pairs[1][0])) > LONGEST >= len(text.ids(fits))
    assert length_filter(corpora.Corpus(pairs, PAIRS, {}, {}), text)[0].train == pairs[:1]


def test_a_label_always_fits():
    pairs = [("a dog", "positive"), ("\u200b", "negative")]
    corpus = corpora.Corpus(pairs, pairs, {}, {}, labelled=True)
    assert length_filter(corpus, tiny.vocabulary())[0].val == pairs[:1]


@pytest.mark.parametrize("train, val, empty", [([(LONG, "le")], PAIRS, "train"), (PAIRS, [("\u200b", "le")], "val")])
def test_nothing_left_is_said(train, val, empty):
    with pytest.raises(ValueError, match=f"^no sentence of {empty} has visible text and at most {LONGEST} pieces"):
        length_filter(corpora.Corpus(train, val, {}, {}), tiny.vocabulary())
