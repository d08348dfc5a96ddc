"""Arcs of dependencies: which are solid, what they say, and what is refused."""

import itertools

import numpy as np
import pytest

from attnviz.figures.arcs import dependency_arcs
from attnviz.figures.maps import COLUMN
from attnviz.syntax import Parse

PARSE = Parse("a <b> dog runs", ((0, 1), (2, 5), (6, 9), (10, 14)), (2, 2, 3, -1), ("det", "amod", "nsubj", "root"))


def test_arcs_that_a_head_looks_along_are_solid_and_said():
    chart = dependency_arcs(PARSE, np.array([2, 0, 1, -1]), "head 1")
    assert [shape.line.dash for shape in chart.layout.shapes] == ["solid", "solid", "dot"]
    assert [note.text for note in chart.layout.annotations] == ["determiner", "adjective", "subject"]
    assert chart.description == (
        "Dependencies of the sentence. In 2 of 3, head 1 looks from one word to the other: a → dog, dog → <b>."
    )
    ends = [shape.path.rsplit("M", 1)[1].split("L")[1] for shape in chart.layout.shapes[:2]]
    assert ends == ["2,0", "1,0"]  # the arrow stands at the word that is looked at


def test_words_are_escaped():
    chart = dependency_arcs(PARSE, np.array([2, 0, 1, -1]))
    assert list(chart.layout.xaxis.ticktext) == ["a", "&lt;b&gt;", "dog", "runs"]
    assert chart.data[0].hovertext[3] == "‘runs’ (4) looks at no word"
    assert chart.data[0].hovertext[1] == "‘&lt;b&gt;’ (2), adjective of ‘dog’ (3), looks most at ‘a’ (1)"


@pytest.mark.parametrize("count", [11, 40])
def test_neither_words_nor_labels_meet_in_the_narrowest_column(count):
    words = [(12 * place, 12 * place + 11) for place in range(count)]
    governors = [-1, *[max(place - 1 - place % 3 % 2, 0) for place in range(1, count)]]
    parse = Parse("raincoatted " * count, tuple(words), tuple(governors), ("root", *["det"] * (count - 1)))
    chart = dependency_arcs(parse, np.array([-1, 0, *[-1] * (count - 2)]))
    axis, margin = chart.layout.xaxis, chart.layout.margin
    inner = COLUMN - margin.l - margin.r
    between = inner / count * min(np.diff(axis.tickvals)) * np.sin(np.radians(-axis.tickangle))
    assert between >= axis.tickfont.size  # the lines of slanted or upright words
    labels = chart.layout.annotations
    assert labels[0].x == 0.5 and 0 < len(labels) < count  # that of the arc which is looked along stays
    for first, second in itertools.combinations(labels, 2):
        assert abs(first.x - second.x) * inner / count > 55 or abs(first.y - second.y) * 26 > 12


@pytest.mark.parametrize("looks", [[0, 1], [0, 1, 2, 4], [-2, 0, 0, 0]])
def test_looks_of_other_words_are_refused(looks):
    with pytest.raises(ValueError, match="looks must have a word from 0 to 3, or -1, for each of 4 words"):
        dependency_arcs(PARSE, np.array(looks))
