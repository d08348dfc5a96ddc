"""Numbers in words of the page, and as plain tables."""

import numpy as np
import pytest

from attnviz.data.tasks import TASKS
from attnviz.figures import labels
from attnviz.select import Grid
from attnviz.trace import Token, notebook
from dashboard.markup.tables import cell, grid_table, table
from dashboard.markup.text import number


@pytest.mark.parametrize(
    "text, printed",
    [
        ("-0.17", "−0.17"),
        ("+0.17", "+0.17"),
        ("-0.000", "0.000"),
        ("+0.00", "0.00"),
        ("-", "-"),
        ("-3 <i>", "-3 &lt;i&gt;"),
    ],
)
def test_numbers_have_the_minus_of_print_and_0_has_no_sign(text, printed):
    assert f"<td>{printed}</td>" in table("Terms", ["term"], [("dimension 1", [text])])


@pytest.mark.parametrize(
    "value, form, printed",
    [
        (-0.001, "+.2f", "0.00"),
        (0.001, "+.2f", "0.00"),
        (-0.5, "+.2f", "−0.50"),
        (-0.001, ".0%", "0%"),
        (2, ".2f", "2.00"),
        (0.25, ".0%", "25%"),
    ],
)
def test_a_number_that_is_rounded_to_0_has_no_sign(value, form, printed):
    assert cell(value, form) == printed and cell(value, form, seen=False) == cell(float("nan"), form) == "–"


@pytest.mark.parametrize("value, written", [(-0.876, "−0.88"), (-0.004, "0.00"), (0.0, "0.00"), (12, "12.00")])
def test_a_number_has_two_decimals_and_a_true_minus(value, written):
    assert number(value) == written


def test_a_token_has_one_sign_in_maps_and_in_tables():
    """The mark of a piece that continues a word, of an unknown token, and of the bytes of one character."""
    spans = [("run", 0, 3, 0), ("ning", 3, 7, 0), ("☺", 8, 9, 1), ("☺", 8, 9, 1)]
    tokens = (
        *(Token(text, *span, word=word) for text, *span, word in spans),
        Token("zzq", 10, 13, word=2, unknown=True),
    )
    signs = ["run", "·ning", "☺₁", "·☺₂", "zzq⁇"]
    assert labels.ticks(tokens) == labels.shown(tokens) == signs
    weights, visible = np.eye(5, dtype=np.float32), np.ones((5, 5), dtype=bool)
    grid = Grid("en-fr/x", "x", "cross", 0, 0, tokens, tokens, weights, np.zeros(5), visible)
    text = grid_table("Weights", grid, TASKS["en-fr"])
    html = notebook.weights_table(tokens, tokens, grid.weights, visible, ("target", "source"))
    for sign in signs:
        assert text.count(f">{sign}</th>") == html.count(f">{sign}</th>") == 2
