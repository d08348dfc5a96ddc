"""Numbers in words of the page."""

import math

import pytest

from dashboard.markup import tables
from dashboard.markup.text import number


@pytest.mark.parametrize("value, written", [(-0.876, "−0.88"), (-0.004, "0.00"), (0.0, "0.00"), (12, "12.00")])
def test_a_number_has_two_decimals_and_a_true_minus(value, written):
    assert number(value) == written


def test_a_cell_of_a_table_has_a_true_minus_and_a_dash_for_no_number():
    assert tables.cell(-0.5, "+.2f") == "−0.50" and tables.cell(0.25, ".0%") == "25%"
    assert tables.cell(math.nan, ".2f") == tables.cell(1.0, ".2f", seen=False) == "–"
