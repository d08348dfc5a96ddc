"""Pieces to words, by hand and by a plain loop."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from synthetic import message, texts, with_map

from attnviz import select
from attnviz.trace import AttentionMap, Token

KINDS = ("cross", "encoder", "decoder")


# -- words -------------------------------------------------------------------------------------------------------------


def test_words_by_hand():
    """Keys are summed, queries averaged: source a | bl ack | <eos>, target no ir | <eos>."""
    trace = synthetic.trace("a black", "noir", pieces=True)
    assert texts(trace.source) == ["a", "bla", "ck", "<eos>"] and texts(trace.target) == ["no", "ir", "<eos>"]
    trace = with_map(
        trace,
        "cross",
        [
            [
                [0.125, 0.5, 0.25, 0.125],  # no    -> a .125, black .75, <eos> .125
                [0.375, 0.125, 0.125, 0.375],  # ir    -> a .375, black .25, <eos> .375
                [0, 0.25, 0, 0.75],
            ]
        ],
    )  # <eos> -> a 0,    black .25, <eos> .75
    trace = replace(trace, log_probs=(-1, -0.5, -0.25))
    words = select.words(trace)
    assert texts(words.source) == ["a", "black", "<eos>"] and texts(words.target) == ["noir", "<eos>"]
    assert words.map().weights.tolist() == [[[0.25, 0.5, 0.25], [0, 0.25, 0.75]]]
    assert words.log_probs == (-1.5, -0.25) and words.log_prob == trace.log_prob
    assert words.alternatives == ((), ()) and words.level == "words"
    assert words.source[1] == Token("black", 2, 7, word=1, pieces=2) and words.source[0].pieces == 1


def test_decoder_words_by_hand():
    """Inputs are <bos> no ir; the word "noir" sees <bos> and its own first piece, <eos> sees the whole word."""
    trace = synthetic.trace("a", "noir", pieces=True)
    trace = with_map(trace, "decoder", [[[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]])
    words = select.words(trace)
    assert texts(words.keys(words.map("decoder"))) == ["<bos>", "noir"]
    assert words.map("decoder").weights.tolist() == [[[0.75, 0.25], [0.25, 0.75]]]
    assert words.visible(words.map("decoder")).tolist() == [[True, True], [True, True]]


def test_a_word_of_one_piece_does_not_see_itself():
    trace = synthetic.trace("a", "le chat", kinds=("decoder",), pieces=True)  # le | ch at | <eos>
    words = select.words(trace)
    assert words.visible(words.map("decoder")).tolist() == [
        [True, False, False],
        [True, True, True],
        [True, True, True],
    ]


def test_words_of_a_model_that_only_reads_by_hand():
    """Both axes are the source, no ir | un: the first word sees itself, the second both."""
    source = (Token("no", 0, 2, word=0), Token("ir", 2, 4, word=0), Token("un", 5, 7, word=1))
    maps = (AttentionMap("decoder", 0, [[[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]]),)
    trace = replace(
        synthetic.trace("a", ""),
        text="noir un",
        source=source,
        target=(),
        translation="",
        log_probs=(),
        alternatives=(),
        maps=maps,
    )
    words = select.words(trace)
    assert texts(words.source) == ["noir", "un"] and words.target == () and words.log_probs == ()
    assert words.map("decoder").weights.tolist() == [[[1, 0], [0.5, 0.5]]]
    assert words.visible(words.map("decoder")).tolist() == [[True, False], [True, True]]
    assert select.select(trace, "decoder", words=True).sides == ("input", "input")


def test_a_word_does_not_begin_with_the_space_before_it():
    source = (Token("a", 0, 1, word=0), Token(" ", 1, 2, word=1), Token("b", 2, 3, word=1), Token("  ", 3, 5, word=2))
    trace = replace(synthetic.trace("a", ""), text="a b  ", source=source, maps=())
    assert select.words(trace).source[1:] == (Token("b", 2, 3, word=1, pieces=2), source[3])


def test_words_without_probabilities():
    trace = replace(synthetic.trace("a", "noir", pieces=True), log_probs=(), alternatives=())
    assert select.words(trace).log_probs == () and texts(select.words(trace).target) == ["noir", "<eos>"]


def test_a_target_cut_inside_a_word_has_no_decoder_map():
    whole = synthetic.trace("a", "le chat", kinds=KINDS, pieces=True)
    n = len(whole.target) - 1
    maps = tuple(
        AttentionMap(
            m.kind, 0, m.weights if m.kind == "encoder" else m.weights[:, :n, : n if m.kind == "decoder" else None]
        )
        for m in whole.maps
    )
    cut = replace(
        whole, target=whole.target[:n], log_probs=whole.log_probs[:n], alternatives=(), maps=maps, complete=False
    )
    words = select.words(cut)
    assert [m.kind for m in words.maps] == ["cross", "encoder"] and texts(words.target) == ["le", "chat"]
    with pytest.raises(ValueError) as error:
        select.select(cut, "decoder", words=True)
    assert message(error) == (
        "kind must be one that the trace of synthetic has at the level of words (cross 0, encoder 0); got decoder"
    )


def test_a_target_cut_after_a_word_of_one_piece_keeps_its_decoder_map():
    whole = synthetic.trace("a", "grand un", kinds=("decoder",), pieces=True)  # gra nd | un | <eos>
    cut = replace(
        whole,
        target=whole.target[:3],
        log_probs=whole.log_probs[:3],
        alternatives=(),
        complete=False,
        maps=(AttentionMap("decoder", 0, whole.maps[0].weights[:, :3, :3]),),
    )
    words = select.words(cut)
    assert texts(words.keys(words.map("decoder"))) == ["<bos>", "grand"] and texts(words.target) == ["grand", "un"]


def test_words_of_words_and_of_whole_words():
    pieces = synthetic.trace("the black the", "le noir le", kinds=KINDS, heads=2)
    words = select.words(pieces)
    assert select.words(words) is words
    assert words.source == pieces.source and words.target == pieces.target  # repeated words stay apart
    for kind in KINDS:
        assert words.map(kind) == pieces.map(kind)


def test_an_unknown_piece_makes_an_unknown_word_and_gaps_stay_in_it():
    source = (
        Token("a", 0, 1, word=0),
        Token("☃", 2, 3, word=0, unknown=True),
        Token("b", 4, 5, word=1),
        Token("c", 5, 6),
        Token("d", 6, 7),
        Token("<eos>", 7, 7, special=True),
    )
    trace = replace(
        synthetic.trace("a b c d", "un"),
        text="a ☃ bcd",
        source=source,
        maps=(AttentionMap("cross", 0, np.full((1, 2, 6), 1 / 6)),),
    )
    words = select.words(trace)
    assert words.source[0] == Token("a ☃", 0, 3, word=0, unknown=True, pieces=2)
    assert texts(words.source[1:]) == ["b", "c", "d", "<eos>"]  # no word: each alone
    assert words.map().weights[0, 0] == pytest.approx([2 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6])


@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(["a", "the", "black", "running"]), max_size=5),
    st.lists(st.sampled_from(["un", "chien", "noir", "!"]), max_size=5),
)
def test_words_agree_with_a_plain_loop(seed, source, target):
    trace = synthetic.trace(" ".join(source), " ".join(target), heads=2, layers=2, kinds=KINDS, seed=seed, pieces=True)
    words = select.words(trace)
    for m in trace.maps:
        queries = [t.word for t in trace.queries(m)]
        keys = [-1 if t.text == "<bos>" else t.word for t in trace.keys(m)]
        names = [list(dict.fromkeys(axis)) for axis in (queries, keys)]  # the words, in order
        wanted = [
            [
                [
                    np.mean(
                        [
                            sum(m.weights[h, i, j] for j, key in enumerate(keys) if key == k)
                            for i, query in enumerate(queries)
                            if query == q
                        ]
                    )
                    for k in names[1]
                ]
                for q in names[0]
            ]
            for h in range(2)
        ]
        weights = words.map(m.kind, m.layer).weights
        np.testing.assert_allclose(weights, wanted, atol=1e-6)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert not weights[:, ~words.visible(words.map(m.kind, m.layer))].any()
    assert words.log_prob == pytest.approx(trace.log_prob)
