"""Heads, special tokens, grids and differences, by hand and as properties."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from synthetic import message, texts, with_map

from attnviz import select

KINDS = ("cross", "encoder", "decoder")


# -- select ------------------------------------------------------------------------------------------------------------


def test_select_takes_a_head_or_the_mean_of_heads():
    trace = synthetic.trace(heads=3, layers=2)
    weights = trace.map("cross", 1).weights
    single, mean = select.select(trace, head=2), select.select(trace)
    assert single.head == 2 and single.layer == 1 and mean.head is None
    np.testing.assert_array_equal(single.weights, weights[2])
    np.testing.assert_allclose(mean.weights, weights.mean(0), rtol=1e-6)
    assert mean.removed.tolist() == [0] * 4 and mean.visible.all()
    assert mean.queries == trace.target and mean.keys == trace.source


def test_hiding_special_tokens_by_hand():
    trace = with_map(
        synthetic.trace("a b", "u v"), "cross", [[[0.25, 0.25, 0.5], [0.75, 0.125, 0.125], [0.1, 0.2, 0.7]]]
    )
    grid = select.select(trace, special=False)
    assert texts(grid.queries) == ["u", "v"] and texts(grid.keys) == ["a", "b"]
    np.testing.assert_allclose(grid.weights, [[0.5, 0.5], [6 / 7, 1 / 7]], rtol=1e-6)
    assert grid.removed.tolist() == [0.5, 0.125]


def test_a_row_wholly_on_special_tokens_is_blank():
    trace = synthetic.trace("a", "u v", kinds=("decoder",))
    grid = select.select(trace, "decoder", special=False)  # the first step sees <bos> alone
    assert texts(grid.keys) == ["u", "v"] and texts(grid.queries) == ["u", "v"]
    assert np.isnan(grid.weights[0]).all() and grid.removed[0] == 1
    assert grid.weights[1].tolist() == [1, 0]
    assert grid.visible.tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize("source, target, name", [("a", "", "translation"), ("", "un", "source")])
def test_hiding_special_tokens_must_leave_something(source, target, name):
    with pytest.raises(ValueError) as error:
        select.select(synthetic.trace(source, target), special=False)
    assert message(error) == f"the {name} is empty, it has only <eos>; show special tokens to see this map"


def test_a_trace_without_cross_attention_shows_what_it_has():
    reader = synthetic.trace("The dog", kinds=("encoder",))
    assert select.select(reader).kind == "encoder" and select.select(synthetic.trace()).kind == "cross"
    with pytest.raises(ValueError, match=r"encoder 0\).*got cross"):
        select.select(reader, "cross")


@pytest.mark.parametrize("head", [-1, 2])
def test_select_says_which_heads_there_are(head):
    with pytest.raises(ValueError) as error:
        select.select(synthetic.trace(heads=2), head=head)
    assert message(error) == f"head must be None, for the mean, or one of 0 to 1; got {head}"


def test_a_trace_without_attention_has_words_and_no_map():
    trace = replace(synthetic.trace("The black dog", "Le chien", pieces=True), maps=())
    words = select.words(trace)
    assert texts(words.source) == ["The", "black", "dog", "<eos>"] and words.maps == ()
    for level in (False, True):
        with pytest.raises(ValueError) as error:
            select.select(trace, words=level)
        assert message(error) == "synthetic has no attention, so it has no map to show; got cross"


@given(st.integers(0, 2**32), st.sampled_from(KINDS), st.sampled_from([None, 0, 1]), st.booleans(), st.booleans())
def test_drawn_rows_sum_to_one_and_name_their_tokens(seed, kind, head, words, special):
    trace = synthetic.trace("The black dog runs", "Le chien noir court", heads=2, kinds=KINDS, seed=seed, pieces=True)
    grid = select.select(trace, kind, head=head, words=words, special=special)
    blank = np.isnan(grid.weights).all(-1)
    np.testing.assert_allclose(grid.weights[~blank].sum(-1), 1, atol=1e-5)
    assert (grid.removed[blank] == 1).all() and ((grid.removed >= 0) & (grid.removed <= 1 + 1e-6)).all()
    assert not np.nan_to_num(grid.weights)[~grid.visible].any()
    assert special or not any(token.special for token in (*grid.queries, *grid.keys))
    assert not special or not grid.removed.any()
    assert ("noir" in texts(grid.queries) or kind == "encoder") == words or kind == "encoder"


def test_a_grid_is_read_only_and_of_one_shape():
    grid = select.select(synthetic.trace())
    with pytest.raises(ValueError, match="read-only"):
        grid.weights[0, 0] = 1
    with pytest.raises(ValueError) as error:
        replace(grid, removed=np.zeros(3))
    assert message(error) == "removed must have shape (4,), as the tokens do; got (3,)"


# -- difference --------------------------------------------------------------------------------------------------------


def test_difference_by_hand():
    base = synthetic.trace("a", "u")
    a, b = (
        select.select(with_map(base, "cross", weights))
        for weights in ([[[1, 0], [0.5, 0.5]]], [[[0.25, 0.75], [0.5, 0.5]]])
    )
    assert select.difference(a, b).tolist() == [[0.75, -0.75], [0, 0]]


def test_difference_needs_the_same_target():
    a, b = (
        select.select(synthetic.trace("A dog", target, model=name))
        for target, name in (("Un chien", "bahdanau"), ("Le chien", "transformer"))
    )
    with pytest.raises(ValueError) as error:
        select.difference(a, b)
    assert message(error) == (
        "two maps must share queries and keys to be subtracted; the queries of bahdanau (Un chien <eos>) "
        "are not those of transformer (Le chien <eos>): force the same target on both"
    )


def test_difference_needs_the_same_places():
    a, b = (select.select(synthetic.trace(source, "un", model="m")) for source in ("a a", "a  a"))  # the same texts
    with pytest.raises(ValueError, match="the keys of m"):
        select.difference(a, b)


def test_rows_are_read_from_another_step():
    """Row 0 of the map is that of step 1; the last has none, and is blank with and without special tokens."""
    trace = synthetic.trace("The dog", "Le chien", heads=2)
    own, count = trace.map().weights[1], len(trace.target)
    grid = select.select(trace, head=1, shift=1)
    assert np.array_equal(grid.weights[:-1], own[1:]) and np.isnan(grid.weights[-1]).all()
    assert grid.removed[:-1].tolist() == [0] * (count - 1) and np.isnan(grid.removed[-1])
    plain = select.select(trace, head=1, special=False, shift=-1)
    assert np.isnan(plain.weights[0]).all() and np.isnan(plain.removed[0]) and not np.isnan(plain.removed[1:]).any()
    np.testing.assert_allclose(np.nansum(plain.weights, 1)[1:], 1, atol=1e-6)
    for other, kind in ((select.words(trace), "cross"), (trace, "encoder")):
        with pytest.raises(ValueError, match="^shift must be 0 but for cross-attention of a trace of pieces; got 1$"):
            select.select(other, kind, shift=1)


@pytest.mark.parametrize("shift", [1, -1])
@pytest.mark.parametrize("special", [True, False])
def test_words_are_read_through_the_rows_of_their_pieces(shift, special):
    """A word is the mean of its pieces' rows, each read from another step; a piece without a row does not count."""
    trace = synthetic.trace("The black dog", "Le chien noir", heads=2, pieces=True)
    own = trace.map().weights[1].astype(float)
    grid = select.select(trace, head=1, words=True, special=special, shift=shift)

    def groups(tokens):
        of_word = itertools.groupby(range(len(tokens)), lambda place: (tokens[place].word, tokens[place].special))
        return [list(part) for _, part in of_word]

    rows = []
    for pieces in groups(trace.target):
        read = [own[piece + shift] for piece in pieces if 0 <= piece + shift < len(own)]
        row = np.mean(read, axis=0) if read else np.full(own.shape[1], np.nan)
        rows.append([row[keys].sum() for keys in groups(trace.source)])
    wanted = np.array(rows)
    if not special:
        wanted = wanted[:-1, :-1] / wanted[:-1, :-1].sum(-1, keepdims=True)
    np.testing.assert_allclose(grid.weights, wanted, atol=1e-6)
    assert max(len(part) for part in groups(trace.target)) > 1
