"""Numbers in words of the page."""

import pytest

from dashboard.markup.text import number, signed


@pytest.mark.parametrize("value, written", [(-0.876, "−0.88"), (-0.004, "0.00"), (0.0, "0.00"), (12, "12.00")])
def test_a_number_has_two_decimals_and_a_true_minus(value, written):
    assert number(value) == written


def test_a_change_has_its_sign():
    assert signed(-0.17) == "−0.17" and signed(0.171) == "+0.17"
