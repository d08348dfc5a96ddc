"""The numbers that the environment sets: each is in the documentation, and a wrong one stops the server at once."""

import os
import subprocess
import sys

import pytest
from serving import ROOT

from dashboard.choices import settings


@pytest.mark.parametrize("name", settings.SETTINGS)
def test_each_has_a_value_of_its_own_and_is_documented(name, monkeypatch):
    assert settings.of(name) == settings.SETTINGS[name].own
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    assert settings.of(name) == settings.SETTINGS[name].public
    monkeypatch.setenv("ATTNVIZ_ALLOW", "folders,hub,uploads")  # it is public all the same
    assert settings.of(name) == settings.SETTINGS[name].public
    monkeypatch.setenv(name, " 7 ")
    assert settings.of(name) == 7 and settings.bytes_of(name) == 7 * 2**20
    rows = [
        line for line in (ROOT / "docs" / "many-people.md").read_text().splitlines() if line.startswith(f"| `{name}`")
    ]
    own, public = (f"{number:,}" for number in settings.SETTINGS[name])
    assert len(rows) == 1 and f" {own}" in rows[0] and (own == public or f"`ATTNVIZ_PUBLIC=1` {public} " in rows[0])


@pytest.mark.parametrize(
    "name, value, reason",
    [
        ("ATTNVIZ_PUBLIC", "2", "must be 0 or 1; got '2'"),
        ("ATTNVIZ_CHECKPOINTS", "/nowhere", "must be a folder; there is no folder '/nowhere'"),
        (
            "ATTNVIZ_HOSTS",
            "localhost, https://example.org",
            "must list names such as attention.example.org, without https:// and without a port; "
            "got 'https://example.org'",
        ),
    ],
)
def test_a_server_with_a_wrong_setting_says_so_in_one_line_and_does_not_start(name, value, reason):
    command = [sys.executable, "-c", "import dashboard.app"]
    environment = os.environ | {name: value, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1:] == [f"attnviz does not start: {name} {reason}"]
    assert "Traceback" not in done.stderr


def test_the_names_of_a_server(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_HOSTS", " Attention.Example.org., [::2],* ,")
    assert settings.hosts() == ["attention.example.org", "[::2]", "*"]


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "100001", "٣"])
def test_a_value_that_is_none(value, monkeypatch):
    monkeypatch.setenv(settings.MEMORY, value)
    with pytest.raises(ValueError) as error:
        settings.check()
    assert str(error.value) == f"ATTNVIZ_MEMORY_MB must be a whole number from 1 to 100,000; got {value!r}"
