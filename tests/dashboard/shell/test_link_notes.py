"""What a link asks for and the page does not have is named, in one sentence."""

import pytest
import serving
from streamlit.testing.v1 import AppTest


@pytest.mark.parametrize(
    "key, values, said",
    [
        (
            "show",
            ["bahdanau", "luong-local", "transformer"],
            "show = “luong-local”",
        ),  # names of folders, not of the page
        ("pair", ["Klingon"], "pair = “Klingon”"),
        ("show", ["Bahdanau"], None),
        ("show", ["Bahdanau", "Luong general", "Transformer"], None),  # the default
    ],
)
def test_a_value_that_there_is_not_is_named_wherever_it_stands(key, values, said):
    app = AppTest.from_file(str(serving.ROOT / "dashboard" / "page.py"), default_timeout=120)
    app.query_params[key] = values
    notes = [note.value.replace("\\", "") for note in app.run().info]
    assert notes == ([f"This page has no {said}. It shows the default instead."] if said else [])
