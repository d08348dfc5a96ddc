"""The numbers that the environment sets: each is in the documentation, and a wrong one stops the server at once."""

import pytest
from serving import ROOT

from dashboard.choices import settings


@pytest.mark.parametrize("name", settings.SETTINGS)
def test_each_has_a_value_of_its_own_and_is_documented(name, monkeypatch):
    assert settings.of(name) == settings.SETTINGS[name].own
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    assert settings.of(name) == settings.SETTINGS[name].public
    monkeypatch.setenv(name, " 7 ")
    assert settings.of(name) == 7 and settings.bytes_of(name) == 7 * 2**20
    rows = [
        line for line in (ROOT / "docs" / "many-people.md").read_text().splitlines() if line.startswith(f"| `{name}`")
    ]
    own, public = (f"{number:,}" for number in settings.SETTINGS[name])
    assert len(rows) == 1 and f" {own}" in rows[0] and (own == public or f"`ATTNVIZ_PUBLIC=1` {public} " in rows[0])


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "100001", "٣"])
def test_a_value_that_is_none(value, monkeypatch):
    monkeypatch.setenv(settings.MEMORY, value)
    with pytest.raises(ValueError) as error:
        settings.check()
    assert str(error.value) == f"ATTNVIZ_MEMORY_MB must be a whole number from 1 to 100,000; got {value!r}"
