"""Property tests as the suite runs them: the same inputs each time, and a failure that is cheap to report."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

suite = pytest.mark.skipif(
    settings.get_current_profile_name() != "suite", reason="another --hypothesis-profile was chosen"
)


def tried(fails) -> list[list[int]]:
    """The inputs of a property that fails for some of them."""
    inputs = []

    @given(st.lists(st.integers()))
    def holds(numbers):
        inputs.append(numbers)
        assert not fails(numbers)

    try:
        holds()
    except AssertionError:
        pass
    return inputs


@suite
def test_the_inputs_are_the_same_in_each_run():
    first = tried(lambda numbers: False)
    assert len(first) == settings.default.max_examples and tried(lambda numbers: False) == first


@suite
def test_after_a_failure_no_smaller_input_is_looked_for():
    def fails(numbers):
        return sum(numbers) > 1000

    inputs = tried(fails)
    assert fails(inputs[-1]) and sum(map(fails, inputs)) <= 3  # the failure, seen again and reported
