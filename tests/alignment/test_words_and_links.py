"""Alignment error rate: the definition by hand and by an oracle, links from weights, words from pieces."""

import math
from dataclasses import replace

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from linked import PAIR, forced, sharp

from attnviz import alignment, gold, select
from attnviz.alignment import Counts
from attnviz.trace import AttentionMap, Token

# --- the definition


def test_the_error_rate_by_hand():
    """A = 0-0 0-1 1-2, S = 0-0 1-2 2-1, P = S and 0-1: |A∩S| = 2, |A∩P| = 3; 1 - (2 + 3) / (3 + 3) = 1/6."""
    predicted = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=bool)
    counts = alignment.count(predicted, PAIR)
    assert counts == Counts(predicted=3, sure=3, predicted_sure=2, predicted_possible=3)
    assert counts.error_rate == pytest.approx(1 / 6) and counts.precision == 1 and counts.recall == pytest.approx(2 / 3)
    assert counts.to_dict() == {"error_rate": 0.1667, "precision": 1.0, "recall": 0.6667, "links": 3}


def test_counts_add_up_over_the_corpus():
    """Not the mean of the sentences' rates: (1 + 1) / (1 + 1) and (0 + 0) / (3 + 1) make 1 - 2 / 6."""
    assert (Counts(1, 1, 1, 1) + Counts(3, 1, 0, 0)).error_rate == pytest.approx(4 / 6)


def test_what_is_undefined():
    nothing = Counts(0, 0, 0, 0)
    assert all(math.isnan(value) for value in (nothing.error_rate, nothing.precision, nothing.recall))
    assert nothing.to_dict() == {"error_rate": None, "precision": None, "recall": None, "links": 0}
    assert Counts(0, 2, 0, 0).error_rate == 1


def oracle(predicted, sure, possible):
    """Och & Ney 2003, with sets of links."""
    a, s, p = ({(i, j) for i, j in links} for links in (predicted, sure, possible | sure))
    return 1 - (len([x for x in a if x in s]) + len([x for x in a if x in p])) / (len(a) + len(s))


@st.composite
def pair_and_predicted(draw):
    sources, targets = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    cells = st.sets(st.tuples(st.integers(0, sources - 1), st.integers(0, targets - 1)))
    sure, more, predicted = draw(cells), draw(cells), draw(cells)
    spans = [tuple((2 * i, 2 * i + 1) for i in range(count)) for count in (sources, targets)]
    texts = [" ".join("x" * count) for count in (sources, targets)]
    return gold.LinkedPair(*texts, *spans, frozenset(sure), frozenset(sure | more)), predicted


@given(pair_and_predicted())
def test_the_error_rate_is_that_of_the_definition(example):
    pair, predicted = example
    matrix = np.zeros((len(pair.target_words), len(pair.source_words)), dtype=bool)
    for source, target in predicted:
        matrix[target, source] = True
    counts = alignment.count(matrix, pair)
    if predicted or pair.sure:
        assert counts.error_rate == pytest.approx(oracle(predicted, pair.sure, pair.possible))
        assert 0 <= counts.error_rate <= 1
    assert counts.predicted_sure <= counts.predicted_possible <= counts.predicted


@given(pair_and_predicted())
def test_any_links_between_sure_and_possible_are_without_error(example):
    pair, predicted = example
    links = pair.sure | (predicted & pair.possible)
    matrix = np.zeros((len(pair.target_words), len(pair.source_words)), dtype=bool)
    for source, target in links:
        matrix[target, source] = True
    assert not links or alignment.count(matrix, pair).error_rate == 0


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"^an alignment of this pair must have shape \(3, 3\); got \(3, 4\)$"):
        alignment.count(np.zeros((3, 4), dtype=bool), PAIR)


# --- weights to links


def test_argmax_and_threshold_by_hand():
    weights = np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [np.nan] * 3])
    assert alignment.argmax(weights).tolist() == [[True, False, False], [True, False, False], [False] * 3]
    assert alignment.above(0.3)(weights).tolist() == [[True, True, False], [True, True, False], [False] * 3]


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(0, 1)))
def test_argmax_links_every_row_once_where_the_weight_is_largest(weights):
    links = alignment.argmax(weights)
    assert (links.sum(1) == 1).all() and (weights[links] == weights.max(1)).all()


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1])
def test_a_threshold_out_of_range_is_refused(threshold):
    with pytest.raises(ValueError) as error:
        alignment.above(threshold)
    assert str(error.value) == f"threshold must be above 0 and at most 1; got {threshold}"


def test_the_diagonal():
    assert alignment.diagonal(3, 3).tolist() == np.eye(3, dtype=bool).tolist()
    assert alignment.diagonal(4, 2).argmax(1).tolist() == [0, 0, 1, 1]
    assert alignment.diagonal(2, 5).argmax(1).tolist() == [1, 3]  # the middles of the halves


@given(st.integers(1, 40), st.integers(1, 40))
def test_the_diagonal_reads_the_same_from_both_ends(targets, sources):
    best = alignment.diagonal(targets, sources).argmax(1)
    assert (alignment.diagonal(targets, sources).sum(1) == 1).all() and (np.diff(best) >= 0).all()
    middles = (2 * np.arange(targets) + 1) * sources % (2 * targets) != 0  # not on the edge of two source words
    assert (best + best[::-1])[middles & middles[::-1]].tolist() == [sources - 1] * (middles & middles[::-1]).sum()


