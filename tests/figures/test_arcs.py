"""Arcs of dependencies: which are solid, what they say, and what is refused."""

import numpy as np
import pytest

from attnviz.figures.arcs import dependency_arcs
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
    assert list(chart.data[0].text) == ["a", "&lt;b&gt;", "dog", "runs"]
    assert chart.data[0].hovertext[3] == "‘runs’ (4) looks at no word"


@pytest.mark.parametrize("looks", [[0, 1], [0, 1, 2, 4], [-2, 0, 0, 0]])
def test_looks_of_other_words_are_refused(looks):
    with pytest.raises(ValueError, match="looks must have a word from 0 to 3, or -1, for each of 4 words"):
        dependency_arcs(PARSE, np.array(looks))
