"""How much of each content word the rows of a translation read."""

import numpy as np
import pytest

from attnviz.alignment import coverage
from attnviz.trace import AttentionMap, Token, Trace


def tokens(text):
    words, result, place = text.split(), [], 0
    for number, word in enumerate(words):
        start = text.index(word, place)
        result.append(Token(word, start, start + len(word), word=number))
        place = start + len(word)
    return (*result, Token("<eos>", len(text), len(text), special=True))


def trace(weights, *more):
    maps = [AttentionMap("cross", layer, np.array(rows, np.float32)) for layer, rows in enumerate((weights, *more))]
    source, target = tokens("Repair the clock"), tokens("die Uhr")
    return Trace("en-de/x", "x", "Repair the clock", "die Uhr", False, source, target, (), ((), (), ()), tuple(maps))


def test_by_hand():
    """Rows: die, Uhr, <eos>; columns: Repair, the, clock, <eos>. The row of <eos> does not count."""
    made = trace([[[0.1, 0.7, 0.1, 0.1], [0.0, 0.2, 0.8, 0.0], [0.9, 0.0, 0.0, 0.1]]])
    assert {word.text: word.weight for word in coverage(made)} == pytest.approx({"Repair": 0.1, "clock": 0.8})


def test_the_mean_of_the_heads_of_the_last_layer():
    first, even = [[[1.0, 0, 0, 0]] * 3] * 2, [[[0.0, 0, 1, 0]] * 3, [[0.25] * 4] * 3]
    assert [word.weight for word in coverage(trace(first, even))] == pytest.approx([0.125, 0.625])


def test_no_map():
    source, target = tokens("Repair the clock"), tokens("die Uhr")
    made = Trace("en-de/x", "x", "Repair the clock", "die Uhr", False, source, target, (), ((), (), ()), ())
    assert coverage(made) == ()
