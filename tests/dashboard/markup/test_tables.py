"""Numbers in words of the page, and as plain tables."""

import pytest

from dashboard.markup.tables import cell, table
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
