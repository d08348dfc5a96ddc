"""Labels: nothing vanishes, nothing merges, nothing runs off."""

import html

import pytest
from grids import EOS

from attnviz.figures import labels
from attnviz.trace import Token


@pytest.mark.parametrize(
    "text, shown",
    [
        (" ", "␣"),
        ("\t\n", "⇥⏎"),
        ("\u3000", "␣"),
        ("", "␣"),
        ("\u200d", "U+200D"),
        ("\ufe0f", "U+FE0F"),
        ("\u3164", "U+3164"),
        ("\u200b ", "U+200B␣"),
        ("run\u00adning", "running"),
        ("\u0301", "◌\u0301"),
        ("a\nb", "a b"),
        ("\x07\u202e\ud800", "���"),
        ("שלום", "\u2068שלום\u2069"),
        ("👩\u200d🚀", "👩\u200d🚀"),
    ],
)
def test_no_character_stays_invisible(text, shown):
    assert labels.plain(text) == shown


@pytest.mark.parametrize("text", ["<eos>", "<b>x</b>", "</script>", "&amp;", '"', "'", "<a href='javascript:x'>"])
def test_labels_are_escaped_and_nothing_is_lost(text):
    label = labels.ticks([Token(text, 0, 0)], limit=40)[0]
    assert "<" not in label and html.unescape(label) == text


def test_a_pair_of_dollars_is_no_formula():
    assert "$" not in labels.ticks([Token("$x$", 0, 3)])[0]


def test_marks_of_pieces_unknown_and_special_tokens():
    tokens = [
        Token("run", 0, 3, word=0),
        Token("ning", 3, 7, word=0),
        Token("zzq", 8, 11, word=1, unknown=True),
        EOS,
        EOS,
    ]
    assert labels.ticks(tokens) == ["run", "·ning", "zzq⁇", "<i>&lt;eos&gt;</i>", "<i>&lt;eos&gt;</i>"]
    assert labels.named(tokens) == ["‘run’", "‘·ning’", "‘zzq⁇’", "<eos>", "<eos>"]


@pytest.mark.parametrize(
    "text, limit, shown",
    [
        ("anticonstitutionnellement", 12, "anticonstit…"),
        ("exactlytwelv", 12, "exactlytwelv"),
        ("日本語日本語", 6, "日本…"),
        ("שלוםשלום", 4, "\u2068שלו…\u2069"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    ],
)
def test_long_labels_are_cut_by_width(text, limit, shown):
    assert labels.ticks([Token(text, 0, 1)], limit) == [shown]


def test_thinning_keeps_the_chosen_position_and_distance():
    assert labels.thin(5, 10) == [0, 1, 2, 3, 4]
    assert labels.thin(10, 4) == [0, 3, 6, 9]
    assert labels.thin(10, 4, keep=4) == [0, 4, 9]
    assert labels.thin(0, 4) == []
