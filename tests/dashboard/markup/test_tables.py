"""Numbers as plain tables."""

import pytest

from dashboard.markup.tables import table


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
