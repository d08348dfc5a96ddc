"""Two directions made one: the pseudo-code of the paper as it is printed, examples by hand, and real models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnviz import alignment, gold, load
from attnviz.alignment import symmetry

LETTERS = gold.parse("a|b|c|d\nd|c|b|a\n0-3 1-2 2-1 3-0\n\nh|e|l|l|o\no|l|l|e|h\n0-4 1-3 2-2 3-1 4-0\n")


def printed(forward: set, backward: set, sources: int, targets: int, final: str | None) -> set:
    """GROW-DIAG-FINAL of Koehn et al. 2005, figure 1, line by line, with e the source and f the target."""
    links = forward & backward
    neighbouring = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

    def bare(word, side):
        return word not in {link[side] for link in links}

    before = None
    while before != len(links):
        before = len(links)
        for e in range(sources):
            for f in range(targets):
                if (e, f) in links:
                    for a, b in neighbouring:
                        new = e + a, f + b
                        if (bare(new[0], 0) or bare(new[1], 1)) and new in forward | backward:
                            links.add(new)
    for direction in (forward, backward) if final else ():
        for e in range(sources):
            for f in range(targets):
                free = bare(e, 0), bare(f, 1)
                if (any(free) if final == "or" else all(free)) and (e, f) in direction:
                    links.add((e, f))
    return links


@st.composite
def two_matrices(draw):
    matrix = arrays(bool, draw(st.tuples(st.integers(1, 6), st.integers(1, 6))))
    first = draw(matrix)
    return first, draw(arrays(bool, first.shape))


def cells(links: np.ndarray) -> set:
    return {(int(source), int(target)) for target, source in np.argwhere(links)}


@pytest.mark.parametrize(
    "method, final", [("grow-diag", None), ("grow-diag-final", "or"), ("grow-diag-final-and", "and")]
)
@given(two_matrices())
def test_as_the_paper_prints_it(method, final, both):
    targets, sources = both[0].shape
    expected = printed(*map(cells, both), sources, targets, final)
    assert cells(symmetry.symmetrise(*both, method)) == expected
    assert cells(both[0] & both[1]) <= expected <= cells(both[0] | both[1])


def test_by_hand():
    """“Maria no daba”: one word beside the link grows, one away from it only by -final."""
    forward = np.array([[1, 1, 0, 0], [0, 0, 0, 1]], bool)
    backward = np.array([[1, 0, 0, 0], [0, 0, 0, 0]], bool)
    made = {method: cells(symmetry.symmetrise(forward, backward, method)) for method in symmetry.METHODS}
    assert made == {
        "intersection": {(0, 0)},
        "union": {(0, 0), (1, 0), (3, 1)},
        "grow-diag": {(0, 0), (1, 0)},
        "grow-diag-final": {(0, 0), (1, 0), (3, 1)},
        "grow-diag-final-and": {(0, 0), (1, 0), (3, 1)},
    }


def test_real_models_in_both_directions():
    """Letters in reverse order are a task that is its own reverse."""
    translator, reverse = load("reverse/bahdanau"), load("reverse/luong-general")
    report = symmetry.report(translator, reverse, LETTERS)
    assert set(report["directions"]) == {"forward", "backward", *symmetry.METHODS}
    assert report["directions"]["grow-diag"] == {"error_rate": 0, "precision": 1, "recall": 1, "links": 9}
    (first, _), (forward, backward) = symmetry.both(translator, reverse, LETTERS)
    weights = alignment.on_words(translator.trace(LETTERS[0].source, LETTERS[0].target), LETTERS[0])[0, 0]
    assert np.allclose(first.probability, weights, atol=1e-6) and forward.links.shape == (5, 5)
    mean = symmetry.joined(forward, backward)
    assert np.array_equal(mean.probability, (forward.probability + backward.probability) / 2)


def test_moses():
    links = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 0]], bool)
    aligned = symmetry.Aligned(links, np.full((3, 3), 0.98765))
    assert aligned.moses() == "0-0 0-2 2-1" and symmetry.Aligned(~links & links, aligned.probability).moses() == ""
    assert aligned.moses(probabilities=True) == "0-0:0.988 0-2:0.988 2-1:0.988"


def test_a_direction_is_turned():
    """The reverse model's rows are the source's words: links that are no diagonal come out as they went in."""
    pair = gold.parse("a|b|c\nx|y\n0-1 1-0? 2-\n")[0]
    turned = symmetry.swapped(pair)
    assert (turned.sure, turned.possible, turned.alone) == ({(1, 0)}, {(1, 0), (0, 1)}, (set(), {2}))
    assert symmetry.swapped(turned) == pair


def test_a_pair_that_cannot_be_read_has_its_reason():
    model = load("reverse/bahdanau")
    long = gold.pair("ab " * 400, "ba", "0-0")
    results = list(symmetry.both(model, model, [long, LETTERS[0]]))
    assert isinstance(results[0][0], ValueError) and symmetry.joined(*results[0]) is results[0][0]
    assert not isinstance(symmetry.joined(*results[1]), ValueError)
    with pytest.raises(ValueError, match="the pair 'ab ab"):
        symmetry.report(model, model, [long])


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((np.ones((2, 3)), np.ones((3, 2))), "one shape"),
        ((np.ones(3), np.ones(3)), "one shape"),
        ((np.ones((2, 2)), np.ones((2, 2)), "grow"), "method must be one of intersection"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        symmetry.symmetrise(*arguments)
    with pytest.raises(ValueError, match="layer and head"):
        list(symmetry.aligned(load("reverse/bahdanau"), LETTERS, head=(3, 1)))
