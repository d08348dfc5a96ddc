"""Order swaps, coverage and the alignment error of one sentence, by hand and against the report."""

import numpy as np
import pytest
import synthetic

from attnviz import across, alignment, gold, loading
from attnviz.models import measured
from attnviz.trace import Token

SOURCE = (Token("a", 0, 1), Token("b", 2, 3), Token("c", 4, 5), Token("<eos>", 5, 5, special=True))


def columns(*argmax, kind="cross", head=0):
    count = len(argmax)
    return {
        "kind": np.full(count, kind, dtype=object),
        "layer": np.zeros(count, int),
        "head": np.full(count, head),
        "argmax": np.array(argmax),
    }


@pytest.mark.parametrize(
    ("argmax", "swaps", "coverage"),
    [
        ((0, 1, 2, 3), 0, 1),
        ((0, 2, 1, 3), 1, 1),
        ((2, 3, 1, 0), 2, 1),  # <eos> in between is no place
        ((1, 1, 1, 3), 0, 1 / 3),
        ((3, 3), 0, 0),
    ],
)
def test_by_hand(argmax, swaps, coverage):
    assert across.looks(columns(*argmax), SOURCE) == pytest.approx({"order_swaps": swaps, "coverage": coverage})


def test_several_heads_give_their_mean():
    first, second = columns(0, 1, 2), columns(2, 1, 0, head=1)
    both = {name: np.concatenate([first[name], second[name]]) for name in first}
    assert across.looks(both, SOURCE) == {"order_swaps": 1, "coverage": 1}


def test_without_cross_attention_there_is_no_number():
    assert all(np.isnan(value) for value in across.looks(columns(0, 1, kind="encoder"), SOURCE).values())


def test_the_alignment_error_is_that_of_the_report(root):
    pair = gold.shipped("en-fr")[0]
    trace = loading.load("en-fr/bahdanau", root).trace(pair.source, pair.target)
    (weights,) = alignment.on_words(trace, pair).values()
    wanted = alignment.count(alignment.argmax(weights), pair).error_rate
    assert across.alignment_error(trace, pair) == wanted
    assert set(across.looks(measured.of_trace(trace, False).columns(), trace.source)) == set(across.LOOKS)
    with pytest.raises(ValueError, match="the trace must be of the pieces of"):
        across.alignment_error(synthetic.trace("a b", "c", kinds=("cross",)), pair)