# --- pieces to words


def test_words_are_those_of_select_when_the_pair_has_the_same():
    trace = synthetic.trace("The black horse", "Le cheval noir", heads=2, layers=2, pieces=True)
    pair = gold.parse(f"{trace.text}\n{trace.translation}\n0-0")[0]
    weights = alignment.on_words(trace, pair)
    assert list(weights) == [(0, 0), (0, 1), (1, 0), (1, 1), (0, None), (1, None), (None, None)]
    for layer in (0, 1):
        for head in (0, 1, None):
            grid = select.select(trace, layer=layer, head=head, words=True, special=False)
            np.testing.assert_allclose(weights[layer, head], grid.weights, atol=1e-6)
    means = [select.select(select.words(trace), layer=layer).weights for layer in (0, 1)]
    both = np.mean(means, axis=0)[:-1, :-1]
    np.testing.assert_allclose(weights[None, None], both / both.sum(1, keepdims=True), atol=1e-6)


def test_words_smaller_than_pieces_share_them_by_characters():
    """ａｂｃ is one piece and two words, ab and c: 2/3 and 1/3 of its .6; d has .3, <eos> .1."""
    pair = gold.parse("ab|c d\nx\n0-0 1-0 2-0")[0]
    trace = forced(pair, [[[0.6, 0.3, 0.1], [0, 0, 1]]])
    assert [token.text for token in trace.source] == ["abc", "d", "<eos>"]
    assert alignment.on_words(trace, pair)[0, 0][0].tolist() == pytest.approx([0.4 / 0.9, 0.2 / 0.9, 0.3 / 0.9])


def test_a_piece_over_two_target_words_speaks_for_both():
    pair = gold.parse("a b\nxy|z\n0-0 1-1")[0]
    weights = alignment.on_words(forced(pair, [[[0.25, 0.5, 0.25], [0, 0, 1]]]), pair)[0, 0]
    assert weights.tolist() == [pytest.approx([1 / 3, 2 / 3])] * 2


def test_a_piece_of_blank_stands_with_the_piece_it_leads():
    """As tokenizers make them: a space of its own before the word, and one that nobody typed, of no width."""
    pair = gold.parse("a b\nx\n0-0")[0]
    trace = forced(pair, [[[0.5, 0.25, 0.25], [0, 0, 1]]])
    a, b, end = trace.source
    pieces = (Token("", 0, 0, word=0), a, Token(" ", 1, 2, word=1), b, end)
    trace = replace(
        trace, source=pieces, maps=(AttentionMap("cross", 0, [[[0.1, 0.1, 0.3, 0.1, 0.4], [0, 0, 0, 0, 1]]]),)
    )
    assert alignment.on_words(trace, pair)[0, 0][0].tolist() == pytest.approx([0.2 / 0.6, 0.4 / 0.6])


def test_a_row_with_nothing_but_special_tokens_links_nothing():
    pair = gold.parse("a b\nx y\n0-0 1-1")[0]
    weights = alignment.on_words(forced(pair, [[[0, 0, 1], [0.5, 0.25, 0.25], [0, 0, 1]]]), pair)[0, 0]
    assert np.isnan(weights[0]).all() and weights[1].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert alignment.argmax(weights).tolist() == [[False, False], [True, False]]


def test_a_shift_reads_another_row():
    """x y z attend to a b c; a step later to b c and <eos>, a step earlier z to b, y to a, and x has no row."""
    pair = gold.parse("a b c\nx y z\n0-0 1-1 2-2")[0]
    trace = forced(pair, [sharp(0, 1, 2, 3, size=4)])
    links = {shift: alignment.argmax(alignment.on_words(trace, pair, shift)[0, 0]).nonzero() for shift in (-1, 0, 1)}
    assert {shift: [row.tolist() for row in predicted] for shift, predicted in links.items()} == {
        -1: [[1, 2], [0, 1]],
        0: [[0, 1, 2], [0, 1, 2]],
        1: [[0, 1], [1, 2]],
    }


def test_japanese_words_are_found_in_running_text():
    pair = gold.shipped("en-ja")[0]
    trace = synthetic.trace(pair.source, pair.target, seed=2)  # the whole run of letters is one token here
    weights = alignment.on_words(trace, pair)[0, 0]
    assert weights.shape == (len(pair.target_words), len(pair.source_words))
    np.testing.assert_allclose(weights.sum(1), 1)


@pytest.mark.parametrize("change", [{"text": "The black dog "}, {"translation": "Le chien noir."}])
def test_another_text_is_refused(change):
    trace = replace(forced(PAIR, [sharp(0, 2, 1, 3, size=4)]), **change)
    with pytest.raises(
        ValueError, match="^the trace must be of the pieces of 'The black dog' and, forced, 'Le chien noir'; got"
    ):
        alignment.on_words(trace, PAIR)


def test_words_for_pieces_are_refused():
    with pytest.raises(ValueError, match="got the words of"):
        alignment.on_words(select.words(forced(PAIR, [sharp(0, 2, 1, 3, size=4)])), PAIR)
