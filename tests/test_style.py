"""Formatting and lint of the whole project, and how often formatting is switched off."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SKIPS = 20  # fewer than this, only on tables of data


@pytest.mark.parametrize("command", [("format", "--check"), ("check",)], ids=" ".join)
def test_ruff(command):
    done = subprocess.run([sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_formatting_is_switched_off_rarely():
    skip = "# fmt: " + "skip"  # not counted here
    files = [path for folder in ("attnviz", "dashboard", "tests") for path in (ROOT / folder).rglob("*.py")]
    counts = {path.name: path.read_text(encoding="utf-8").count(skip) for path in files}
    assert sum(counts.values()) < SKIPS, {name: count for name, count in counts.items() if count}
