"""storage: JSON comes back as it is, and whatever is wrong with it is one plain sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz import storage

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
)


@given(VALUES)
def test_what_was_written_comes_back(value):
    text = json.dumps(value)
    assert storage.parse_json(text) == value
    assert storage.parse_json(text.encode()) == storage.parse_json(b"\xef\xbb\xbf" + text.encode()) == value


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "it is not JSON: Expecting value in line 1, column 1"),
        ('{"a": 1,\n "b" 2}', "it is not JSON: Expecting ':' delimiter in line 2, column 6"),
        (b'{"a": "\xff"}', "it is not text in UTF-8 (byte 7)"),
        ("[" * 100_000, "its lists or objects are nested too deeply"),
        ('{"a": ' * 100_000, "its lists or objects are nested too deeply"),
        ("9" * 5_000, "it has a number of more than 4,300 digits"),
    ],
)
def test_what_is_wrong_is_said_plainly(text, reason):
    with pytest.raises(ValueError) as error:
        storage.parse_json(text)
    assert str(error.value) == reason
