"""Numbers as plain tables."""

import pytest

from dashboard.markup.tables import cell, table


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
    ],
)
def test_a_number_that_is_rounded_to_0_has_no_sign(value, form, printed):
    assert cell(value, form) == printed and cell(value, form, seen=False) == cell(float("nan"), form) == "–"
