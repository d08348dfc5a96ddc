"""The sentences of a text, and when they are translated one by one."""

from dataclasses import replace

import pytest

from attnviz import from_arrays
from attnviz.data.sentences import notices, one_by_one, split


@pytest.mark.parametrize(
    "sentences",
    [
        ("Mr. Hill met Dr. Jones at 3 p.m. on Monday.", "Where is he?"),
        ("It costs $3.50 or 3.5 km.", "See www.example.com for more.", "Fine!"),
        ("The U.S. is big.", "J. R. R. Tolkien wrote it, e.g. in 1937."),
        ("“Come here!” he said.", "“Why?”"),
        ("No. 5 is alive… or not.", "WE ARE HERE."),
        ("A dog runs",),
        ("私は行く。", "彼は来ない。"),
    ],
)
def test_a_full_stop_within_a_sentence_does_not_end_it(sentences):
    for between in (" ", "  ", "\n\n"):
        assert split(f" {between.join(sentences)} ") == sentences


@pytest.mark.parametrize("text", ["", " ", "...", "?!\n"])
def test_a_text_without_a_letter_has_no_sentence(text):
    assert split(text) == ()


def test_only_a_long_text_of_several_sentences_is_divided():
    text, pieces = "A dog runs. A cat sits.", lambda whole: len(whole.split())
    assert one_by_one(text, pieces, 5) == ("A dog runs.", "A cat sits.")
    assert one_by_one(text, pieces, 6) == ()
    assert one_by_one("A dog runs and a cat sits", pieces, 5) == ()


def test_a_number_is_no_text():
    with pytest.raises(ValueError, match="text must be text; got 3"):
        split(3)


def test_a_notice_says_how_many_sentences_a_long_text_has():
    tokens = ["A dog runs.", "A cat sits."]
    trace = from_arrays([[[[1.0, 0.0]]]], tokens, ["x"], kind="cross")
    assert notices(trace) == ()
    (notice,) = notices(replace(trace, longest=1))
    assert "at most 1 pieces, this one has 2" in notice
    assert notice.endswith("It has 2 sentences: translate one at a time.")
